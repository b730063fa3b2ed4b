// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * Compares the speed with SGLang's own module and with what the machine allows: `deno task bench`.
 *
 * Everything is measured side by side in one run, in rounds that take turns. A target that is
 * missed is said and is no failure: a machine that is busy otherwise misses some.
 */

import { parseArgs } from "node:util";
import { ensurePeers, type ReadyPeers } from "../peers/setup.ts";
import { balanceSuite } from "./balance_suite.ts";
import { type BenchContext, PACES, type Suite } from "./bench_context.ts";
import { codecSuite } from "./codec_suite.ts";
import { httpSuite } from "./http_suite.ts";
import { importSuite } from "./import_suite.ts";
import { kvMetricsSuite } from "./kv_metrics_suite.ts";
import { kvReceiveSuite } from "./kv_receive_suite.ts";
import { leftAloneSuite } from "./left_alone_suite.ts";
import { compileLimit } from "./limit.ts";
import { lookAtMachine, type Machine } from "./machine.ts";
import { Progress } from "./progress.ts";
import { type Section, verdictsOf } from "./results.ts";
import { slotFileSuite } from "./slot_file_suite.ts";
import { spreadOf } from "./statistics.ts";
import { renderSection, renderVerdicts } from "./table.ts";
import { zmqSuite } from "./zmq_suite.ts";

/** In the order of the report. */
const SUITES: readonly Suite[] = [
  codecSuite,
  slotFileSuite,
  leftAloneSuite,
  zmqSuite,
  kvMetricsSuite,
  kvReceiveSuite,
  httpSuite,
  balanceSuite,
  importSuite,
];

const USAGE = `Usage: deno task bench [options]

  --case TEXT   only the cases whose name holds TEXT; may be given several times
  --json FILE   write all samples, and what the machine is, as JSON
  --quick       few short rounds, for trying things out; the figures mean little
  --help        this text`;

const INTERRUPTED = 130;

interface Options {
  readonly cases: readonly string[];
  readonly json: string | null;
  readonly quick: boolean;
}

/** Reads the arguments; `null` if there is nothing to run. */
function readOptions(args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      case: { type: "string", multiple: true, default: [] },
      json: { type: "string" },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  return { cases: values.case, json: values.json ?? null, quick: values.quick };
}

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

/** All that was measured, with what it comes to. */
function toJson(machine: Machine, sections: readonly Section[], quick: boolean): string {
  const results = sections.flatMap(({ title, results }) =>
    results.map((result) => ({
      section: title,
      ...result,
      spreads: Object.fromEntries(
        Object.entries({ ...result.series, ...result.ratios })
          .map(([name, samples]) => [name, spreadOf(samples)]),
      ),
      verdicts: verdictsOf(result),
    }))
  );
  return `${JSON.stringify({ machine, quick, results }, null, 2)}\n`;
}

/** Runs the command; returns its exit code. */
async function main(args: readonly string[]): Promise<number> {
  let options: Options | null;
  try {
    options = readOptions(args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  if (options === null) {
    console.log(USAGE);
    return 0;
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
    console.log(renderVerdicts(sections));
    if (options.json !== null) {
      await Deno.writeTextFile(options.json, toJson(machine, sections, options.quick));
    }
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
