/** A clock that ticks every few milliseconds and costs next to nothing. */

import { CLOCK_MONOTONIC_COARSE, type Libc } from "./libc.ts";

/** Tells milliseconds since some start, in steps of about 4, without a system call. */
export class CoarseClock {
  readonly #libc: Libc;
  readonly #time: Uint8Array<ArrayBuffer> = new Uint8Array(16);
  readonly #words: Uint32Array = new Uint32Array(this.#time.buffer);

  constructor(libc: Libc) {
    this.#libc = libc;
  }

  /** Milliseconds; never goes back. */
  nowMs(): number {
    this.#libc.clock_gettime(CLOCK_MONOTONIC_COARSE, this.#time);
    // struct timespec, little endian: 64 bits of seconds, whose upper half stays 0 for 136 years.
    return this.#words[0]! * 1000 + this.#words[2]! / 1e6;
  }
}
