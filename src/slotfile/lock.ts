/** The lock that a slot file's readers and writers share with SGLang's: flock on the whole file. */

import { type Libc, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN } from "./libc.ts";

/**
 * Locks a file for a moment, and never waits in the kernel: a holder that was stopped would take
 * this isolate, and every request in it, along.
 */
export class FileLock {
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #operation: number;
  readonly #patienceMs: number;
  #failed = false;

  /**
   * @param patienceMs How long to try before giving up. After a failure there is one try each
   *   time, until one succeeds: a holder that was stopped costs its patience once.
   */
  constructor(libc: Libc, fd: number, mode: "shared" | "exclusive", patienceMs: number) {
    this.#libc = libc;
    this.#fd = fd;
    this.#operation = (mode === "shared" ? LOCK_SH : LOCK_EX) | LOCK_NB;
    this.#patienceMs = patienceMs;
  }

  /** Takes the lock; false if another process kept it. */
  take(): boolean {
    if (this.#libc.flock(this.#fd, this.#operation) === 0) {
      this.#failed = false;
      return true;
    }
    return this.#retry();
  }

  /** Gives the lock back. */
  release(): void {
    this.#libc.flock(this.#fd, LOCK_UN);
  }

  #retry(): boolean {
    if (this.#failed) return false;
    const deadline = performance.now() + this.#patienceMs;
    do {
      // Where the holder waits for this processor, it gets it.
      this.#libc.sched_yield();
      if (this.#libc.flock(this.#fd, this.#operation) === 0) return true;
    } while (performance.now() < deadline);
    this.#failed = true;
    return false;
  }
}
