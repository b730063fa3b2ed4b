/** Waking a worker that blocks in `zmq_poll`: an eventfd stands beside the socket in its poll set. */

import {
  acquireLibc,
  check,
  EFD_CLOEXEC,
  EFD_NONBLOCK,
  errnoName,
  errnoOf,
  type LibcLease,
  syscallError,
} from "../slotfile/libc.ts";

const NAME = "eventfd";
const WORD = 8n;

/** The main isolate's end: it makes and closes the descriptor. */
export class Wakeup {
  /** The descriptor; the worker, in the same process, uses it by number. */
  readonly fd: number;
  readonly #lease: LibcLease;
  readonly #one: Uint8Array<ArrayBuffer> = new Uint8Array(BigUint64Array.of(1n).buffer);
  #open = true;

  constructor() {
    this.#lease = acquireLibc(NAME);
    const { libc } = this.#lease;
    try {
      this.fd = check(libc, libc.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", NAME);
    } catch (error) {
      this.#lease.release();
      throw error;
    }
  }

  /** Wakes the worker, now or at its next poll. */
  wake(): void {
    if (this.#open) this.#lease.libc.write(this.fd, this.#one, WORD);
  }

  /** Closes the descriptor; only after the worker has ended. Twice is fine. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#lease.libc.close(this.fd);
    this.#lease.release();
  }
}

/** The worker's end: takes the wake-ups that came since the last time. */
export class WakeupReader {
  readonly #lease: LibcLease = acquireLibc(NAME);
  readonly #fd: number;
  readonly #word: Uint8Array<ArrayBuffer> = new Uint8Array(8);

  constructor(fd: number) {
    this.#fd = fd;
  }

  /**
   * Takes them all, so that the next poll waits for a new one.
   *
   * @throws {SlotFileError} If the descriptor is gone: polling it would return at once for ever.
   */
  drain(): void {
    const { libc } = this.#lease;
    if (libc.read(this.#fd, this.#word, WORD) >= 0) return;
    const errno = errnoOf(libc);
    const name = errnoName(errno);
    if (name === "EAGAIN" || name === "EINTR") return;
    throw syscallError(errno, "read", NAME);
  }

  /** Lets go of libc; the descriptor is the other end's. */
  close(): void {
    this.#lease.release();
  }
}
