/**
 * KvMetrics as MessagePack: an array of the class's name and the values, as msgspec writes SGLang's
 * Struct where pickle is switched off.
 */

import { KvMetricsDecodeError, type KvMetricsRefusal } from "../errors.ts";
import { type FieldValues, messageOf, noValues, valuesToEncode } from "./field_values.ts";
import { KV_FIELD_COUNT, KV_FIELDS } from "./fields.ts";
import type { KvMetricsMessage } from "./kv_metrics.ts";

const NAME = "KvMetrics";
const NAME_BYTES = new TextEncoder().encode(NAME);
const HALF = 2 ** 32;

/** The longest message that is read; a usual one has at most 83 bytes. */
export const MAX_MSGPACK_BYTES = 8192;

/** The array's head and the class's name. */
const HEAD = [0x90 | KV_FIELD_COUNT + 1, 0xa0 | NAME.length, ...NAME_BYTES];

/** Where a message is put together; it begins with the head. */
const SCRATCH = Uint8Array.from([...HEAD, ...new Uint8Array(KV_FIELD_COUNT * 9)]);
const SCRATCH_VIEW = new DataView(SCRATCH.buffer);

/**
 * Encodes metrics as msgspec encodes SGLang's newest class: the class's name and the values, each
 * integer in its shortest form, each share in 8 bytes.
 *
 * pyzmq's `recv_pyobj` cannot read it: the receiver must be one that was told to expect it.
 *
 * @param message The metrics; `null` becomes nil.
 * @returns One MessagePack array.
 * @throws {TypeError} If a value is neither a number nor `null`.
 * @throws {RangeError} If a count has a fraction, or is beyond 2^53.
 *
 * @example
 * ```ts
 * import { createKvMetrics, encodeKvMetricsMsgpack } from "./mod.ts";
 *
 * console.log(encodeKvMetricsMsgpack(createKvMetrics()).length); // 35
 * ```
 */
export function encodeKvMetricsMsgpack(message: KvMetricsMessage): Uint8Array<ArrayBuffer> {
  const values = valuesToEncode(message);
  let at = HEAD.length;
  for (let n = 0; n < KV_FIELD_COUNT; n++) {
    at = write(SCRATCH_VIEW, at, values[n]!, KV_FIELDS[n]!.type === "int");
  }
  return SCRATCH.slice(0, at);
}

/** Writes a value; returns where the next one starts. */
function write(view: DataView, at: number, value: number | null, isInt: boolean): number {
  if (value === null) {
    view.setUint8(at, 0xc0);
    return at + 1;
  }
  if (!isInt) {
    view.setUint8(at, 0xcb);
    view.setFloat64(at + 1, value);
    return at + 9;
  }
  if (value >= -32 && value <= 0x7f) {
    view.setInt8(at, value);
    return at + 1;
  }
  const isNegative = value < 0;
  // A negative integer needs one bit more: its sign.
  const reach = isNegative ? -2 * (value + 1) : value;
  const width = reach <= 0xff ? 0 : reach <= 0xffff ? 1 : reach < HALF ? 2 : 3;
  view.setUint8(at, (isNegative ? 0xd0 : 0xcc) + width);
  if (width === 0) view.setUint8(at + 1, value);
  else if (width === 1) view.setUint16(at + 1, value);
  else if (width === 2) view.setUint32(at + 1, value);
  else {
    view.setInt32(at + 1, Math.floor(value / HALF));
    view.setUint32(at + 5, value);
  }
  return at + 1 + (1 << width);
}

/**
 * Reads a KvMetrics in MessagePack, strictly: a wrong type, an integer beyond 2^53 or a byte too
 * many is an error. Values that an older sender does not have are `null`, and plain values that a
 * newer one appends are passed.
 *
 * @param bytes One MessagePack array.
 * @returns The message; what the sender set to None is `null`.
 * @throws {KvMetricsDecodeError} If the bytes are anything else.
 */
export function decodeKvMetricsMsgpack(bytes: Uint8Array): KvMetricsMessage {
  if (bytes.length > MAX_MSGPACK_BYTES) {
    throw new KvMetricsDecodeError("size", MAX_MSGPACK_BYTES, `${bytes.length} bytes`);
  }
  return messageOf(new MsgpackReader(bytes).read());
}

class MsgpackReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** Where the value stands that is being read. */
  #start = 0;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  read(): FieldValues {
    const count = this.#arrayHead();
    this.#name();
    const values = noValues();
    for (let n = 0; n < count - 1; n++) {
      this.#start = this.#at;
      const value = this.#value();
      if (n >= KV_FIELD_COUNT) continue;
      if (value === undefined) this.#refuse("value", `text in ${KV_FIELDS[n]!.wire}`);
      values[n] = value;
    }
    this.#start = this.#at;
    const rest = this.#bytes.length - this.#at;
    if (rest > 0) this.#refuse("trailing", `${rest} bytes behind the end`);
    return values;
  }

  #arrayHead(): number {
    const tag = this.#byte();
    const count = tag >= 0x90 && tag <= 0x9f
      ? tag & 0x0f
      : tag === 0xdc
      ? this.#view.getUint16(this.#take(2))
      : tag === 0xdd
      ? this.#view.getUint32(this.#take(4))
      : this.#refuse("encoding", "no array");
    if (count === 0) this.#refuse("class", "an empty array");
    // Each element takes a byte or more, so a count that lies is refused before it costs anything.
    if (count > this.#bytes.length - this.#at) this.#refuse("truncated", `${count} elements`);
    return count;
  }

  #name(): void {
    this.#start = this.#at;
    const tag = this.#byte();
    const isText = tag >> 5 === 0b101 || (tag >= 0xd9 && tag <= 0xdb);
    if (!isText) this.#refuse("class", "no name of a class");
    const length = this.#textLength(tag);
    if (length !== NAME.length) this.#refuse("class", "another class");
    const at = this.#take(length);
    for (let n = 0; n < length; n++) {
      if (this.#bytes[at + n] !== NAME_BYTES[n]) this.#refuse("class", "another class");
    }
  }

  /** Reads a number or nil; passes text and bytes, which are `undefined`. */
  #value(): number | null | undefined {
    const tag = this.#byte();
    if (tag <= 0x7f) return tag;
    if (tag >= 0xe0) return tag - 0x100;
    switch (tag) {
      case 0xc0:
        return null;
      case 0xc2:
      case 0xc3:
        return tag - 0xc2;
      case 0xca:
        return this.#view.getFloat32(this.#take(4));
      case 0xcb:
        return this.#view.getFloat64(this.#take(8));
      case 0xcc:
        return this.#byte();
      case 0xcd:
        return this.#view.getUint16(this.#take(2));
      case 0xce:
        return this.#view.getUint32(this.#take(4));
      case 0xcf:
        return this.#wide(this.#view.getUint32(this.#take(4)));
      case 0xd0:
        return this.#view.getInt8(this.#take(1));
      case 0xd1:
        return this.#view.getInt16(this.#take(2));
      case 0xd2:
        return this.#view.getInt32(this.#take(4));
      case 0xd3:
        return this.#wide(this.#view.getInt32(this.#take(4)));
    }
    this.#take(this.#textLength(tag));
    return undefined;
  }

  /** A 64-bit integer of which the upper half was read. */
  #wide(upper: number): number {
    const value = upper * HALF + this.#view.getUint32(this.#take(4));
    if (!Number.isSafeInteger(value)) this.#refuse("integer", "an integer beyond 2^53");
    return value;
  }

  /** How long a text or a piece of bytes is. */
  #textLength(tag: number): number {
    if (tag >> 5 === 0b101) return tag & 0x1f;
    if (tag === 0xd9 || tag === 0xc4) return this.#byte();
    if (tag === 0xda || tag === 0xc5) return this.#view.getUint16(this.#take(2));
    if (tag === 0xdb || tag === 0xc6) return this.#view.getUint32(this.#take(4));
    return this.#refuse("value", `a value of tag 0x${tag.toString(16)}`);
  }

  #byte(): number {
    return this.#bytes[this.#take(1)]!;
  }

  /** Passes some bytes; returns where they start. */
  #take(count: number): number {
    const at = this.#at;
    if (count > this.#bytes.length - at) this.#refuse("truncated", "the end of the bytes");
    this.#at = at + count;
    return at;
  }

  #refuse(reason: KvMetricsRefusal, what: string): never {
    throw new KvMetricsDecodeError(reason, this.#start, what);
  }
}
