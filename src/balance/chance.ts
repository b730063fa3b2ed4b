/** Chance for ties and samples: from one seed the same on every machine, and nothing on the heap. */

/** A source of numbers from 0 to below 1. */
export type RandomSource = () => number;

/** Numbers from {@linkcode Chance.next} are below this. */
export const CHANCES: number = 2 ** 31;

/**
 * A generator of whole numbers (xorshift128). Numbers with a fraction would be objects on the heap
 * each time that they are returned.
 */
export class Chance {
  readonly #state = new Int32Array(4);

  /** @param random Is asked for a seed, once. */
  constructor(random: RandomSource) {
    for (let n = 0; n < this.#state.length; n++) this.#state[n] = Math.floor(random() * 2 ** 32);
    // All zeros would stay zeros, and a source that gives nothing usable gives those.
    this.#state[3] = this.#state[3]! | 1;
    for (let round = 0; round < 16; round++) this.next();
  }

  /** A whole number from 0 to below {@linkcode CHANCES}. */
  next(): number {
    const state = this.#state;
    let mixed = state[0]!;
    mixed ^= mixed << 11;
    mixed ^= mixed >>> 8;
    state[0] = state[1]!;
    state[1] = state[2]!;
    const last = state[2] = state[3]!;
    const next = last ^ (last >>> 19) ^ mixed;
    state[3] = next;
    return next >>> 1;
  }

  /** A whole number from 0 to below `count`. */
  index(count: number): number {
    return Math.floor(this.next() / CHANCES * count);
  }
}
