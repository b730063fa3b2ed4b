// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * Runs all tests, and says in its last line how many there were: `deno task test`.
 *
 * Tests in tests/unit/ run under the permissions that README.md promises to suffice; all others
 * start processes of their own and may do everything. Those that take minutes, and mostly wait, run
 * beside the others, and what they print comes at the end. Types are not checked here, for
 * `deno task ok` does that. Arguments go to `deno test`; paths below tests/ choose what is run.
 */

import { fileURLToPath } from "node:url";
import { join, relative } from "node:path";
import { addCounts, type Counts, countsOf, NOTHING, summaryLine } from "./run_counts.ts";
import { ensurePeers, NO_PEERS } from "./peers/setup.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const UNIT = "tests/unit";
const FAULTS = "tests/faults";
const LONG = "tests/peers/collector_long_test.ts";

/** How long the output of a process may outlast it: a test that leaves a child behind holds it. */
const OUTPUT_MS = 2_000;

interface Run {
  readonly permissions: readonly string[];
  /** The folder (or file) whose tests are run, and what within it is left to other runs. */
  readonly folder: string;
  readonly except: readonly string[];
  /** Whether it runs beside the others. */
  readonly isBeside: boolean;
}

const RUNS: readonly Run[] = [
  { permissions: ["--allow-all"], folder: FAULTS, except: [], isBeside: true },
  { permissions: ["--allow-all"], folder: LONG, except: [], isBeside: true },
  { permissions: ["--allow-ffi", "--allow-read"], folder: UNIT, except: [], isBeside: false },
  { permissions: ["--allow-all"], folder: "tests", except: [UNIT, FAULTS, LONG], isBeside: false },
];

/** Tells which of the chosen paths fall to a run; without a choice it is the run's folder. */
function pathsOf(run: Run, chosen: readonly string[]): string[] {
  if (chosen.length === 0) return [run.folder];
  const mine = chosen.filter((path) =>
    isBelow(path, run.folder) && !run.except.some((other) => isBelow(path, other))
  );
  // A folder around this run's stands for it, as in `deno task test tests`.
  return mine.length === 0 && chosen.some((path) => isBelow(run.folder, path))
    ? [run.folder]
    : mine;
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** Separates paths of tests from what else `deno test` is to get. */
function splitArguments(args: readonly string[]): { chosen: string[]; passed: string[] } {
  const chosen: string[] = [];
  const passed: string[] = [];
  for (const arg of args) {
    const path = relative(ROOT, join(Deno.cwd(), arg));
    if (!arg.startsWith("-") && isBelow(path, "tests")) chosen.push(path);
    else passed.push(arg);
  }
  return { chosen, passed };
}

/** Runs the tests of one run; `print` gets what they say. */
async function runTests(
  run: Run,
  paths: readonly string[],
  passed: readonly string[],
  print: (text: string) => void,
): Promise<Counts> {
  const args = [
    "test",
    "--no-check",
    ...run.permissions,
    ...(run.except.length === 0 ? [] : [`--ignore=${run.except.join(",")}`]),
    ...passed,
    ...paths,
  ];
  print(`\n$ deno ${args.join(" ")}\n`);
  const child = new Deno.Command(Deno.execPath(), {
    args,
    cwd: ROOT,
    // Our reading of the output must not take the colours away.
    env: Deno.stdout.isTerminal() && !Deno.noColor ? { FORCE_COLOR: "1" } : {},
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const abort = new AbortController();
  let output = "";
  const reading = child.stdout.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({
      write(text) {
        output += text;
        print(text);
      },
    }),
    { signal: abort.signal },
  ).catch((error: unknown) => {
    if (!abort.signal.aborted) throw error;
  });
  const status = await child.status;
  const timer = setTimeout(() => abort.abort(), OUTPUT_MS);
  await reading;
  clearTimeout(timer);
  return countsOf(output, status);
}

function printNow(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}

/** Runs the tests of one run beside others; what they print is printed when `turn` has come. */
async function runBeside(
  run: Run,
  paths: readonly string[],
  passed: readonly string[],
  turn: Promise<unknown>,
): Promise<Counts> {
  let said = "";
  let print = (text: string) => {
    said += text;
  };
  const counting = runTests(run, paths, passed, (text) => print(text));
  await turn;
  printNow(said);
  print = printNow;
  return await counting;
}

/** Tells whether any test file is at one of the paths; `deno test` fails where there is none. */
async function holdsTests(path: string, except: readonly string[]): Promise<boolean> {
  const info = await Deno.stat(join(ROOT, path)).catch(() => null);
  if (info === null || except.includes(path)) return false;
  if (!info.isDirectory) return true;
  for await (const entry of Deno.readDir(join(ROOT, path))) {
    if (entry.isFile && entry.name.endsWith("_test.ts")) return true;
    if (entry.isDirectory && await holdsTests(`${path}/${entry.name}`, except)) return true;
  }
  return false;
}

/**
 * Runs the tests.
 *
 * @param args The arguments of the command line.
 * @returns Whether something ran and nothing failed.
 */
async function main(args: readonly string[]): Promise<boolean> {
  const { chosen, passed } = splitArguments(args);
  let counts: Counts = NOTHING;
  try {
    const peers = await ensurePeers();
    if (peers.state === "missing") {
      console.log(`No Python peers: ${peers.reason}`);
      // Once is enough: each test file would try again, and wait for the network again.
      Deno.env.set(NO_PEERS, peers.reason);
    }
  } catch (error) {
    counts = { ...NOTHING, failed: 1, problems: [String(error)] };
  }
  const others = Promise.withResolvers<void>();
  const beside: Promise<Counts>[] = [];
  for (const run of counts.failed > 0 ? [] : RUNS) {
    const paths = pathsOf(run, chosen);
    const there = await Promise.all(paths.map((path) => holdsTests(path, run.except)));
    if (!there.includes(true)) continue;
    if (run.isBeside) beside.push(runBeside(run, paths, passed, others.promise));
    else counts = addCounts(counts, await runTests(run, paths, passed, printNow));
  }
  others.resolve();
  for (const run of beside) counts = addCounts(counts, await run);
  for (const problem of counts.problems) console.log(problem);
  const ran = counts.passed + counts.failed > 0;
  if (!ran) console.log("No test was run");
  console.log(`\n${summaryLine(counts)}`);
  return ran && counts.failed === 0;
}

if (import.meta.main && !await main(Deno.args)) Deno.exit(1);
