/**
 * The newest message of each rank, in shared memory: one writer, any number of readers, and none of
 * them ever waits.
 *
 * Each rank has a version and two places. The writer fills the place that the version does not point
 * to, then moves the version on. So a reader is only disturbed if the version has moved while it
 * copied; a writer that is stopped in the middle of a message keeps nobody out.
 *
 * Every word of a message is stored and loaded atomically. Plain ones could pass the version on an
 * arm64 processor, and a reader would take a torn message for a whole one. It costs a fifth of a
 * microsecond, once for each rank and batch.
 */

import { RECORD_LENGTH } from "./message_record.ts";

const WORDS = RECORD_LENGTH * 2;

/** How often a reader tries again before it gives up for this time. */
const ATTEMPTS = 8;

/** One view of the table; each side makes its own. */
export class RankTable {
  readonly #versions: Int32Array<SharedArrayBuffer>;
  readonly #words: Int32Array<SharedArrayBuffer>;

  /** How many bytes a table takes. */
  static byteLength(ranks: number): number {
    return ranks * 8 + ranks * 2 * WORDS * 4;
  }

  /**
   * @param ranks How many ranks there can be.
   * @param buffer The block.
   * @param offset Where the table stands in it.
   */
  constructor(ranks: number, buffer: SharedArrayBuffer, offset: number) {
    this.#versions = new Int32Array(buffer, offset, ranks);
    this.#words = new Int32Array(buffer, offset + ranks * 8, ranks * 2 * WORDS);
  }

  /** Puts a rank's newest message in. Only in the worker. */
  put(dpRank: number, record: Float64Array<ArrayBuffer>): void {
    const words = new Int32Array(record.buffer, record.byteOffset, WORDS);
    const version = Atomics.load(this.#versions, dpRank);
    const next = after(version);
    const at = placeOf(dpRank, next);
    for (let n = 0; n < WORDS; n++) Atomics.store(this.#words, at + n, words[n]!);
    // Pairs with the loads in `read`: who sees this version sees the whole message.
    Atomics.store(this.#versions, dpRank, next);
  }

  /** A rank's version: 0 until it was heard, and another one after each message. */
  version(dpRank: number): number {
    return Atomics.load(this.#versions, dpRank);
  }

  /**
   * Copies a rank's newest message.
   *
   * @param dpRank The rank.
   * @param record Gets the message.
   * @returns The version that was copied; 0 if there is none, or if newer ones came faster than one
   *   could be copied.
   */
  read(dpRank: number, record: Float64Array<ArrayBuffer>): number {
    const words = new Int32Array(record.buffer, record.byteOffset, WORDS);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      // Both loads pair with the store in `put`. If it is the same version after the copy, the writer
      // has at most been busy with the other place.
      const version = Atomics.load(this.#versions, dpRank);
      if (version === 0) return 0;
      const at = placeOf(dpRank, version);
      for (let n = 0; n < WORDS; n++) words[n] = Atomics.load(this.#words, at + n);
      if (Atomics.load(this.#versions, dpRank) === version) return version;
    }
    return 0;
  }
}

/** The next version. It wraps around, and leaves 0 out, but not the place that 0 would point to. */
function after(version: number): number {
  const next = (version + 1) | 0;
  return next === 0 ? 2 : next;
}

function placeOf(dpRank: number, version: number): number {
  return (dpRank * 2 + (version & 1)) * WORDS;
}
