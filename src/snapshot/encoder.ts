/** From snapshots to bytes, for one rank: where only values changed, only values are written. */

import { SnapshotDecodeError } from "../errors.ts";
import { CORE_FIELDS, SECTION_START, SECTIONS, VALUES } from "./fields.ts";
import { createImage, type Image, PAYLOAD_AT } from "./image.ts";
import { keyNumber, writeKey } from "./keys.ts";
import type { LoadSnapshot, SectionTail } from "./load_snapshot.ts";
import type { RawMsgpack } from "./raw_msgpack.ts";
import { placeOf } from "./shape.ts";
import { skipValue } from "./skip_value.ts";
import {
  ABSENT,
  FIXINT,
  FLOAT64,
  INT16,
  INT32,
  INT64,
  INT8,
  TAG,
  UINT16,
  UINT32,
  UINT64,
  UINT8,
  WIDTH,
} from "./wire.ts";

const CORE_COUNT = CORE_FIELDS.length;
const MOMENTS = CORE_FIELDS.findIndex((field) => field.type === "floats");
const MODE = VALUES.findIndex((field) => field.type === "string");
const IS_INT = Uint8Array.from(VALUES, (field) => field.type === "int" ? 1 : 0);
// By value: the bit of the section that it belongs to.
const SECTION_BIT = Uint8Array.from(
  VALUES,
  (_, v) => v < CORE_COUNT ? 0 : 1 << SECTION_START.findLastIndex((start) => v >= start),
);
// More than all known keys, heads and numbers take together: 23 keys of at most 30 bytes, 40 values.
const PLAIN_SIZE = 1280;
const HALF = 2 ** 32;
const UTF8 = new TextEncoder();
const FLOAT64_TAG = TAG[FLOAT64]!;

/**
 * Encodes the snapshots of one rank exactly as msgspec does for SGLang's struct: keys in the
 * struct's order, defaults left out, each integer in its shortest form, each float in 8 bytes.
 *
 * It remembers the places of the last payload. A snapshot with the same keys and forms, which is
 * the rule, costs one store for each value.
 */
export class SnapshotEncoder {
  #image: Image = createImage(2 * PLAIN_SIZE);
  #end = PAYLOAD_AT;
  readonly #values: Float64Array = new Float64Array(VALUES.length);
  readonly #valueWords: Int32Array = new Int32Array(this.#values.buffer);
  // What the image holds, and where; a place as in shape.ts.
  readonly #written: Float64Array = new Float64Array(VALUES.length);
  readonly #writtenWords: Int32Array = new Int32Array(this.#written.buffer);
  readonly #places: Int32Array = new Int32Array(VALUES.length);
  readonly #forms: Uint8Array = new Uint8Array(CORE_COUNT);
  #sections = -1;
  // How many decode moments stand in the image, and where the first one does; -1 for none.
  #momentCount = -1;
  #momentsAt = 0;
  #mode = "";
  #encodedMode: Uint8Array = new Uint8Array(0);
  #patchable = false;

  /** The image that was encoded last: four bytes of length, then the payload. */
  get image(): Image {
    return this.#image;
  }

