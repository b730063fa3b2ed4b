/** Writing MessagePack into an image that grows as it must. */

import { SnapshotDecodeError } from "../errors.ts";
import { createImage, type Image, PAYLOAD_AT } from "./image.ts";
import { writeKey } from "./keys.ts";
import type { RawMsgpack } from "./raw_msgpack.ts";
import { skipValue } from "./skip_value.ts";
import { FIXINT, FLOAT64, INT16, INT32, INT8, TAG, UINT16, UINT32, UINT8, WIDTH } from "./wire.ts";

// More than all known keys, heads and numbers take together: 23 keys of at most 30 bytes, 40 values.
const PLAIN_SIZE = 1280;
const HALF = 2 ** 32;
const FLOAT64_TAG = TAG[FLOAT64]!;

/** Writes one payload after the other into the same image. */
export class PayloadWriter {
  #image: Image = createImage(2 * PLAIN_SIZE);
  #end = PAYLOAD_AT;

  /** The payload, behind its length. */
  get image(): Image {
    return this.#image;
  }

  /** Where the payload ends in the image, and where what is written next goes. */
  get end(): number {
    return this.#end;
  }

  /** Starts a payload. There is room for all that the table knows. */
  begin(): void {
    this.#end = PAYLOAD_AT;
  }

  /** msgspec writes a map of a struct with more than 15 fields with two bytes of length, always. */
  mapHead(count: number): void {
    this.#wideHead(0xde, count);
  }

  /** The head of an array. */
  arrayHead(count: number): void {
    if (count < 16) this.#image.bytes[this.#end++] = 0x90 | count;
    else this.#wideHead(0xdc, count);
  }

  /** A key that the table knows, by its number. */
  key(key: number): void {
    this.#end = writeKey(this.#image.view, this.#end, key);
  }

  /** A number; returns where its value went, behind the tag. */
  number(value: number, form: number): number {
    if (form !== FIXINT) this.#image.bytes[this.#end++] = TAG[form]!;
    const at = this.#end;
    storeNumber(this.#image.view, at, form, value);
    this.#end += WIDTH[form]!;
    return at;
  }

  /** Makes room for floats, and writes their tags; returns where the first one's tag went. */
  floatTags(count: number): number {
    this.#reserve(9 * count);
    const first = this.#end;
    const { bytes } = this.#image;
    for (; this.#end < first + 9 * count; this.#end += 9) bytes[this.#end] = FLOAT64_TAG;
    return first;
  }

  /** A string. */
  string(encoded: Uint8Array): void {
    const { length } = encoded;
    this.#reserve(5);
    const { bytes } = this.#image;
    if (length < 32) {
      bytes[this.#end++] = 0xa0 | length;
    } else if (length < 0x100) {
      bytes[this.#end++] = 0xd9;
      bytes[this.#end++] = length;
    } else {
      this.#wideHead(0xda, length);
    }
    this.#bytes(encoded);
  }

  /** A head of two bytes of length, or of four: the tag of that is always the next one. */
  #wideHead(tag: 0xda | 0xdc | 0xde, length: number): void {
    const { bytes, view } = this.#image;
    if (length < 0x10000) {
      bytes[this.#end] = tag;
      view.setUint16(this.#end + 1, length);
      this.#end += 3;
    } else {
      bytes[this.#end] = tag + 1;
      view.setUint32(this.#end + 1, length);
      this.#end += 5;
    }
  }

  /**
   * A value that is encoded already.
   *
   * @throws {RangeError} If it is none.
   */
  raw(raw: RawMsgpack): void {
    if (!isOneValue(raw.bytes)) {
      throw new RangeError("Cannot encode load snapshot: a raw value is not one MessagePack value");
    }
    this.#bytes(raw.bytes);
  }

  #bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    const target = this.#image.bytes;
    if (bytes.length > 32) target.set(bytes, this.#end);
    // A key is shorter than the call of `set` is long.
    else for (let n = 0; n < bytes.length; n++) target[this.#end + n] = bytes[n]!;
    this.#end += bytes.length;
  }

  /** Makes room for so many bytes, and for all that the table knows behind them. */
  #reserve(byteLength: number): void {
    const needed = this.#end + byteLength + PLAIN_SIZE;
    if (needed <= this.#image.bytes.length) return;
    const larger = createImage(needed * 2);
    larger.bytes.set(this.#image.bytes.subarray(0, this.#end));
    this.#image = larger;
  }
}

/** Stores a number in the form that it has, behind its tag. */
export function storeNumber(view: DataView, at: number, form: number, value: number): void {
  switch (form) {
    case FLOAT64:
      return view.setFloat64(at, value);
    case FIXINT:
    case INT8:
      return view.setInt8(at, value);
    case UINT8:
      return view.setUint8(at, value);
    case UINT16:
      return view.setUint16(at, value);
    case UINT32:
      return view.setUint32(at, value);
    case INT16:
      return view.setInt16(at, value);
    case INT32:
      return view.setInt32(at, value);
    default: // UINT64 and INT64, as two halves: no BigInt is made.
      view.setInt32(at, Math.floor(value / HALF));
      view.setUint32(at + 4, value);
  }
}

function isOneValue(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    return skipValue(view, 0, bytes.length, 0) === bytes.length;
  } catch (error) {
    if (error instanceof SnapshotDecodeError) return false;
    throw error;
  }
}
