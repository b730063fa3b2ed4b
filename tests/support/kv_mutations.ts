/** Valid pickles with something changed: a generator that gives the same ones each time. */

import { KV_VECTORS } from "./kv_vectors.ts";
import { type Code, join, uint } from "./pickle.ts";

/** Bytes that change what is done rather than what with: instructions, and ends of numbers. */
const TELLING = Uint8Array.of(
  ...[0x28, 0x29, 0x2e, 0x30, 0x32, 0x43, 0x47, 0x4a, 0x4b, 0x4d, 0x4e, 0x51, 0x52, 0x58, 0x5d],
  ...[0x62, 0x63, 0x65, 0x68, 0x69, 0x6a, 0x6f, 0x71, 0x72, 0x73, 0x74, 0x75, 0x7d, 0x80, 0x81],
  ...[0x82, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x92, 0x93, 0x94, 0x95, 0x97, 0x98],
  ...[0x00, 0x01, 0x7f, 0xff],
);

/** Makes mutations. */
export class KvMutations {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** The next mutation. */
  next(): Code {
    let mutant = KV_VECTORS[this.#below(KV_VECTORS.length)]!.pickle;
    const steps = 1 + this.#below(3);
    for (let n = 0; n < steps; n++) mutant = this.#change(mutant);
    // A wrong frame hides all else, so most are made right again.
    return this.#below(8) === 0 ? mutant : reframed(mutant);
  }

  #change(code: Code): Code {
    const at = this.#below(code.length);
    const end = Math.min(code.length, at + 1 + this.#below(12));
    switch (this.#below(8)) {
      case 0: {
        const changed = code.slice();
        changed[at]! ^= 1 << this.#below(8);
        return changed;
      }
      case 1:
      case 2: {
        const changed = code.slice();
        changed[at] = this.#byte();
        return changed;
      }
      case 3:
        return join(code.subarray(0, at), Uint8Array.of(this.#byte()), code.subarray(at));
      case 4:
        return join(code.subarray(0, at), code.subarray(at + 1));
      case 5:
        return join(code.subarray(0, at), code.subarray(end));
      case 6:
        return join(code.subarray(0, end), code.subarray(at));
      default: {
        const other = KV_VECTORS[this.#below(KV_VECTORS.length)]!.pickle;
        const from = this.#below(other.length);
        return join(code.subarray(0, at), other.subarray(from, from + 40), code.subarray(end));
      }
    }
  }

  #byte(): number {
    return this.#below(2) === 0 ? this.#below(256) : TELLING[this.#below(TELLING.length)]!;
  }

  /** A number from 0, less than the limit: xorshift, so that it needs no state but one word. */
  #below(limit: number): number {
    let word = this.#state;
    word ^= word << 13;
    word ^= word >>> 17;
    word ^= word << 5;
    this.#state = word;
    return (word >>> 0) % Math.max(1, limit);
  }
}

function reframed(code: Code): Code {
  if (code[2] !== 0x95 || code.length < 11) return code;
  return join(code.subarray(0, 3), uint(8, code.length - 11), code.subarray(11));
}
