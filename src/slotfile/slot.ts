/** One rank's slot as a reader knows it: the bytes that it saw last, and what they meant. */

import { SnapshotDecodeError } from "../errors.ts";
import { SnapshotDecoder } from "../snapshot/decoder.ts";
import { decodeFixedLayout, FIXED_PAYLOAD_SIZE } from "../snapshot/fixed_layout.ts";
import { createImage, type Image, type ImageHolder } from "../snapshot/image.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import type { ShapeCache } from "../snapshot/shape_cache.ts";
import type { Workspace } from "../snapshot/workspace.ts";
import { addressOf } from "./address.ts";
import { FIXED_VERSION, type Header, HEADER_SIZE, LENGTH_SIZE } from "./layout.ts";
import type { Libc } from "./libc.ts";
import { sizeT } from "./size_t.ts";

const FIRST_GUESS = 512;
const SLACK = 64;
// How often a copy made without the lock is compared with the slot again.
const LOOKS = 2;

/** How a slot's bytes become a snapshot, by layout version. */
interface SlotCodec {
  /** The bytes that were decoded last, and how many of them count. */
  readonly image: Image;
  readonly end: number;
  /**
   * Decodes; `null` when nothing was published. Throws SnapshotDecodeError. The image may be kept:
   * then another one takes its place.
   */
  decode(incoming: ImageHolder, end: number): LoadSnapshot | null;
}

/** What is known of one rank. */
export class Slot {
  /** The last good snapshot, or `null`. */
  snapshot: LoadSnapshot | null = null;
  /** Whether the snapshot is what was found when the slot was looked at last. */
  isCurrent = false;
  /** Why the bytes that stand in the slot now are not a snapshot, or `null`. */
  fault: SnapshotDecodeError | null = null;
  /** When the last good snapshot was first seen here, in ms of the reader's clock. */
  seenAtMs = 0;

  readonly #start: bigint;
  readonly #slotSize: number;
  readonly #isFixed: boolean;
  readonly #codec: SlotCodec;
  // The bytes seen last, kept as memcmp takes them: an address and a length.
  #seen: Image | null = null;
  #seenAt = 0n;
  #seenEnd = 0;
  #seenLength = 0n;
  #guess = 0;
  #guessLength = 0n;

  constructor(base: bigint, dpRank: number, header: Header, shapes: ShapeCache) {
    this.#start = base + BigInt(HEADER_SIZE + dpRank * header.slotSize);
    this.#slotSize = header.slotSize;
    this.#isFixed = header.version === FIXED_VERSION;
    this.#codec = this.#isFixed ? new FixedCodec() : new PayloadCodec(shapes);
    this.#guessBytes(FIRST_GUESS);
  }

  /**
   * Whether the slot differs from what was seen last. No lock, no system call, no allocation.
   *
   * @param at Where to look: the slot itself, or a copy of it.
   */
  hasChanged(libc: Libc, at: bigint = this.#start): boolean {
    return this.#seen === null || libc.memcmp(at, this.#seenAt, this.#seenLength) !== 0;
  }

