/** One rank's slot as a reader knows it: the bytes that it saw last, and what they meant. */

import { SnapshotDecodeError } from "../errors.ts";
import { SnapshotDecoder } from "../snapshot/decoder.ts";
import { decodeFixedLayout, FIXED_PAYLOAD_SIZE } from "../snapshot/fixed_layout.ts";
import { createImage, type Image, PAYLOAD_AT } from "../snapshot/image.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { FIXED_VERSION, type Header, HEADER_SIZE, LENGTH_SIZE } from "./layout.ts";
import type { Libc } from "./libc.ts";

const FIRST_GUESS = 1024;
const SLACK = 256;

/** How a slot's bytes become a snapshot, by layout version. */
interface SlotCodec {
  /** The bytes that were decoded last, and how many of them count. */
  readonly image: Image;
  readonly end: number;
  /** Decodes; `null` when nothing was published. Throws SnapshotDecodeError. */
  decode(incoming: Image, end: number): LoadSnapshot | null;
}

/** What is known of one rank. */
export class Slot {
  /** The last good snapshot, or `null`. */
  snapshot: LoadSnapshot | null = null;
  /** Why the bytes that stand in the slot now are not a snapshot, or `null`. */
  fault: SnapshotDecodeError | null = null;
  /** When the last good snapshot was first seen here, in ms of the wall clock. */
  seenAtMs = 0;

  readonly #start: bigint;
  readonly #slotSize: number;
  readonly #isFixed: boolean;
  readonly #codec: SlotCodec;
  // The bytes seen last, kept as memcmp takes them: an address and a length.
  #bytes: Uint8Array | null = null;
  #seenAt = 0n;
  #seenLength = 0n;

  constructor(base: bigint, dpRank: number, header: Header) {
    this.#start = base + BigInt(HEADER_SIZE + dpRank * header.slotSize);
    this.#slotSize = header.slotSize;
    this.#isFixed = header.version === FIXED_VERSION;
    this.#codec = this.#isFixed ? new FixedCodec() : new PayloadCodec();
  }

  /**
   * Whether the slot differs from what was seen last. No lock, no system call, no allocation.
   *
   * @param at Where to look: the slot itself, or a copy of it.
   */
  hasChanged(libc: Libc, at: bigint = this.#start): boolean {
    return this.#bytes === null || libc.memcmp(at, this.#seenAt, this.#seenLength) !== 0;
  }

  /** Copies the slot out. Only under the lock. */
  copy(libc: Libc, target: Scratch): void {
    // The next payload is about as long as the last one; one call is nearly always enough.
    const guess = Math.min(this.#slotSize, Math.max(FIRST_GUESS, this.#codec.end + SLACK));
    target.reserve(guess, 0);
    libc.memcpy(target.at, this.#start, BigInt(guess));
    const end = this.#endIn(target.image);
    if (end > guess) {
      target.reserve(end, guess);
      const done = BigInt(guess);
      libc.memcpy(target.at + done, this.#start + done, BigInt(end) - done);
    }
  }

  /**
   * Takes over what was copied out, outside the lock.
   *
   * @returns Whether there is a new snapshot.
   */
  accept(incoming: Image, nowMs: number): boolean {
    const before = this.snapshot;
    this.fault = null;
    try {
      const end = this.#endIn(incoming);
      const snapshot = this.#codec.decode(incoming, end);
      // An empty slot is a write that is under way, or that its writer's death cut off.
      if (snapshot !== null) this.snapshot = snapshot;
    } catch (error) {
      if (!(error instanceof SnapshotDecodeError)) throw error;
      this.fault = error;
    }
    this.#remember();
    if (this.snapshot === before) return false;
    this.seenAtMs = nowMs;
    return true;
  }

  /** Where the bytes that count end; a length that cannot be counts as no payload. */
  #endIn(image: Image): number {
    if (this.#isFixed) return FIXED_PAYLOAD_SIZE;
    const length = image.view.getUint32(0, true);
    return length > this.#slotSize - LENGTH_SIZE ? LENGTH_SIZE : LENGTH_SIZE + length;
  }

  #remember(): void {
    const { image, end } = this.#codec;
    if (this.#bytes !== image.bytes) {
      this.#bytes = image.bytes;
      this.#seenAt = addressOf(image.bytes);
    }
    if (this.#seenLength !== BigInt(end)) this.#seenLength = BigInt(end);
  }
}

/** A buffer that slots are copied into, one after the other. */
export class Scratch {
  image: Image = createImage(FIRST_GUESS);
  /** The address of its bytes. */
  at: bigint = addressOf(this.image.bytes);

  /** Makes room, and keeps the first bytes. */
  reserve(byteLength: number, keep: number): void {
    if (this.image.bytes.length >= byteLength) return;
    const larger = createImage(byteLength * 2);
    larger.bytes.set(this.image.bytes.subarray(0, keep));
    this.image = larger;
    this.at = addressOf(larger.bytes);
  }
}

/** The address of bytes. It stays the same as long as they are referenced. */
function addressOf(bytes: Uint8Array<ArrayBuffer>): bigint {
  return Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes));
}

/** Version 2: a length, then MessagePack. */
class PayloadCodec implements SlotCodec {
  readonly #decoder: SnapshotDecoder = new SnapshotDecoder();
  // Only the length was seen: the slot is empty, or its length cannot be.
  readonly #lengthOnly: Image = createImage(LENGTH_SIZE);
  #isEmpty = false;

  get image(): Image {
    return this.#isEmpty ? this.#lengthOnly : this.#decoder.image;
  }

  get end(): number {
    return this.#isEmpty ? LENGTH_SIZE : this.#decoder.end;
  }

  decode(incoming: Image, end: number): LoadSnapshot | null {
    this.#isEmpty = end === LENGTH_SIZE;
    if (!this.#isEmpty) return this.#decoder.decode(incoming, end);
    this.#lengthOnly.words[0] = incoming.words[0]!;
    const length = incoming.view.getUint32(0, true);
    if (length === 0) return null;
    throw new SnapshotDecodeError(`a length of ${length}, beyond the slot`, -PAYLOAD_AT);
  }
}

/** Version 1: fixed places. Zeros are what the file was made with. */
class FixedCodec implements SlotCodec {
  readonly image: Image = createImage(FIXED_PAYLOAD_SIZE);
  readonly end: number = FIXED_PAYLOAD_SIZE;

  decode(incoming: Image, end: number): LoadSnapshot | null {
    this.image.bytes.set(incoming.bytes.subarray(0, end));
    if (this.image.words.subarray(0, end >> 2).every((word) => word === 0)) return null;
    return decodeFixedLayout(this.image.view, 0);
  }
}