  /**
   * Encodes a snapshot into {@linkcode image}.
   *
   * @param snapshot The snapshot.
   * @returns Where the payload ends in the image.
   * @throws {TypeError} If a field has the wrong type.
   * @throws {RangeError} If an integer field is no integer or beyond 2^53, or an extra is none.
   */
  encode(snapshot: LoadSnapshot): number {
    const sections = this.#gather(snapshot);
    const hasSamePlaces = this.#patchable && sections === this.#sections &&
      snapshot.extra === null && momentCount(snapshot) === this.#momentCount;
    if (hasSamePlaces && this.#patch(snapshot)) return this.#end;
    this.#patchable = false;
    this.#write(snapshot, sections);
    this.#sections = sections;
    this.#patchable = snapshot.extra === null && !hasTail(snapshot);
    return this.#end;
  }

  /** Reads every number out of the snapshot, in the order of the table; returns which sections are there. */
  #gather(snapshot: LoadSnapshot): number {
    const values = this.#values;
    const { memory, speculative, lora, disaggregation, queues } = snapshot;
    let v = 0;
    let sections = 0;
    values[v++] = number(snapshot.timestamp);
    values[v++] = number(snapshot.dpRank);
    values[v++] = number(snapshot.numRunningReqs);
    values[v++] = number(snapshot.numWaitingReqs);
    values[v++] = number(snapshot.numWaitingUncachedTokens);
    values[v++] = number(snapshot.numUsedTokens);
    values[v++] = number(snapshot.numTotalTokens);
    values[v++] = number(snapshot.numActiveTokens);
    values[v++] = number(snapshot.numPreallocReadyTokens);
    values[v++] = number(snapshot.maxTotalNumTokens);
    values[v++] = number(snapshot.maxRunningRequests);
    values[v++] = number(snapshot.tokenUsage);
    values[v++] = number(snapshot.genThroughput);
    values[v++] = number(snapshot.cacheHitRate);
    values[v++] = number(snapshot.utilization);
    values[v++] = number(snapshot.totalPrefillUncachedTokens);
    values[v++] = number(snapshot.totalPrefillBusyUs);
    if (memory !== null) {
      sections |= 1;
      v = SECTION_START[0]!;
      values[v++] = number(memory.weightGb);
      values[v++] = number(memory.kvCacheGb);
      values[v++] = number(memory.graphGb);
      values[v++] = number(memory.tokenCapacity);
    }
    if (speculative !== null) {
      sections |= 2;
      v = SECTION_START[1]!;
      values[v++] = number(speculative.acceptLength);
      values[v++] = number(speculative.acceptRate);
    }
    if (lora !== null) {
      sections |= 4;
      v = SECTION_START[2]!;
      values[v++] = number(lora.slotsUsed);
      values[v++] = number(lora.slotsTotal);
      values[v++] = number(lora.utilization);
    }
    if (disaggregation !== null) {
      sections |= 8;
      v = SECTION_START[3]! + 1; // The first is the mode, a string.
      values[v++] = number(disaggregation.prefillBootstrapQueueReqs);
      values[v++] = number(disaggregation.prefillInflightQueueReqs);
      values[v++] = number(disaggregation.decodePreallocQueueReqs);
      values[v++] = number(disaggregation.decodeTransferQueueReqs);
      values[v++] = number(disaggregation.decodeRetractedQueueReqs);
      values[v++] = number(disaggregation.kvTransferSpeedGbS);
      values[v++] = number(disaggregation.kvTransferLatencyMs);
    }
    if (queues !== null) {
      sections |= 16;
      v = SECTION_START[4]!;
      values[v++] = number(queues.waiting);
      values[v++] = number(queues.grammar);
      values[v++] = number(queues.paused);
      values[v++] = number(queues.retracted);
      values[v++] = number(queues.preallocReady);
    }
    return sections;
  }

  /** Writes the values that changed into their places; false if one of them has another form. */
  #patch(snapshot: LoadSnapshot): boolean {
    if (snapshot.disaggregation !== null && snapshot.disaggregation.mode !== this.#mode) {
      return false;
    }
    if (hasTail(snapshot)) return false;
    if (snapshot.decodeMoments !== null) this.#patchMoments(snapshot.decodeMoments);
    const next = this.#valueWords;
    const last = this.#writtenWords;
    for (let w = 0; w < next.length; w += 2) {
      // Compared as bits: NaN is the same as itself, and -0.0 is not 0.
      if (next[w] === last[w] && next[w + 1] === last[w + 1]) continue;
      if (!this.#patchValue(w >> 1)) return false;
    }
    return true;
  }