  /**
   * Copies the slot out without the lock, if it holds still meanwhile.
   *
   * Every writer stores the length 0, then the payload, then the length, and x86-64 shows stores in
   * their order. A torn copy has bytes of two publications, and the length of the first: so it was
   * begun before the second was. A look that comes after it finds the second whole, or its length 0,
   * and so differs: for the copy has the timestamp of the one or of the other, and bytes of both. It
   * would take a third publication with the very bytes of the first, timestamp and all, stored just
   * while the look passes the place where the copy tore. A second look asks that of chance twice.
   *
   * A length of 0 is a publication that is not there yet: what was published last still counts.
   */
  copyIfStill(libc: Libc, target: Scratch): boolean {
    target.reserve(this.#guess, 0);
    libc.memcpy(target.at, this.#start, this.#guessLength);
    const length = target.image.words[0]!;
    const end = LENGTH_SIZE + length;
    if (length === 0) return true;
    // A longer payload than expected is read under the lock, which also makes the guess longer.
    if (length < 0 || end > this.#guess) return false;
    const byteLength = sizeT(end);
    for (let look = 0; look < LOOKS; look++) {
      if (libc.memcmp(this.#start, target.at, byteLength) !== 0) return false;
    }
    return true;
  }

  /** Copies the slot out. Only under the lock. */
  copy(libc: Libc, target: Scratch): void {
    // The next payload is about as long as the last one; one call is nearly always enough.
    target.reserve(this.#guess, 0);
    libc.memcpy(target.at, this.#start, this.#guessLength);
    const end = this.#endIn(target.image);
    if (end > this.#guess) {
      target.reserve(end, this.#guess);
      const done = this.#guessLength;
      libc.memcpy(target.at + done, this.#start + done, sizeT(end) - done);
    }
  }

  /** Whether a copy could lack its end: if the file were cut off in it, zeros would stand there. */
  mayBeCutOff(copy: Image): boolean {
    const end = this.#endIn(copy);
    return end > LENGTH_SIZE && copy.bytes[end - 1] === 0;
  }

  /**
   * Takes over what was copied out, outside the lock; afterwards the copy is to be made anew.
   *
   * @returns Whether there is a new snapshot.
   */
  accept(incoming: ImageHolder, nowMs: number): boolean {
    const before = this.snapshot;
    this.fault = null;
    this.isCurrent = false;
    try {
      const end = this.#endIn(incoming.image);
      const snapshot = this.#codec.decode(incoming, end);
      // An empty slot is a write that is under way, or that its writer's death cut off.
      if (snapshot !== null) {
        this.snapshot = snapshot;
        this.isCurrent = true;
      }
    } catch (error) {
      if (!(error instanceof SnapshotDecodeError)) throw error;
      this.fault = error;
    }
    this.#remember();
    if (this.snapshot === before) return false;
    this.seenAtMs = nowMs;
    return true;
  }

  /** Takes back what was seen last, so that the next look reads the slot again. */
  forget(): void {
    this.fault = null;
    this.#seen = null;
  }

  /** Where the bytes that count end; a length that cannot be counts as no payload. */
  #endIn(image: Image): number {
    if (this.#isFixed) return FIXED_PAYLOAD_SIZE;
    const length = image.view.getUint32(0, true);
    return length > this.#slotSize - LENGTH_SIZE ? LENGTH_SIZE : LENGTH_SIZE + length;
  }

  #remember(): void {
    const { image, end } = this.#codec;
    this.#seen = image;
    this.#seenAt = addressOf(image);
    if (this.#seenEnd === end) return;
    this.#seenEnd = end;
    this.#seenLength = sizeT(end);
    // Lengths go up and down by a few bytes; the guess need not follow.
    if (end + SLACK / 4 > this.#guess || end + 16 * SLACK < this.#guess) {
      this.#guessBytes(end + SLACK);
    }
  }

  #guessBytes(byteLength: number): void {
    this.#guess = Math.min(this.#slotSize, Math.max(FIRST_GUESS, byteLength));
    this.#guessLength = sizeT(this.#guess);
  }
}

/** A buffer that slots are copied into, one after the other. */
export class Scratch implements ImageHolder {
  image: Image;
  readonly #workspace: Workspace;

  /** @param workspace Where its images are made. */
  constructor(workspace: Workspace) {
    this.#workspace = workspace;
    this.image = workspace.createImage(FIRST_GUESS);
  }

  /** The address of its bytes. */
  get at(): bigint {
    return addressOf(this.image);
  }

  /** Makes room, and keeps the first bytes. */
  reserve(byteLength: number, keep: number): void {
    const { image } = this;
    const isLongEnough = image.bytes.length >= byteLength;
    if (isLongEnough && !this.#workspace.hasBetter(image, byteLength)) return;
    const next = this.#workspace.createImage(isLongEnough ? byteLength : byteLength * 2);
    next.bytes.set(image.bytes.subarray(0, keep));
    this.#workspace.giveBack(image);
    this.image = next;
  }
}

// What every slot is made with; shared, and never written to.
const EMPTY: Image = createImage(LENGTH_SIZE);

/** Version 2: a length, then MessagePack. A rank that never published costs no buffers. */
class PayloadCodec implements SlotCodec {
  readonly #shapes: ShapeCache;
  #decoder: SnapshotDecoder | null = null;
  // The image if only a length was seen: the slot is empty, or its length cannot be.
  #lengthOnly: Image | null = EMPTY;

  constructor(shapes: ShapeCache) {
    this.#shapes = shapes;
  }

  get image(): Image {
    return this.#lengthOnly ?? this.#decoder!.image;
  }

  get end(): number {
    return this.#lengthOnly === null ? this.#decoder!.end : LENGTH_SIZE;
  }

  decode(incoming: ImageHolder, end: number): LoadSnapshot | null {
    if (end > LENGTH_SIZE) {
      this.#lengthOnly = null;
      this.#decoder ??= new SnapshotDecoder(this.#shapes);
      return this.#decoder.decode(incoming, end);
    }
    const length = incoming.image.view.getUint32(0, true);
    this.#lengthOnly = length === 0 ? EMPTY : createImage(LENGTH_SIZE);
    if (length === 0) return null;
    this.#lengthOnly.view.setUint32(0, length, true);
    throw new SnapshotDecodeError(`a length of ${length}, beyond the slot`, 0);
  }
}

/** Version 1: fixed places. Zeros are what the file was made with. */
class FixedCodec implements SlotCodec {
  readonly image: Image = createImage(FIXED_PAYLOAD_SIZE);
  readonly end: number = FIXED_PAYLOAD_SIZE;

  decode(incoming: ImageHolder, end: number): LoadSnapshot | null {
    this.image.bytes.set(incoming.image.bytes.subarray(0, end));
    if (this.image.words.subarray(0, end >> 2).every((word) => word === 0)) return null;
    return decodeFixedLayout(this.image.view, 0);
  }
}
