/** Storing payloads into one rank's slot, so that a death at any point leaves it whole or empty. */

import { HEADER_SIZE, LENGTH_SIZE } from "./layout.ts";
import type { Libc } from "./libc.ts";
import type { Mapping } from "./mapping.ts";
import { sizeT } from "./size_t.ts";

/** One slot of a mapping, for writing. */
export class SlotStore {
  readonly #libc: Libc;
  readonly #payloadAt: bigint;
  readonly #bytes: Uint8Array;
  readonly #length: Int32Array;
  // Where the last payload ends; everything behind it is zero.
  #filled: number;

  constructor(libc: Libc, mapping: Mapping, dpRank: number, slotSize: number) {
    const offset = HEADER_SIZE + dpRank * slotSize;
    const buffer = mapping.view(offset, slotSize);
    this.#libc = libc;
    this.#payloadAt = mapping.base + BigInt(offset + LENGTH_SIZE);
    this.#bytes = new Uint8Array(buffer);
    this.#length = new Int32Array(buffer, 0, 1);
    this.#filled = slotSize;
  }

  /**
   * Stores a payload. Only under the lock.
   *
   * @param from The address of the payload.
   * @param byteLength Its length; it must fit the slot.
   */
  store(from: bigint, byteLength: number): void {
    const size = sizeT(byteLength);
    // Length 0 says that a write is under way. It must be seen before the payload changes and
    // after the payload stands: by readers that look without the lock (copyIfStill in slot.ts), and
    // by everyone if this process dies in between. Stores of Atomics keep the others between them.
    Atomics.store(this.#length, 0, 0);
    this.#libc.memcpy(this.#payloadAt, from, size);
    const end = LENGTH_SIZE + byteLength;
    if (end < this.#filled) this.#bytes.fill(0, end, this.#filled);
    Atomics.store(this.#length, 0, byteLength);
    this.#filled = end;
  }
}
