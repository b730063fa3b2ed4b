/** Damages payloads at random, from a seed. */

import * as msgpack from "./msgpack.ts";

/** Heads that promise more than can follow, of every kind that has a length. */
const LIES: readonly Uint8Array[] = [0xc6, 0xc9, 0xdb, 0xdd, 0xdf].flatMap((tag) => [
  Uint8Array.of(tag, 0xff, 0xff, 0xff, 0xff),
  Uint8Array.of(tag, 0x00, 0x01, 0x00, 0x00),
  Uint8Array.of(tag - 1, 0xff, 0xff),
]);

/** What a nested value starts with. */
const OPENINGS: readonly Uint8Array[] = [
  Uint8Array.of(0x91),
  Uint8Array.of(0x81, 0xa0),
  Uint8Array.of(0xdc, 0x00, 0x01),
  Uint8Array.of(0x92, 0xc0),
];

/** Every seed is a different sequence, the same one on every machine. */
export class Mutator {
  readonly #corpus: readonly Uint8Array[];
  #state: number;

  /**
   * @param corpus What is damaged, and where pieces are taken from.
   * @param seed Any integer.
   */
  constructor(corpus: readonly Uint8Array[], seed: number) {
    this.#corpus = corpus;
    this.#state = seed | 0;
  }

  /** A payload of the corpus with one to four faults. */
  next(): Uint8Array {
    let bytes = this.#pick(this.#corpus).slice();
    for (let faults = 1 + this.#below(4); faults > 0; faults--) bytes = this.#damage(bytes);
    return bytes;
  }

  #damage(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    const at = this.#below(bytes.length + 1);
    switch (this.#below(10)) {
      case 0:
      case 1: // A bit.
        bytes[at] = bytes[at]! ^ (1 << this.#below(8));
        return bytes;
      case 2: // A byte.
        bytes[at] = this.#below(256);
        return bytes;
      case 3: // Cut off.
        return bytes.slice(0, at);
      case 4: // A piece less.
        return splice(bytes, at, this.#below(12), new Uint8Array());
      case 5: // A piece of another payload, or of this one, put in.
        return splice(bytes, at, 0, this.#piece(40));
      case 6: // The same, in the place of what was there.
        return splice(bytes, at, this.#below(40), this.#piece(40));
      case 7: // A length that is a lie.
        return splice(bytes, at, this.#below(6), this.#pick(LIES));
      case 8: { // Deep nesting.
        const depth = this.#below(8) === 0 ? this.#below(5000) : this.#below(80);
        const openings = Array<Uint8Array>(depth).fill(this.#pick(OPENINGS));
        return splice(bytes, at, this.#below(2), msgpack.join(openings));
      }
      default: // A tag in the place of another.
        bytes[at] = 0xc0 + this.#below(32);
        return bytes;
    }
  }

  #piece(longest: number): Uint8Array {
    const from = this.#pick(this.#corpus);
    const start = this.#below(from.length);
    return from.subarray(start, start + 1 + this.#below(longest));
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[this.#below(items.length)]!;
  }

  /** An integer from 0 on, below a limit: a Weyl sequence through an integer hash. */
  #below(limit: number): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let hash = this.#state;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return ((hash ^ (hash >>> 16)) >>> 0) % Math.max(1, limit);
  }
}

function splice(
  bytes: Uint8Array,
  at: number,
  less: number,
  more: Uint8Array,
): Uint8Array<ArrayBuffer> {
  return msgpack.concat(bytes.subarray(0, at), more, bytes.subarray(at + less));
}
