/**
 * Serves the load of an engine over HTTP, with a page that shows it live: of an embedded, simulated
 * engine, or of a real one.
 *
 * ```sh
 * deno run --allow-ffi --allow-read --allow-net=127.0.0.1 examples/serve.ts
 * deno run --allow-ffi --allow-read --allow-net=127.0.0.1 examples/serve.ts --instance-id X
 * ```
 */

import type { ShmLoadSnapshotReader } from "../mod.ts";
import { type LoadServer, serveLoad } from "../src/http/mod.ts";
import {
  listenAt,
  numberFlag,
  portFlag,
  readFlags,
  runCommand,
  say,
  stopSignal,
  untilAborted,
  UsageError,
  withTimeLimit,
} from "./command_line.ts";
import {
  type ChosenEngine,
  chosenEngine,
  ENGINE_FLAGS,
  ENGINE_USAGE,
  openReader,
  ownEngine,
  ownPath,
  whileRunning,
} from "./own_engine.ts";
import { explain } from "./terminal/slot_view.ts";

const USAGE = `Serves the load of an engine over HTTP, with a page that shows it live.

  deno task serve [flags]

  Without a name it runs a simulated engine and serves that.

${ENGINE_USAGE}
  --port N          port to listen at (default 8484; 0 has the system choose)
  --host A          address to listen at (default 127.0.0.1); beyond loopback Deno asks for
                    --allow-net, and --token or --open is needed
  --token T         ask for this bearer token; the page takes it as #token=T
  --open            let other machines ask without a token
  --seconds T       end by itself
  --help            show this

  Exit code: 0, 1 if it cannot be served, 2 for a wrong command line.`;

/** What the command line asks for. */
interface Request extends ChosenEngine {
  readonly port: number;
  readonly hostname: string;
  readonly token: string | null;
  readonly isOpen: boolean;
  readonly seconds: number | null;
}

async function main(): Promise<number> {
  const request = readRequest(Deno.args);
  if (request === "help") {
    say(USAGE);
    return 0;
  }
  using stop = stopSignal();
  const signal = withTimeLimit(stop.signal, request.seconds);
  if (request.path !== null) return await serve(request.path, request, signal);
  const path = ownPath();
  using engine = ownEngine(path, request.ranks);
  return await whileRunning(engine, signal, (both) => serve(path, request, both));
}

function readRequest(args: readonly string[]): Request | "help" {
  const flags = readFlags(args, {
    ...ENGINE_FLAGS,
    port: "string",
    host: "string",
    token: "string",
    open: "boolean",
    seconds: "string",
    help: "boolean",
  });
  if (flags.help) return "help";
  if (flags.token !== undefined && !/^[\x21-\x7e]+$/.test(flags.token)) {
    throw new UsageError("--token takes a text without blanks");
  }
  return {
    ...chosenEngine(flags),
    port: portFlag(flags.port, 8484),
    hostname: flags.host ?? "127.0.0.1",
    token: flags.token ?? null,
    isOpen: flags.open === true,
    seconds: numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null),
  };
}

/** Serves a slot file until the signal is aborted. @returns The exit code. */
async function serve(path: string, request: Request, signal: AbortSignal): Promise<number> {
  using reader = openReader(path);
  await using server = openServer(reader, request);
  const fragment = request.token === null ? "" : `#token=${encodeURIComponent(request.token)}`;
  say(request.path === null ? "A simulated engine. A real one: --instance-id X or --path P" : path);
  say(`Open ${server.url}${fragment}`);
  say(`  curl ${server.url}v1/loads`);
  if (reader.fault !== null) say(`${explain(reader.fault)}; it is served when it does`);
  await untilAborted(signal);
  return 0;
}

function openServer(reader: ShmLoadSnapshotReader, request: Request): LoadServer {
  const { hostname, port, token, isOpen } = request;
  try {
    return listenAt(port, () =>
      serveLoad(reader, {
        hostname,
        port,
        allowInsecureBind: isOpen,
        ...(token === null ? {} : { token }),
      }));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError(`--host ${hostname} lets other machines ask: say --token T, or --open`, {
      cause: error,
    });
  }
}

if (import.meta.main) await runCommand(USAGE, main);
