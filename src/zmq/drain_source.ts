/** The collector's socket, with all that its thread waits for beside it. */

import type { MessageSource } from "./drain_loop.ts";
import { PollSet } from "./poll_set.ts";
import type { PullSocket } from "./socket.ts";
import { WakeupReader } from "./wakeup.ts";

// Places in the poll set; the socket stands at 0.
const WAKEUP = 1;
const ZAP = 2;

/** A PULL socket, an eventfd that wakes, and who answers whether a client is let in. */
export class DrainSource implements MessageSource {
  readonly #socket: PullSocket;
  readonly #wakeup: WakeupReader;
  readonly #polls: PollSet;

  constructor(socket: PullSocket, wakeupFd: number) {
    this.#socket = socket;
    this.#wakeup = new WakeupReader(wakeupFd);
    const sources = [{ handle: socket.handle }, { fd: wakeupFd }];
    if (socket.zap !== null) sources[ZAP] = { handle: socket.zap.handle };
    this.#polls = new PollSet(socket.libzmq, sources);
  }

  /** How many connections CURVE refused. */
  get refusedPeers(): number {
    return this.#socket.zap?.denied ?? 0;
  }

  /** Waits for a message; answers clients that knock meanwhile. */
  wait(timeoutMs: number): void {
    if (this.#polls.wait(timeoutMs) === 0) return;
    if (this.#polls.isReady(WAKEUP)) this.#wakeup.drain();
    if (this.#socket.zap !== null && this.#polls.isReady(ZAP)) this.#socket.zap.answer();
  }

  /** Takes a message; see PullSocket. */
  receive(buffer: Uint8Array<ArrayBuffer>): number {
    return this.#socket.receive(buffer);
  }

  /** Closes the socket. */
  close(): void {
    this.#socket.close();
    this.#wakeup.close();
  }
}
