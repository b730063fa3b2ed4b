/** Waiting for sockets and descriptors, in a worker. */

import { checkZmq, EINTR, type Libzmq } from "./libzmq.ts";

const ITEM_SIZE = 16; // void *socket; int fd; short events; short revents
const POLLIN = 1;

/** What can be waited for: a socket by its handle, or a descriptor. */
export type PollSource = { readonly handle: Deno.PointerValue } | { readonly fd: number };

/** Sources of which one may have something to read. */
export class PollSet {
  readonly #libzmq: Libzmq;
  readonly #count: number;
  readonly #items: Uint8Array<ArrayBuffer>;
  readonly #view: DataView<ArrayBuffer>;

  /**
   * @param libzmq libzmq.
   * @param sources In the order in which {@linkcode isReady} counts them. They must stay open.
   */
  constructor(libzmq: Libzmq, sources: readonly PollSource[]) {
    this.#libzmq = libzmq;
    this.#count = sources.length;
    this.#items = new Uint8Array(sources.length * ITEM_SIZE);
    this.#view = new DataView(this.#items.buffer);
    sources.forEach((source, index) => {
      const at = index * ITEM_SIZE;
      if ("handle" in source) {
        this.#view.setBigUint64(at, Deno.UnsafePointer.value(source.handle), true);
      } else {
        this.#view.setInt32(at + 8, source.fd, true);
      }
      this.#view.setInt16(at + 12, POLLIN, true);
    });
  }

  /**
   * Blocks the isolate until a source has something to read, or the time is up.
   *
   * @param timeoutMs 0 does not wait, -1 waits for ever.
   * @returns How many sources have something; 0 also after a signal.
   * @throws {ZmqError} If a source is closed.
   */
  wait(timeoutMs: number): number {
    const ready = this.#libzmq.zmq_poll(this.#items, this.#count, BigInt(timeoutMs));
    if (ready < 0 && this.#libzmq.zmq_errno() === EINTR) return 0;
    return checkZmq(this.#libzmq, ready, "zmq_poll", null);
  }

  /** Whether a source had something to read when {@linkcode wait} returned. */
  isReady(index: number): boolean {
    return this.#view.getInt16(index * ITEM_SIZE + 14, true) !== 0;
  }
}