  #patchValue(v: number): boolean {
    // A snapshot that was refused may have left values of a section that this one does not have.
    if (v >= CORE_COUNT && (this.#sections & SECTION_BIT[v]!) === 0) return true;
    const value = this.#values[v]!;
    const form = v < CORE_COUNT ? formOf(value, v) : elementFormOf(value, v);
    const place = this.#places[v]!;
    if (form !== (place & 15)) return false;
    if (form !== ABSENT) this.#store(form, place >> 4, value);
    this.#written[v] = value;
    return true;
  }

  #write(snapshot: LoadSnapshot, sections: number): void {
    const { decodeMoments: moments, extra } = snapshot;
    const extraKeys = extra === null ? [] : Object.keys(extra);
    this.#end = PAYLOAD_AT;
    let count = extraKeys.length;
    this.#momentCount = momentCount(snapshot);
    this.#places.fill(0);
    this.#written.set(this.#values);
    const forms = this.#forms;
    for (let v = 0; v < CORE_COUNT; v++) {
      const form = v === MOMENTS ? ABSENT : formOf(this.#values[v]!, v);
      forms[v] = form;
      if (form !== ABSENT) count++;
    }
    this.#reserve(0);
    if (moments !== null) count++;
    for (let bits = sections; bits !== 0; bits &= bits - 1) count++;
    this.#mapHead(count);
    for (let v = 0; v < CORE_COUNT; v++) {
      if (v === MOMENTS) {
        if (moments !== null) this.#moments(moments);
        continue;
      }
      if (forms[v] === ABSENT) continue;
      this.#key(v);
      this.#number(v, forms[v]!);
    }
    for (let s = 0; s < SECTIONS.length; s++) {
      if ((sections & (1 << s)) !== 0) this.#section(s, snapshot[SECTIONS[s]!.name]!);
    }
    for (const key of extraKeys) {
      if (keyNumber(key) >= 0) {
        throw new RangeError(`Cannot encode load snapshot: ${key} in extra is a known key`);
      }
      this.#string(UTF8.encode(key));
      this.#raw(extra![key]!);
    }
  }

  #section(section: number, values: SectionTail): void {
    const { fields } = SECTIONS[section]!;
    this.#key(CORE_COUNT + section);
    this.#arrayHead(fields.length + (values.extra?.length ?? 0));
    for (let v = SECTION_START[section]!, n = 0; n < fields.length; v++, n++) {
      if (v === MODE) {
        this.#modeString((values as { readonly mode?: unknown }).mode);
      } else {
        this.#number(v, elementFormOf(this.#values[v]!, v));
      }
    }
    for (const raw of values.extra ?? []) this.#raw(raw);
  }

