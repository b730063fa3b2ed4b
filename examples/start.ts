/**
 * Shows the load of an engine as a live table: of an embedded, simulated one, or of a real one.
 *
 * ```sh
 * deno run --allow-ffi --allow-read examples/start.ts
 * deno run --allow-ffi --allow-read examples/start.ts --instance-id X
 * ```
 */

import { SlotFileError } from "../mod.ts";
import {
  numberFlag,
  readFlags,
  runCommand,
  say,
  stopSignal,
  withTimeLimit,
  writeAll,
} from "./command_line.ts";
import { delay } from "./delay.ts";
import {
  type ChosenEngine,
  chosenEngine,
  ENGINE_FLAGS,
  ENGINE_USAGE,
  ownEngine,
  ownPath,
  whileRunning,
} from "./own_engine.ts";
import { LiveDisplay, PlainDisplay, renderOnce } from "./terminal/display.ts";
import { explain, type SlotView, SlotWatch } from "./terminal/slot_view.ts";

const USAGE = `Shows the load of an engine as a live table.

  deno task start [flags]

  Without a name it runs a simulated engine and shows that.

${ENGINE_USAGE}
  --interval-ms M   time between two tables, at least 200 (default 250, plain 1000)
  --seconds T       end by itself
  --once            show one table and end
  --plain           no colours, no redrawing; the default where stdout is no terminal
  --help            show this

  Exit code: 0, 1 if no engine was seen, 2 for a wrong command line.`;

/** How often the ranks are looked at between two tables, so that publications can be counted. */
const POLL_MS = 25;
/** How long a single table gathers for its rate. */
const ONCE_MS = 500;

/** What the command line asks for. */
interface Request extends ChosenEngine {
  readonly seconds: number | null;
  readonly look: Look;
}

/** How the table is shown. */
interface Look {
  readonly once: boolean;
  readonly plain: boolean;
  readonly intervalMs: number;
  /** What the header says while nothing is wrong. */
  readonly hint: string | null;
}

async function main(): Promise<number> {
  const request = readRequest(Deno.args);
  if (request === "help") {
    say(USAGE);
    return 0;
  }
  const { path, ranks, seconds, look } = request;
  using stop = stopSignal();
  if (path !== null) return await show(path, look, withTimeLimit(stop.signal, seconds));

  const simulated = ownPath();
  using engine = ownEngine(simulated, ranks);
  // The engine has warmed up by now; on a busy machine that takes seconds.
  const signal = withTimeLimit(stop.signal, seconds);
  return await whileRunning(engine, signal, (both) => show(simulated, look, both));
}

function readRequest(args: readonly string[]): Request | "help" {
  const flags = readFlags(args, {
    ...ENGINE_FLAGS,
    "interval-ms": "string",
    seconds: "string",
    once: "boolean",
    plain: "boolean",
    help: "boolean",
  });
  if (flags.help) return "help";
  const engine = chosenEngine(flags);
  const plain = flags.plain === true || Deno.noColor || !Deno.stdout.isTerminal();
  const interval = { low: 200, high: 3_600_000, whole: true };
  return {
    ...engine,
    seconds: numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null),
    look: {
      once: flags.once === true,
      plain,
      intervalMs: numberFlag("interval-ms", flags["interval-ms"], interval, plain ? 1000 : 250),
      hint: engine.path === null
        ? "A simulated engine. A real one: --instance-id X or --path P"
        : null,
    },
  };
}

/** Shows a slot file until the signal is aborted. @returns The exit code. */
async function show(path: string, look: Look, signal: AbortSignal): Promise<number> {
  using watch = openWatch(path);
  if (look.once) {
    const view = await observe(watch, ONCE_MS, signal);
    const seen = view.rows.length > 0;
    if (seen) writeAll(renderOnce(view, look.hint, !look.plain));
    else say(view.trouble ?? "", Deno.stderr);
    return seen ? 0 : 1;
  }
  using display = look.plain ? new PlainDisplay(look.hint) : new LiveDisplay(look.hint);
  let view = await observe(watch, 0, signal);
  let seen = false;
  do {
    display.show(view);
    seen ||= view.rows.length > 0;
    view = await observe(watch, look.intervalMs, signal);
  } while (!signal.aborted);
  return seen ? 0 : 1;
}

function openWatch(path: string): SlotWatch {
  try {
    return new SlotWatch(path);
  } catch (error) {
    if (!(error instanceof SlotFileError)) throw error;
    throw new Error(explain(error), { cause: error });
  }
}

/** Looks on for a while. @returns What is there in the end. */
async function observe(watch: SlotWatch, ms: number, signal: AbortSignal): Promise<SlotView> {
  const endMs = performance.now() + ms;
  watch.poll();
  for (let left = ms; left > 0 && !signal.aborted; left = endMs - performance.now()) {
    await delay(Math.min(left, POLL_MS), signal);
    watch.poll();
  }
  return watch.view();
}

if (import.meta.main) await runCommand(USAGE, main);
