/** The HTTP service of load with a server of its own. */

import type { LoadReader } from "../load_reader.ts";
import {
  createLoadHandler,
  type LoadHandler,
  type LoadHandlerOptions,
  type LoadHandlerStats,
} from "./load_handler.ts";

/** Options of {@linkcode serveLoad}. */
export interface LoadServerOptions extends LoadHandlerOptions {
  /** The address or name to listen at. @default {"127.0.0.1"} */
  readonly hostname?: string;
  /** The port to listen at; 0 has the system choose one. @default {0} */
  readonly port?: number;
  /**
   * Lets other machines ask without a token. Whoever reaches the port then sees the load. Without it,
   * an address beyond loopback needs {@linkcode LoadHandlerOptions.token}.
   *
   * @default {false}
   */
  readonly allowInsecureBind?: boolean;
  /** How long closing waits for answers under way, in milliseconds. @default {2000} */
  readonly closeTimeoutMs?: number;
}

/** A server that runs; see {@linkcode serveLoad}. */
export interface LoadServer extends AsyncDisposable {
  /** Where it is reached, such as `http://127.0.0.1:8000/`, with the mount path. */
  readonly url: string;
  /** The address that it is bound to. */
  readonly addr: Deno.NetAddr;
  /** Resolves when it has ended; it never rejects. */
  readonly closed: Promise<void>;
  /** Tells what the server has done so far. */
  stats(): LoadHandlerStats;
  /**
   * Ends all streams with a last word, lets other answers under way finish for a while, and frees
   * the port. The reader stays open. Twice is fine.
   */
  close(): Promise<void>;
}

/**
 * Serves the load of a reader, on loopback unless told otherwise. Needs `--allow-net` for the
 * address.
 *
 * @param reader Whose load is served. It stays the caller's, who closes it after the server.
 * @param options Where to listen, who may ask, and how much.
 * @returns The server, which listens already.
 * @throws {RangeError} If an option cannot be used.
 * @throws {TypeError} If other machines reach the address and there is no token.
 * @throws {Deno.errors.AddrInUse} If something else listens at the port.
 * @throws {Deno.errors.NotCapable} Without `--allow-net`.
 *
 * @example
 * ```ts
 * import { ShmLoadSnapshotReader, shmPathFor } from "./mod.ts";
 * import { serveLoad } from "./src/http/mod.ts";
 *
 * using reader = new ShmLoadSnapshotReader(shmPathFor("my-engine"));
 * await using server = serveLoad(reader);
 * const response = await fetch(new URL("v1/loads", server.url));
 * console.log((await response.json()).loads); // [], until there is such an engine
 * ```
 */
export function serveLoad(reader: LoadReader, options: LoadServerOptions = {}): LoadServer {
  const { hostname = "127.0.0.1", port = 0, closeTimeoutMs = 2000, basePath = "" } = options;
  if (options.token === undefined && options.allowInsecureBind !== true && !isLoopback(hostname)) {
    throw new TypeError(
      `Cannot serve at ${hostname}: other machines reach it, and without a token whoever does sees ` +
        "the load; give token, or bind to loopback, or say allowInsecureBind",
    );
  }
  const handler = createLoadHandler(reader, options);
  const abort = new AbortController();
  const server = Deno.serve({
    hostname,
    port,
    signal: abort.signal,
    onListen() {}, // Deno's would print
  }, handler.fetch);
  const { addr } = server;
  const host = addr.hostname.includes(":") ? `[${addr.hostname}]` : addr.hostname;
  let closing: Promise<void> | null = null;
  const close = () => closing ??= closeServer(server, handler, abort, closeTimeoutMs);
  return {
    url: `http://${host}:${addr.port}${basePath}/`,
    addr,
    closed: server.finished,
    stats: () => handler.stats(),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function closeServer(
  server: Deno.HttpServer<Deno.NetAddr>,
  handler: LoadHandler,
  abort: AbortController,
  timeoutMs: number,
): Promise<void> {
  // Who does not read its last word, or never ends its request, would keep the server for ever.
  const timer = setTimeout(() => abort.abort(), timeoutMs);
  try {
    await handler.close();
    await server.shutdown();
    await server.finished;
  } finally {
    clearTimeout(timer);
  }
}

function isLoopback(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
