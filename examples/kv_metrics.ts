/**
 * KvMetrics from one process to another, live: an engine emits them as SGLang's scheduler does, and a
 * receiver shows them as Dynamo's worker would get them, with what its queue and its checks did.
 *
 * ```sh
 * deno run --allow-ffi --allow-read --allow-run examples/kv_metrics.ts
 * ```
 *
 * A real engine: `--endpoint ipc:///tmp/... --receive-only`, with SGLang's `metrics_ipc_name`; that
 * needs no `--allow-run`.
 */

import { KvMetricsReceiver, type WorkerFailedError } from "../mod.ts";
import {
  numberFlag,
  readFlags,
  runCommand,
  say,
  stopSignal,
  UsageError,
  withTimeLimit,
  writeAll,
} from "./command_line.ts";
import { delay } from "./delay.ts";
import { EmitterProcess } from "./kv_metrics/emitter_process.ts";
import { type MetricsRow, renderMetrics } from "./kv_metrics/table.ts";
import { Screen } from "./terminal/screen.ts";

const USAGE = `Receives the KvMetrics of an engine and shows them as a live table.

  deno run --allow-ffi --allow-read --allow-run examples/kv_metrics.ts [flags]

  Without flags it starts a simulated engine as a process of its own; that is what --allow-run is
  for.

  --endpoint E            where to bind (default tcp://127.0.0.1:*, a free port)
  --receive-only          start no engine: a real one emits, or examples/kv_metrics/emitter.ts
  --allow-insecure-bind   with --receive-only: bind beyond this machine, where whoever reaches the
                          port is believed
  --ranks N               ranks of the engine, 1 to 64 (default 4)
  --page-size N           tokens of a page, to show pages (default 64)
  --interval-ms M         time between two tables, at least 100 (default 250, plain 1000)
  --seconds T             end by itself
  --once                  show one table when all ranks were heard, or after 10 s, and end
  --plain                 no colours, no redrawing; the default where stdout is no terminal
  --help                  show this

  Exit code: 0, 1 if no rank was heard or receiving failed, 2 for a wrong command line.`;

const POLL_MS = 25;
const ONCE_PATIENCE_MS = 10_000;

/** What the command line asks for. */
interface Request {
  readonly endpoint: string;
  readonly receiveOnly: boolean;
  readonly allowInsecureBind: boolean;
  readonly ranks: number;
  readonly pageSize: number;
  readonly intervalMs: number;
  readonly seconds: number | null;
  readonly once: boolean;
  readonly plain: boolean;
}

async function main(): Promise<number> {
  const request = readRequest(Deno.args);
  if (request === "help") {
    say(USAGE);
    return 0;
  }
  using stop = stopSignal();
  await using stack = new AsyncDisposableStack();
  const receiver = stack.use(
    await KvMetricsReceiver.open(request.endpoint, {
      dpSize: request.ranks,
      allowInsecureBind: request.allowInsecureBind,
    }),
  );
  const emitter = request.receiveOnly
    ? null
    : stack.use(new EmitterProcess(receiver.endpoint, request.ranks));
  const view = new View(receiver, emitter, request);
  const signal = withTimeLimit(stop.signal, request.seconds);
  return request.once
    ? await showOnce(view, receiver, request, signal)
    : await showLive(view, receiver, request, signal);
}

function readRequest(args: readonly string[]): Request | "help" {
  const flags = readFlags(args, {
    endpoint: "string",
    "receive-only": "boolean",
    "allow-insecure-bind": "boolean",
    ranks: "string",
    "page-size": "string",
    "interval-ms": "string",
    seconds: "string",
    once: "boolean",
    plain: "boolean",
    help: "boolean",
  });
  if (flags.help) return "help";
  if (flags.endpoint === "") throw new UsageError("The endpoint is empty");
  const receiveOnly = flags["receive-only"] === true;
  const allowInsecureBind = flags["allow-insecure-bind"] === true;
  if (allowInsecureBind && !receiveOnly) {
    throw new UsageError("--allow-insecure-bind is for --receive-only");
  }
  const plain = flags.plain === true || Deno.noColor || !Deno.stdout.isTerminal();
  const interval = { low: 100, high: 3_600_000, whole: true };
  return {
    endpoint: flags.endpoint ?? "tcp://127.0.0.1:*",
    receiveOnly,
    allowInsecureBind,
    ranks: numberFlag("ranks", flags.ranks, { low: 1, high: 64, whole: true }, 4),
    pageSize: numberFlag("page-size", flags["page-size"], { low: 1, high: 65536, whole: true }, 64),
    intervalMs: numberFlag("interval-ms", flags["interval-ms"], interval, plain ? 1000 : 250),
    seconds: numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null),
    once: flags.once === true,
    plain,
  };
}

