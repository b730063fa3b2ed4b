/** A TCP relay between writers and their collector, which delays, cuts and resets. */

interface Chunk {
  readonly dueMs: number;
  readonly bytes: Uint8Array;
}

/** Bytes that may be on their way in one direction; a sender beyond that is held up. */
const MOST_WAITING = 1024 * 1024;

/** Takes connections at an address, and passes on what comes. */
export class Relay implements AsyncDisposable {
  /** How late everything arrives, in milliseconds. */
  delayMs = 0;
  readonly #listener: Deno.TcpListener;
  readonly #target: () => number | null;
  readonly #open = new Set<Deno.TcpConn>();
  readonly #accepting: Promise<void>;
  readonly #pumps = new Set<Promise<void>>();

  /**
   * @param hostname The address to listen at.
   * @param target The port of the collector on this machine, or `null` while there is none.
   */
  constructor(hostname: string, target: () => number | null) {
    this.#listener = Deno.listen({ hostname, port: 0 });
    this.#target = target;
    this.#accepting = this.#accept();
  }

  /** Where writers connect. */
  get endpoint(): string {
    const { hostname, port } = this.#listener.addr;
    return `tcp://${hostname}:${port}`;
  }

  /** Breaks all connections. */
  reset(): void {
    for (const connection of this.#open) this.#close(connection);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.reset();
    await this.#accepting;
    await Promise.all(this.#pumps);
  }

  async #accept(): Promise<void> {
    for await (const connection of this.#listener) {
      const pump = this.#connect(connection).catch(() => this.#close(connection));
      this.#pumps.add(pump);
      void pump.then(() => this.#pumps.delete(pump));
    }
  }

  async #connect(from: Deno.TcpConn): Promise<void> {
    this.#open.add(from);
    const port = this.#target();
    if (port === null) return this.#close(from);
    const to = await Deno.connect({ hostname: "127.0.0.1", port });
    this.#open.add(to);
    await Promise.all([this.#pump(from, to), this.#pump(to, from)]);
  }

  /** Passes on one direction, in order. */
  async #pump(from: Deno.TcpConn, to: Deno.TcpConn): Promise<void> {
    const waiting: Chunk[] = [];
    let size = 0;
    let isOver = false;
    let wake = () => {};
    const writing = (async () => {
      while (!isOver || waiting.length > 0) {
        const chunk = waiting.shift();
        if (chunk === undefined) {
          await new Promise<void>((resolve) => wake = resolve);
          continue;
        }
        const restMs = chunk.dueMs - performance.now();
        if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
        for (let at = 0; at < chunk.bytes.length;) at += await to.write(chunk.bytes.subarray(at));
        size -= chunk.bytes.length;
      }
    })().catch(() => {});
    try {
      const buffer = new Uint8Array(16 * 1024);
      for (;;) {
        const got = await from.read(buffer);
        if (got === null) break;
        waiting.push({ dueMs: performance.now() + this.delayMs, bytes: buffer.slice(0, got) });
        size += got;
        wake();
        while (size > MOST_WAITING) await new Promise((resolve) => setTimeout(resolve, 5));
      }
    } catch {
      // A broken connection ends both directions.
    }
    isOver = true;
    wake();
    await writing;
    this.#close(from);
    this.#close(to);
  }

  #close(connection: Deno.TcpConn): void {
    if (!this.#open.delete(connection)) return;
    connection.close();
  }
}
