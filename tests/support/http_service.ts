/** A service of load in a process of its own, and connections to it that no good client makes. */

import { fileURLToPath } from "node:url";
import type { LoadServerOptions } from "../../src/http/mod.ts";
import type { ServiceState } from "../process/fixtures/http_service.ts";
import { Child } from "./child.ts";
import { HANG_MS } from "./wait.ts";

/** One running service. */
export class HttpService implements AsyncDisposable {
  /** Where it is reached, with a slash at the end. */
  readonly url: string;
  readonly #child: Child;

  private constructor(child: Child, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** Serves a slot file. */
  static async start(path: string, options: LoadServerOptions = {}): Promise<HttpService> {
    const script = fileURLToPath(new URL("../process/fixtures/http_service.ts", import.meta.url));
    const child = Child.deno([
      ...["--allow-ffi", "--allow-read", "--allow-net=127.0.0.1", "--v8-flags=--expose-gc"],
      ...[script, path, JSON.stringify(options)],
    ]);
    try {
      return new HttpService(child, JSON.parse(await child.line()));
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What it says of itself. */
  state(): Promise<ServiceState> {
    return this.#child.ask("state");
  }

  /** Asks again and again, until what it says of itself is so. */
  async until(what: string, isSo: (state: ServiceState) => boolean): Promise<ServiceState> {
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      const state = await this.state();
      if (isSo(state)) return state;
      if (performance.now() > deadline) {
        throw new Error(`Waited in vain until ${what}: ${JSON.stringify(state)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Opens the live stream. */
  stream(headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch(new URL("v1/loads/stream", this.url), { headers });
  }

  /** Asks for a route, and reads the whole answer. */
  async get(route: string): Promise<{ readonly status: number; readonly text: string }> {
    const response = await fetch(new URL(route, this.url));
    return { status: response.status, text: await response.text() };
  }

  /** A connection without HTTP. */
  connect(): Promise<Deno.TcpConn> {
    return Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(this.url).port) });
  }

  /** Ends it in order. @returns What it said that nobody asked for. */
  async end(): Promise<{ readonly code: number; readonly stderr: string }> {
    const { code, stderr } = await this.#child.end();
    return { code, stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }
}

/** Sends bytes and takes what comes back, up to its first line. */
export async function firstLineOf(service: HttpService, request: string): Promise<string> {
  using connection = await service.connect();
  const writer = connection.writable.getWriter();
  // What refuses a request may do so before it has read all of it.
  const writing = writer.write(new TextEncoder().encode(request)).catch(() => {});
  const bytes = new Uint8Array(1024);
  const length = await connection.read(bytes).catch(() => null);
  await writing;
  return length === null
    ? ""
    : new TextDecoder().decode(bytes.subarray(0, length)).split("\r\n")[0]!;
}
