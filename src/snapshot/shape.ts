/**
 * Where each value stands in a payload.
 *
 * A scan checks the whole payload against the field table, but makes no values: it notes for each
 * one its place and its form. The values are then read from those places. So the next payload of
 * the same rank, which nearly always has the same keys and forms, needs no scan: it is enough that
 * every byte which is not a value's is unchanged.
 */

import { SnapshotDecodeError } from "../errors.ts";
import { CORE_FIELDS, SECTION_START, SECTIONS, VALUES } from "./fields.ts";
import { KEY_COUNT, KEY_LENGTH, keyNumber, keyStandsAt } from "./keys.ts";
import { RawMsgpack } from "./raw_msgpack.ts";
import {
  ABSENT,
  FIXINT,
  FLOAT32,
  FLOAT64,
  FORM_OF_TAG,
  INT64,
  INT64_AS_FLOAT,
  MAX_DEPTH,
  typeNameOf,
  UINT64,
  UINT64_AS_FLOAT,
  WIDTH,
} from "./wire.ts";

const VALUE_COUNT = VALUES.length;
const CORE_COUNT = CORE_FIELDS.length;
const MOMENTS = CORE_FIELDS.findIndex((field) => field.type === "floats");
const MODE = VALUES.findIndex((field) => field.type === "string");
const IS_INT = Uint8Array.from(VALUES, (field) => field.type === "int" ? 1 : 0);
const NIL = 0xc0;

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A place: where a value stands, and in the lowest four bits its form. An absent value's is 0. */
export function placeOf(at: number, form: number): number {
  return at << 4 | form;
}

/** The result of a scan. One object is used again for each scan of the same rank. */
export class Shape {
  /** Where and in which form each value of the table stands; see {@linkcode placeOf}. */
  readonly places: Int32Array = new Int32Array(VALUE_COUNT);
  /** The places of the decode moments. */
  readonly momentPlaces: number[] = [];
  /** Whether the decode moments are there. */
  hasMoments = false;
  /** One bit for each section that is there, the first section's lowest. */
  sections = 0;
  /** How many of its values each section did not send. */
  readonly missing: Uint8Array = new Uint8Array(SECTIONS.length);
  /** The elements behind the known ones, by section. */
  readonly sectionExtra: (RawMsgpack[] | null)[] = SECTIONS.map(() => null);
  /** The only string of the table. */
  mode = "null";
  /** The keys that the table does not know. */
  extra: Record<string, RawMsgpack> | null = null;
  /** Whether the payload has something that the table does not know. */
  hasExtra = false;

  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(this.#bytes.buffer);
  #end = 0;
  #cursor = 0;

  /**
   * Checks a payload against the field table and notes where its values stand.
   *
   * @param bytes The payload.
   * @param view A view of the same bytes.
   * @param end Where it ends.
   * @throws {SnapshotDecodeError} If it is not a load snapshot.
   */
  scan(bytes: Uint8Array, view: DataView, end: number): void {
    this.#reset(bytes, view, end);
    const count = this.#header(0x80, 0xde, "map");
    let expected = 0;
    for (let n = 0; n < count; n++) {
      const key = this.#key(expected);
      if (key < 0) continue;
      if (key < CORE_COUNT) {
        if (key === MOMENTS) this.#moments();
        else this.#number(key);
      } else {
        this.#section(key - CORE_COUNT);
      }
      expected = key + 1;
    }
    if (this.#cursor !== this.#end) this.#fail("bytes after the map");
  }

  #reset(bytes: Uint8Array, view: DataView, end: number): void {
    this.#bytes = bytes;
    this.#view = view;
    this.#cursor = 0;
    this.#end = end;
    this.places.fill(0);
    this.missing.fill(0);
    this.momentPlaces.length = 0;
    this.hasMoments = false;
    this.sections = 0;
    this.mode = "null";
    if (this.hasExtra) this.sectionExtra.fill(null);
    this.extra = null;
    this.hasExtra = false;
  }

  /** Passes a key; returns its number, or -1 after an unknown key and its value were kept. */
  #key(expected: number): number {
    for (let key = expected; key < KEY_COUNT; key++) {
      if (keyStandsAt(this.#view, this.#cursor, this.#end, key)) {
        this.#cursor += KEY_LENGTH[key]!;
        return key;
      }
    }
    const name = this.#string("a map key");
    const key = keyNumber(name);
    if (key >= 0) return key;
    // No prototype: a key named "__proto__" is a key like any other.
    this.extra ??= Object.create(null) as Record<string, RawMsgpack>;
    this.extra[name] = this.#raw();
    this.hasExtra = true;
    return -1;
  }

  #number(value: number): void {
    this.places[value] = this.#numberPlace(IS_INT[value] === 1, VALUES[value]!.wire);
  }

