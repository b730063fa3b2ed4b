/**
 * A planner: from an engine's KvMetrics to advice to add a worker or to take one away.
 *
 * ```sh
 * deno run --allow-ffi --allow-read examples/planner.ts
 * deno run --allow-ffi --allow-read examples/planner.ts --endpoint tcp://127.0.0.1:5557 --interval 30
 * ```
 *
 * The decision is a pure function; see planner_rules.ts.
 */

import { KvMetricsEmitter, KvMetricsReceiver } from "../mod.ts";
import {
  numberFlag,
  readFlags,
  runCommand,
  say,
  stopSignal,
  UsageError,
  withTimeLimit,
} from "./command_line.ts";
import { delay } from "./delay.ts";
import { emittingEngine } from "./kv_metrics/emitting_engine.ts";
import {
  decide,
  type PlannerRules,
  RULES_OF_2025,
  START,
  sumUp,
  type WorkerLoad,
} from "./planner_rules.ts";

const USAGE = `Advises when an engine needs more workers, and when fewer.

  deno run --allow-ffi --allow-read examples/planner.ts [flags]

  Without --endpoint it runs a simulated engine, and decides every 2 seconds.

  --endpoint E       bind here, for a real engine: SGLang's metrics_ipc_name
  --ranks N          ranks of the engine, each taken for a worker, 1 to 64 (default 4)
  --interval S       seconds between two decisions (default 30, simulated 2)
  --silent-is-idle   take a worker that has fallen silent for idle: schedulers say nothing while
                     they are, but one that hangs says nothing either
  --seconds T        end by itself
  --help             show this

  Exit code: 0, 1 if receiving failed, 2 for a wrong command line.`;

/** How often the load is looked at within an interval. */
const SAMPLES = 20;

async function main(): Promise<number> {
  const flags = readFlags(Deno.args, {
    endpoint: "string",
    ranks: "string",
    interval: "string",
    "silent-is-idle": "boolean",
    seconds: "string",
    help: "boolean",
  });
  if (flags.help) {
    say(USAGE);
    return 0;
  }
  if (flags.endpoint === "") throw new UsageError("The endpoint is empty");
  const isSimulated = flags.endpoint === undefined;
  const ranks = numberFlag("ranks", flags.ranks, { low: 1, high: 64, whole: true }, 4);
  const intervals = { low: 0.1, high: 3600, whole: false };
  const intervalS = numberFlag("interval", flags.interval, intervals, isSimulated ? 2 : 30);
  const seconds = numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null);

  using stop = stopSignal();
  const signal = withTimeLimit(stop.signal, seconds);
  await using stack = new AsyncDisposableStack();
  const receiver = stack.use(
    await KvMetricsReceiver.open(flags.endpoint ?? "tcp://127.0.0.1:*", { dpSize: ranks }),
  );
  say(`Watching ${ranks} ${ranks === 1 ? "rank" : "ranks"} at ${receiver.endpoint}`);
  const planning = plan(receiver, {
    intervalMs: intervalS * 1000,
    silentIsIdle: flags["silent-is-idle"] === true,
    signal,
  });
  if (isSimulated) {
    const emitter = stack.use(new KvMetricsEmitter(receiver.endpoint));
    const engine = stack.use(emittingEngine(emitter, ranks));
    await Promise.race([engine.run({ signal }), planning]);
  }
  return await planning;
}

/** Decides again and again until the signal is aborted. @returns The exit code. */
async function plan(
  receiver: KvMetricsReceiver,
  options: {
    readonly intervalMs: number;
    readonly silentIsIdle: boolean;
    readonly signal: AbortSignal;
  },
): Promise<number> {
  const { intervalMs, signal } = options;
  // The grace period is three intervals, as long as they are.
  const rules: PlannerRules = { ...RULES_OF_2025, graceMs: 3 * intervalMs };
  let failed = false;
  void receiver.closed.then((reason) => {
    failed = reason !== null;
    if (reason !== null) say(reason.message, Deno.stderr);
  });
  let state = START;
  for (;;) {
    const samples: WorkerLoad[][] = [];
    for (let n = 0; n < SAMPLES && !signal.aborted && !failed; n++) {
      await delay(intervalMs / SAMPLES, signal);
      samples.push(loadsOf(receiver));
    }
    if (failed) return 1;
    if (signal.aborted) return 0;
    const interval = sumUp(samples, performance.now(), options);
    const decision = decide(state, interval, rules);
    state = decision.state;
    const time = new Date().toISOString().slice(11, 19);
    say(`${time}  ${decision.advice.action.padEnd(4)}  ${decision.advice.reason}`);
  }
}

/** What each rank says now. */
function loadsOf(receiver: KvMetricsReceiver): WorkerLoad[] {
  return receiver.health().map(({ dpRank, state }): WorkerLoad => {
    const latest = receiver.latest(dpRank);
    if (latest === null) return { state: "unreported" };
    if (state !== "live") return { state: "silent" };
    const { gpuCacheUsagePerc, numRequestsWaiting } = latest.metrics;
    return { state: "live", usage: gpuCacheUsagePerc, waiting: numRequestsWaiting };
  });
}

if (import.meta.main) await runCommand(USAGE, main);
