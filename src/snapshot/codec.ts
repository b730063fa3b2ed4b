/** One snapshot at a time, whosever it is. */

import { SnapshotDecodeError } from "../errors.ts";
import { buildSnapshot } from "./build_snapshot.ts";
import { SnapshotEncoder } from "./encoder.ts";
import { withFlatSections } from "./flat_sections.ts";
import { createImage, type Image, PAYLOAD_AT } from "./image.ts";
import type { LoadSnapshot } from "./load_snapshot.ts";
import { Shape } from "./shape.ts";
import { ShapeCache } from "./shape_cache.ts";

// A place is kept in 28 bits. No slot and no message comes near this.
const MAX_PAYLOAD_SIZE = 64 * 1024 * 1024;

// What fits a slot of SGLang's is encoded and decoded with what earlier calls have learnt of keys and
// forms, which is ten times as fast; longer payloads leave nothing behind.
const MOST_KEPT = 16 * 1024;

// Not there while a call uses it: a snapshot's getter may encode another one.
let idleEncoder: SnapshotEncoder | null = null;
let decoder: LoneDecoder | null = null;

/**
 * Encodes a snapshot as SGLang does.
 *
 * The bytes are those of SGLang's own encoder, with two differences that no reader sees: floats
 * that are 0 are always left out, and a whole number in a float field is written as a float.
 *
 * @param snapshot The snapshot; see {@linkcode createLoadSnapshot}.
 * @returns One MessagePack map.
 * @throws {TypeError} If a field has the wrong type.
 * @throws {RangeError} If an integer field is no integer, or beyond 2^53.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot, encodeLoadSnapshot } from "./mod.ts";
 *
 * console.log(encodeLoadSnapshot(createLoadSnapshot({}))); // an empty map: de 00 00
 * ```
 */
export function encodeLoadSnapshot(snapshot: LoadSnapshot): Uint8Array<ArrayBuffer> {
  const encoder = idleEncoder ?? new SnapshotEncoder();
  idleEncoder = null;
  const end = encoder.encode(snapshot);
  const bytes = encoder.image.bytes.slice(PAYLOAD_AT, end);
  if (bytes.length <= MOST_KEPT) idleEncoder = encoder;
  return bytes;
}

/**
 * Decodes a snapshot, of any SGLang release with layout version 2, strictly: a wrong type, an
 * integer beyond 2^53 or a byte too many is an error.
 *
 * @param bytes One MessagePack map.
 * @returns The snapshot; keys and elements that this release does not know are in `extra`.
 * @throws {SnapshotDecodeError} If the bytes are not a load snapshot.
 *
 * @example
 * ```ts
 * import { decodeLoadSnapshot } from "./mod.ts";
 *
 * const snapshot = decodeLoadSnapshot(Uint8Array.fromHex("81a764705f72616e6b01"));
 * console.log(snapshot.dpRank); // 1
 * ```
 */
export function decodeLoadSnapshot(bytes: Uint8Array): LoadSnapshot {
  if (bytes.length > MAX_PAYLOAD_SIZE) {
    throw new SnapshotDecodeError(`a payload of ${bytes.length} bytes, beyond 64 MiB`, 0);
  }
  if (bytes.length > MOST_KEPT) return new LoneDecoder(bytes.length).decode(bytes);
  return (decoder ??= new LoneDecoder(MOST_KEPT)).decode(bytes);
}

/** Decodes payloads that need not have anything to do with each other. */
class LoneDecoder {
  readonly #shapes: ShapeCache = new ShapeCache();
  readonly #own: Shape = new Shape();
  readonly #image: Image;

  /** @param capacity The longest payload. */
  constructor(capacity: number) {
    this.#image = createImage(PAYLOAD_AT + capacity);
  }

  decode(bytes: Uint8Array): LoadSnapshot {
    const image = this.#image;
    image.bytes.set(bytes, PAYLOAD_AT);
    const shape = this.#shapes.find(image, PAYLOAD_AT + bytes.length, this.#own);
    return withFlatSections(buildSnapshot(shape, image, shape.sections, null));
  }
}
