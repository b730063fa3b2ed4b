// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * Compares the speed with SGLang's own module and with what the machine allows: `deno task bench`.
 *
 * Everything is measured side by side in one run, in rounds that take turns. A target that is
 * missed is said and is no failure: a machine that is busy otherwise misses some.
 */

import { join } from "node:path";
import { ensurePeers, type ReadyPeers } from "../peers/setup.ts";
import { balanceSuite } from "./balance_suite.ts";
import { type BenchContext, PACES, type Suite } from "./bench_context.ts";
import { compareRuns } from "./changes.ts";
import { renderComparison } from "./changes_text.ts";
import { chartsOf } from "./charts.ts";
import { codecSuite } from "./codec_suite.ts";
import { growthOf, renderGrowth } from "./growth.ts";
import { httpSuite } from "./http_suite.ts";
import { importSuite } from "./import_suite.ts";
import { kvMetricsSuite } from "./kv_metrics_suite.ts";
import { kvReceiveSuite } from "./kv_receive_suite.ts";
import { leftAloneSuite } from "./left_alone_suite.ts";
import { compileLimit } from "./limit.ts";
import { lookAtMachine, type Machine } from "./machine.ts";
import { Progress } from "./progress.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import type { Section } from "./results.ts";
import { runFromJson, runToJson, type SavedRun } from "./run_file.ts";
import { sizeSuite } from "./size_suite.ts";
import { slotFileSuite } from "./slot_file_suite.ts";
import { renderSection, renderVerdicts } from "./table.ts";
import { zmqSuite } from "./zmq_suite.ts";

/** In the order of the report. */
const SUITES: readonly Suite[] = [
  codecSuite,
  slotFileSuite,
  sizeSuite,
  leftAloneSuite,
  zmqSuite,
  kvMetricsSuite,
  kvReceiveSuite,
  httpSuite,
  balanceSuite,
  importSuite,
];

const INTERRUPTED = 130;

/** Runs the suites, and leaves nothing behind. */
async function measure(
  options: Options,
  peers: ReadyPeers,
  progress: Progress,
  signal: AbortSignal,
): Promise<{ machine: Machine; sections: Section[] }> {
  await using stack = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "loadslots-bench-" });
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  stack.defer(() => progress.clear());
  const limit = await compileLimit(folder);
  if (limit.state === "missing") progress.say(`No limit: ${limit.reason}`);
  const compiler = limit.state === "ready" ? limit.compiler : null;
  const machine = await lookAtMachine(peers.python, compiler);
  const context: BenchContext = {
    peers,
    limit,
    folder,
    pace: options.quick ? PACES.quick : PACES.full,
    progress,
    signal,
    wants: (name) =>
      options.cases.length === 0 || options.cases.some((text) => name.includes(text)),
  };
  const sections: Section[] = [];
  for (const suite of SUITES) {
    signal.throwIfAborted();
    const section = await suite(context);
    if (section !== null) sections.push(section);
  }
  return { machine, sections };
}

async function readRun(path: string): Promise<SavedRun> {
  return runFromJson(await Deno.readTextFile(path), path);
}

/** Compares a run and draws it, as far as that is asked for. */
async function conclude(
  options: Options,
  before: SavedRun | null,
  run: SavedRun,
): Promise<void> {
  if (before !== null) console.log(`\n${renderComparison(compareRuns(before, run))}`);
  if (options.charts === null) return;
  await Deno.mkdir(options.charts, { recursive: true });
  for (const [name, svg] of chartsOf(run)) {
    await Deno.writeTextFile(join(options.charts, name), svg);
    console.log(`Chart: ${join(options.charts, name)}`);
  }
}

/** Runs the command; returns its exit code. */
async function main(args: readonly string[]): Promise<number> {
  let options: Options | null;
  let before: SavedRun | null;
  try {
    options = readOptions(args);
    if (options === null) {
      console.log(USAGE);
      return 0;
    }
    // Read before anything is measured: a wrong path shall not cost the run.
    before = options.compare === null ? null : await readRun(options.compare);
    if (options.with !== null) {
      await conclude(options, before, await readRun(options.with));
      return 0;
    }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  const peers = await ensurePeers();
  if (peers.state === "missing") {
    console.error(`There is nothing to compare with: no Python peers: ${peers.reason}`);
    return 1;
  }
  const abort = new AbortController();
  let interruptedAtMs = 0;
  const interrupt = () => {
    // The first ends the run in order, a later one the process. Below `deno task`, Ctrl-C comes
    // twice: from the terminal and from the task.
    if (!abort.signal.aborted) {
      interruptedAtMs = performance.now();
      abort.abort();
    } else if (performance.now() - interruptedAtMs > 1_000) Deno.exit(INTERRUPTED);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, interrupt);
  try {
    const progress = new Progress();
    const { machine, sections } = await measure(options, peers, progress, abort.signal);
    if (sections.length === 0) {
      console.error(`No case has such a name: ${options.cases.join(", ")}`);
      return 2;
    }
    const { processor, cores, kernel, deno, python, loadBefore } = machine;
    console.log(
      `${cores} x ${processor}, Linux ${kernel}, Deno ${deno}, ${python}, ` +
        `load before ${loadBefore.toFixed(1)}${
          options.quick ? "; quick: the figures mean little" : ""
        }\n`,
    );
    for (const section of sections) console.log(renderSection(section));
    console.log(renderGrowth(growthOf(sections.flatMap(({ results }) => results))));
    console.log(renderVerdicts(sections));
    const json = runToJson(machine, sections, options.quick);
    if (options.json !== null) await Deno.writeTextFile(options.json, json);
    await conclude(options, before, runFromJson(json, "this run"));
    return 0;
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    console.error("Interrupted");
    return INTERRUPTED;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      Deno.removeSignalListener(signal, interrupt);
    }
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