  #moments(moments: readonly number[]): void {
    this.#key(MOMENTS);
    this.#arrayHead(moments.length);
    this.#reserve(9 * moments.length);
    this.#momentsAt = this.#end;
    this.#end += 9 * moments.length;
    for (let n = 0; n < moments.length; n++) {
      this.#image.bytes[this.#momentsAt + 9 * n] = FLOAT64_TAG;
    }
    this.#patchMoments(moments);
  }

  #patchMoments(moments: readonly number[]): void {
    for (let n = 0; n < moments.length; n++) {
      this.#image.view.setFloat64(this.#momentsAt + 9 * n + 1, number(moments[n]!));
    }
  }

  #key(key: number): void {
    this.#end = writeKey(this.#image.view, this.#end, key);
  }

  #number(value: number, form: number): void {
    if (form !== FIXINT) this.#image.bytes[this.#end++] = TAG[form]!;
    this.#places[value] = placeOf(this.#end, form);
    this.#store(form, this.#end, this.#values[value]!);
    this.#end += WIDTH[form]!;
  }

  #store(form: number, at: number, value: number): void {
    const view = this.#image.view;
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

  /** msgspec writes a map of a struct with more than 15 fields with two bytes of length, always. */
  #mapHead(count: number): void {
    if (count >= 0x10000) {
      this.#image.bytes[this.#end] = 0xdf;
      this.#image.view.setUint32(this.#end + 1, count);
      this.#end += 5;
      return;
    }
    this.#image.bytes[this.#end] = 0xde;
    this.#image.view.setUint16(this.#end + 1, count);
    this.#end += 3;
  }

  #arrayHead(count: number): void {
    const { bytes, view } = this.#image;
    if (count < 16) {
      bytes[this.#end++] = 0x90 | count;
    } else if (count < 0x10000) {
      bytes[this.#end] = 0xdc;
      view.setUint16(this.#end + 1, count);
      this.#end += 3;
    } else {
      bytes[this.#end] = 0xdd;
      view.setUint32(this.#end + 1, count);
      this.#end += 5;
    }
  }

  #modeString(mode: unknown): void {
    if (typeof mode !== "string") {
      throw new TypeError("Cannot encode load snapshot: mode is no string");
    }
    if (mode !== this.#mode) {
      this.#mode = mode;
      this.#encodedMode = UTF8.encode(mode);
    }
    this.#string(this.#encodedMode);
  }

  #string(encoded: Uint8Array): void {
    const { length } = encoded;
    this.#reserve(5);
    const { bytes, view } = this.#image;
    if (length < 32) {
      bytes[this.#end++] = 0xa0 | length;
    } else if (length < 0x100) {
      bytes[this.#end] = 0xd9;
      bytes[this.#end + 1] = length;
      this.#end += 2;
    } else if (length < 0x10000) {
      bytes[this.#end] = 0xda;
      view.setUint16(this.#end + 1, length);
      this.#end += 3;
    } else {
      bytes[this.#end] = 0xdb;
      view.setUint32(this.#end + 1, length);
      this.#end += 5;
    }
    this.#bytes(encoded);
  }

  #raw(raw: RawMsgpack): void {
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

function momentCount({ decodeMoments }: LoadSnapshot): number {
  if (decodeMoments === null) return -1;
  if (Array.isArray(decodeMoments)) return decodeMoments.length;
  throw new TypeError("Cannot encode load snapshot: decodeMoments is neither an array nor null");
}

/** Whether a section carries elements that the table does not know. */
function hasTail(snapshot: LoadSnapshot): boolean {
  return (snapshot.memory !== null && snapshot.memory.extra !== null) ||
    (snapshot.speculative !== null && snapshot.speculative.extra !== null) ||
    (snapshot.lora !== null && snapshot.lora.extra !== null) ||
    (snapshot.disaggregation !== null && snapshot.disaggregation.extra !== null) ||
    (snapshot.queues !== null && snapshot.queues.extra !== null);
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

function number(value: number): number {
  if (typeof value === "number") return value;
  throw new TypeError(`Cannot encode load snapshot: a field is ${typeof value}, not number`);
}

/**
 * The form of a core value; a default has none. Like msgspec, 0.0 is the default and -0.0 is not.
 * The place of the decode moments holds 0, so they have none either.
 */
function formOf(value: number, v: number): number {
  if (value === 0 && (IS_INT[v] === 1 || Object.is(value, 0))) return ABSENT;
  return elementFormOf(value, v);
}

/** The form of an array's element, where no default is left out. */
function elementFormOf(value: number, v: number): number {
  if (IS_INT[v] === 0) return FLOAT64;
  if ((value | 0) === value) {
    if (value >= 0) {
      return value < 0x80 ? FIXINT : value < 0x100 ? UINT8 : value < 0x10000 ? UINT16 : UINT32;
    }
    return value >= -0x20 ? FIXINT : value >= -0x80 ? INT8 : value >= -0x8000 ? INT16 : INT32;
  }
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(
      `Cannot encode load snapshot: ${VALUES[v]!.name} is ${value}, not an integer up to 2^53`,
    );
  }
  return value < 0 ? INT64 : value < HALF ? UINT32 : UINT64;
}
