/**
 * Engine ranks on other nodes, which push their load to a collector on this one, as a live table.
 * The nodes are processes here.
 *
 * ```sh
 * deno run --allow-ffi --allow-read --allow-run examples/multi_node.ts
 * ```
 *
 * Real engines: `--collect-only --endpoint tcp://*:5557 --allow-insecure-bind --ranks 8`, which needs
 * no `--allow-run`.
 */

import { removeSlotFile, shmPathFor, ZmqShmLoadSnapshotReader } from "../mod.ts";
import {
  numberFlag,
  readFlags,
  runCommand,
  say,
  slotPathFlag,
  stopSignal,
  UsageError,
  withTimeLimit,
  writeAll,
} from "./command_line.ts";
import { delay } from "./delay.ts";
import { CollectorWatch } from "./multi_node/collector_watch.ts";
import { RankProcesses } from "./multi_node/rank_processes.ts";
import { LiveDisplay, PlainDisplay, renderOnce } from "./terminal/display.ts";
import type { SlotView } from "./terminal/slot_view.ts";

const USAGE = `Collects the load of engine ranks over ZeroMQ and shows it as a live table.

  deno run --allow-ffi --allow-read --allow-run examples/multi_node.ts [flags]

  Without flags it starts the ranks of a simulated engine, each as a process of its own; that is
  what --allow-run is for.

  --ranks N               ranks of the group, 1 to 64, or to 512 with --collect-only (default 4)
  --endpoint E            where to bind (default tcp://127.0.0.1:*, a free port)
  --collect-only          start no ranks: real ones push, or examples/multi_node/engine_rank.ts
  --allow-insecure-bind   bind beyond this machine, where whoever reaches the port is believed
  --instance-id X         fill the slot file of this instance id, for SGLang's readers
  --path P                fill this slot file; by default one that is removed at the end
  --interval-ms M         time between two tables, at least 200 (default 250, plain 1000)
  --seconds T             end by itself
  --once                  show one table when all ranks were heard, or after 10 s, and end
  --plain                 no colours, no redrawing; the default where stdout is no terminal
  --help                  show this

  Exit code: 0, 1 if no rank was heard, 2 for a wrong command line.`;

/** How often is looked between two tables. */
const POLL_MS = 25;
/** How long a single table waits for ranks, and then gathers for its rate. */
const ONCE_PATIENCE_MS = 10_000;
const ONCE_MS = 500;

/** What the command line asks for. */
interface Request {
  readonly endpoint: string;
  readonly ranks: number;
  /** The slot file, or `null` for one of our own. */
  readonly path: string | null;
  readonly collectOnly: boolean;
  readonly allowInsecureBind: boolean;
  readonly seconds: number | null;
  readonly once: boolean;
  readonly plain: boolean;
  readonly intervalMs: number;
}

async function main(): Promise<number> {
  const request = readRequest(Deno.args);
  if (request === "help") {
    say(USAGE);
    return 0;
  }
  using stop = stopSignal();
  await using stack = new AsyncDisposableStack();
  const ownName = crypto.randomUUID().replaceAll("-", "").slice(0, 12);
  const path = request.path ?? shmPathFor(ownName);
  if (request.path === null) stack.defer(() => void removeSlotFile(path));
  const reader = stack.use(
    await ZmqShmLoadSnapshotReader.open(request.endpoint, path, {
      dpSize: request.ranks,
      allowInsecureBind: request.allowInsecureBind,
    }),
  );
  const processes = request.collectOnly
    ? null
    : stack.use(new RankProcesses(reader.endpoint, request.ranks));
  const observed = new Observed(new CollectorWatch(reader), processes);
  const signal = withTimeLimit(stop.signal, request.seconds);
  return request.once
    ? await showOnce(observed, request, signal)
    : await showLive(observed, request, signal);
}

function readRequest(args: readonly string[]): Request | "help" {
  const flags = readFlags(args, {
    ranks: "string",
    endpoint: "string",
    "collect-only": "boolean",
    "allow-insecure-bind": "boolean",
    "instance-id": "string",
    path: "string",
    "interval-ms": "string",
    seconds: "string",
    once: "boolean",
    plain: "boolean",
    help: "boolean",
  });
  if (flags.help) return "help";
  const collectOnly = flags["collect-only"] === true;
  if (flags.endpoint === "") throw new UsageError("The endpoint is empty");
  const plain = flags.plain === true || Deno.noColor || !Deno.stdout.isTerminal();
  const ranks = { low: 1, high: collectOnly ? 512 : 64, whole: true };
  const interval = { low: 200, high: 3_600_000, whole: true };
  return {
    endpoint: flags.endpoint ?? "tcp://127.0.0.1:*",
    ranks: numberFlag("ranks", flags.ranks, ranks, 4),
    path: slotPathFlag(flags),
    collectOnly,
    allowInsecureBind: flags["allow-insecure-bind"] === true,
    seconds: numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null),
    once: flags.once === true,
    plain,
    intervalMs: numberFlag("interval-ms", flags["interval-ms"], interval, plain ? 1000 : 250),
  };
}

/** The collector, and the processes that push to it. */
class Observed {
  readonly #watch: CollectorWatch;
  readonly #processes: RankProcesses | null;

  constructor(watch: CollectorWatch, processes: RankProcesses | null) {
    this.#watch = watch;
    this.#processes = processes;
  }

  /** How many ranks are live. */
  get heard(): number {
    return this.#watch.heard;
  }

  /** What the header says while nothing is wrong. */
  get hint(): string | null {
    const pid = this.#processes?.pids.at(-1);
    if (pid === undefined) return null;
    return `Each rank is a process; stop one and it turns stale: kill -STOP ${pid}`;
  }

  /** Looks on for a while. @returns What is there in the end. */
  async over(ms: number, signal: AbortSignal): Promise<SlotView> {
    const endMs = performance.now() + ms;
    this.#watch.poll();
    for (let left = ms; left > 0 && !signal.aborted; left = endMs - performance.now()) {
      await delay(Math.min(left, POLL_MS), signal);
      this.#watch.poll();
    }
    const view = this.#watch.view();
    return { ...view, trouble: this.#processes?.trouble ?? view.trouble };
  }
}

/** Shows one table. @returns The exit code. */
async function showOnce(
  observed: Observed,
  { ranks, plain }: Request,
  signal: AbortSignal,
): Promise<number> {
  const patience = withTimeLimit(signal, ONCE_PATIENCE_MS / 1000);
  while (observed.heard < ranks && !patience.aborted) await delay(POLL_MS, patience);
  const view = await observed.over(ONCE_MS, signal);
  const hasHeard = observed.heard > 0;
  if (hasHeard) writeAll(renderOnce(view, observed.hint, !plain));
  else say(view.trouble ?? "", Deno.stderr);
  return hasHeard ? 0 : 1;
}

/** Shows table after table until the signal is aborted. @returns The exit code. */
async function showLive(
  observed: Observed,
  { plain, intervalMs }: Request,
  signal: AbortSignal,
): Promise<number> {
  using display = plain ? new PlainDisplay(observed.hint) : new LiveDisplay(observed.hint);
  let hasHeard = false;
  let view = await observed.over(0, signal);
  do {
    display.show(view);
    hasHeard ||= observed.heard > 0;
    view = await observed.over(intervalMs, signal);
  } while (!signal.aborted);
  return hasHeard || observed.heard > 0 ? 0 : 1;
}

if (import.meta.main) await runCommand(USAGE, main);