/** What there is to see, as text. */
class View {
  readonly #receiver: KvMetricsReceiver;
  readonly #emitter: EmitterProcess | null;
  readonly #request: Request;
  #failure: WorkerFailedError | null = null;

  constructor(receiver: KvMetricsReceiver, emitter: EmitterProcess | null, request: Request) {
    this.#receiver = receiver;
    this.#emitter = emitter;
    this.#request = request;
    void receiver.closed.then((reason) => {
      this.#failure = reason;
    });
  }

  /** Why nothing comes any more, or `null`. */
  get failure(): WorkerFailedError | null {
    return this.#failure;
  }

  render(width: number, colour: boolean): string {
    const rows = this.#receiver.health().map((health): MetricsRow => ({
      ...health,
      metrics: this.#receiver.latest(health.dpRank)?.metrics ?? null,
    }));
    const { pageSize } = this.#request;
    return `${this.#header()}\n\n${renderMetrics(rows, { pageSize, width, colour })}`;
  }

  #header(): string {
    const { accepted, refused } = this.#receiver.stats();
    const kinds = Object.entries(refused).filter(([, count]) => count > 0);
    const facts = [
      `${this.#receiver.endpoint}  ${accepted} messages`,
      ...kinds.map(([kind, count]) => `${count} refused: ${kind}`),
    ];
    return `${facts.join(", ")}\n${this.#note()}`;
  }

  #note(): string {
    if (this.#failure !== null) return `${this.#failure.message}; these are the last values`;
    if (this.#emitter === null) return "Blocks are tokens; nothing comes while an engine is idle";
    return this.#emitter.trouble ??
      `Process ${Deno.pid} receives, process ${this.#emitter.pid} emits; nothing comes while it is idle`;
  }
}

/** Shows one table. @returns The exit code. */
async function showOnce(
  view: View,
  receiver: KvMetricsReceiver,
  { ranks, plain }: Request,
  signal: AbortSignal,
): Promise<number> {
  const patience = withTimeLimit(signal, ONCE_PATIENCE_MS / 1000);
  while (heard(receiver) < ranks && !patience.aborted) await delay(POLL_MS, patience);
  writeAll(view.render(terminalWidth(), !plain));
  return heard(receiver) > 0 ? 0 : 1;
}

/** Shows table after table until the signal is aborted. @returns The exit code. */
async function showLive(
  view: View,
  receiver: KvMetricsReceiver,
  { plain, intervalMs }: Request,
  signal: AbortSignal,
): Promise<number> {
  using screen = plain ? null : new Screen();
  while (!signal.aborted && view.failure === null) {
    await delay(intervalMs, signal);
    const text = view.render(terminalWidth(), !plain);
    if (screen === null) writeAll(`${text}\n`);
    else screen.draw(text, Deno.consoleSize().rows || 24);
  }
  return view.failure === null && heard(receiver) > 0 ? 0 : 1;
}

/** How many ranks were ever heard. */
function heard(receiver: KvMetricsReceiver): number {
  return receiver.health().filter(({ state }) => state !== "unreported").length;
}

function terminalWidth(): number {
  // A pseudo-terminal that nobody gave a size says 0.
  return Deno.stdout.isTerminal() ? Deno.consoleSize().columns || 80 : 120;
}

if (import.meta.main) await runCommand(USAGE, main);