  /** Passes a number and returns its place. */
  #numberPlace(isInt: boolean, name: string): number {
    if (this.#cursor >= this.#end) this.#fail("the end of the payload");
    const tag = this.#bytes[this.#cursor]!;
    if (tag <= 0x7f || tag >= 0xe0) {
      return placeOf(this.#cursor++, FIXINT);
    }
    const form = tag >= 0xca && tag <= 0xd3 ? FORM_OF_TAG[tag - 0xca]! : ABSENT;
    if (form === ABSENT || (isInt && (form === FLOAT64 || form === FLOAT32))) {
      this.#fail(`expected ${isInt ? "int" : "float"} in ${name}, found ${typeNameOf(tag)}`);
    }
    const at = this.#cursor + 1;
    const next = at + WIDTH[form]!;
    if (next > this.#end) this.#fail("the end of the payload");
    this.#cursor = next;
    if (isInt) return placeOf(at, form);
    return placeOf(
      at,
      form === UINT64 ? UINT64_AS_FLOAT : form === INT64 ? INT64_AS_FLOAT : form,
    );
  }

  #moments(): void {
    this.momentPlaces.length = 0;
    this.hasMoments = !this.#nil();
    if (!this.hasMoments) return;
    const count = this.#header(0x90, 0xdc, "array");
    for (let n = 0; n < count; n++) {
      this.momentPlaces.push(this.#numberPlace(false, "decode_moments"));
    }
  }

  #section(section: number): void {
    const start = SECTION_START[section]!;
    const size = SECTIONS[section]!.fields.length;
    // A key can stand twice; the last one counts, wholly.
    this.places.fill(0, start, start + size);
    this.missing[section] = 0;
    this.sectionExtra[section] = null;
    if (this.#nil()) {
      this.sections &= ~(1 << section);
      return;
    }
    this.sections |= 1 << section;
    const count = this.#header(0x90, 0xdc, "array");
    for (let n = 0; n < count; n++) {
      if (n >= size) {
        (this.sectionExtra[section] ??= []).push(this.#raw());
        this.hasExtra = true;
      } else if (start + n === MODE) {
        this.mode = this.#string("mode");
      } else {
        this.#number(start + n);
      }
    }
    if (count < size) this.missing[section] = size - count;
    if (start === MODE && count === 0) this.mode = "null";
  }

  #nil(): boolean {
    if (this.#cursor >= this.#end || this.#bytes[this.#cursor] !== NIL) return false;
    this.#cursor += 1;
    return true;
  }

  /** Passes the head of an array or a map and returns how many elements or pairs follow. */
  #header(fix: 0x80 | 0x90, wide: 0xdc | 0xde, name: string): number {
    if (this.#cursor >= this.#end) this.#fail("the end of the payload");
    const tag = this.#bytes[this.#cursor]!;
    let count: number;
    if ((tag & 0xf0) === fix) {
      count = tag & 0x0f;
      this.#cursor += 1;
    } else if (tag === wide && this.#cursor + 3 <= this.#end) {
      count = this.#view.getUint16(this.#cursor + 1);
      this.#cursor += 3;
    } else if (tag === wide + 1 && this.#cursor + 5 <= this.#end) {
      count = this.#view.getUint32(this.#cursor + 1);
      this.#cursor += 5;
    } else if (tag === wide || tag === wide + 1) {
      this.#fail("the end of the payload");
    } else {
      this.#fail(`expected ${name}, found ${typeNameOf(tag)}`);
    }
    // Each element takes a byte or more, so a count that lies is refused before it costs anything.
    if (count > this.#end - this.#cursor) this.#fail(`${name} of ${count} past the end`);
    return count;
  }

  #string(name: string): string {
    const start = this.#cursor;
    const tag = start < this.#end ? this.#bytes[start]! : NIL;
    const isString = (tag & 0xe0) === 0xa0 || (tag >= 0xd9 && tag <= 0xdb);
    if (!isString) this.#fail(`expected str in ${name}, found ${typeNameOf(tag)}`);
    this.#cursor = skipValue(this.#view, start, this.#end, 0);
    const head = tag === 0xd9 ? 2 : tag === 0xda ? 3 : tag === 0xdb ? 5 : 1;
    return this.#text(start, start + head, this.#cursor, name);
  }

  /** Names are short and ASCII: for those, putting letters together is five times as fast. */
  #text(start: number, first: number, next: number, name: string): string {
    let text = "";
    for (let at = first; at < next; at++) {
      const byte = this.#bytes[at]!;
      if (byte >= 0x80 || next - first > 32) break;
      text += String.fromCharCode(byte);
    }
    if (text.length === next - first) return text;
    try {
      return UTF8.decode(this.#bytes.subarray(first, next));
    } catch {
      throw new SnapshotDecodeError(`invalid UTF-8 in ${name}`, start);
    }
  }

  #raw(): RawMsgpack {
    const start = this.#cursor;
    this.#cursor = skipValue(this.#view, start, this.#end, 0);
    return new RawMsgpack(this.#bytes.slice(start, this.#cursor));
  }

  #fail(message: string): never {
    throw new SnapshotDecodeError(message, this.#cursor);
  }
}

/**
 * Passes one MessagePack value of any kind.
 *
 * @param view The bytes.
 * @param at Where the value starts.
 * @param end Where the payload ends.
 * @param depth How deep it is nested.
 * @returns Where the next value starts.
 * @throws {SnapshotDecodeError} If it is cut off, nested too deep, or no MessagePack.
 */
export function skipValue(view: DataView, at: number, end: number, depth: number): number {
  if (at >= end) throw new SnapshotDecodeError("the end of the payload", at);
  const tag = view.getUint8(at);
  let size = 1;
  let values = 0;
  if (tag <= 0x7f || tag >= 0xe0 || tag === NIL || tag === 0xc2 || tag === 0xc3) size = 1;
  else if (tag <= 0x8f) values = (tag & 0x0f) * 2;
  else if (tag <= 0x9f) values = tag & 0x0f;
  else if (tag <= 0xbf) size = 1 + (tag & 0x1f);
  else if (tag >= 0xca && tag <= 0xd3) size = 1 + WIDTH[FORM_OF_TAG[tag - 0xca]!]!;
  else if (tag >= 0xd4 && tag <= 0xd8) size = 2 + (1 << (tag - 0xd4));
  else {
    const width = lengthWidth(tag);
    if (width === 0 || at + 1 + width > end) {
      throw new SnapshotDecodeError(
        width === 0 ? "an unused tag" : "the end of the payload",
        at,
      );
    }
    const length = width === 1
      ? view.getUint8(at + 1)
      : width === 2
      ? view.getUint16(at + 1)
      : view.getUint32(at + 1);
    size = 1 + width;
    if (tag >= 0xde) values = length * 2;
    else if (tag >= 0xdc) values = length;
    else size += length + (tag >= 0xc7 && tag <= 0xc9 ? 1 : 0);
  }
  let next = at + size;
  if (next > end || values > end - next) {
    throw new SnapshotDecodeError("the end of the payload", at);
  }
  if (values > 0 && depth >= MAX_DEPTH) {
    throw new SnapshotDecodeError(`values nested deeper than ${MAX_DEPTH}`, at);
  }
  for (; values > 0; values--) next = skipValue(view, next, end, depth + 1);
  return next;
}

/** Bytes of the length behind a tag that has one, or 0. */
function lengthWidth(tag: number): number {
  if (tag === 0xc4 || tag === 0xc7 || tag === 0xd9) return 1;
  if (tag === 0xc5 || tag === 0xc8 || tag === 0xda || tag === 0xdc || tag === 0xde) return 2;
  if (tag === 0xc6 || tag === 0xc9 || tag === 0xdb || tag === 0xdd || tag === 0xdf) return 4;
  return 0;
}
