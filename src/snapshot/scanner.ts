/**
 * Checks a payload against the field table and notes where its values stand, without making any.
 */

import { SnapshotDecodeError } from "../errors.ts";
import { CORE_COUNT, IS_INT, MODE, MOMENTS, SECTION_START, SECTIONS, VALUES } from "./fields.ts";
import { type Image, PAYLOAD_AT } from "./image.ts";
import { KEY_COUNT, KEY_LENGTH, keyNumber, keyStandsAt } from "./keys.ts";
import { RawMsgpack } from "./raw_msgpack.ts";
import { NO_MODE, placeOf, Shape } from "./shape.ts";
import { skipValue } from "./skip_value.ts";
import {
  ABSENT,
  FIXINT,
  FLOAT32,
  FLOAT64,
  FORM_OF_TAG,
  INT64,
  INT64_AS_FLOAT,
  NEGATIVE_FIXINT,
  typeNameOf,
  UINT64,
  UINT64_AS_FLOAT,
  WIDTH,
} from "./wire.ts";

const NIL = 0xc0;

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Scans payloads, one after the other. */
export class Scanner {
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(this.#bytes.buffer);
  #end = 0;
  #cursor = 0;

  #shape: Shape = new Shape();

  /**
   * Checks a payload against the field table and notes where its values stand.
   *
   * @param image The payload.
   * @param end Where it ends in the image.
   * @param shape Gets what is found.
   * @throws {SnapshotDecodeError} If it is not a load snapshot.
   */
  scan(image: Image, end: number, shape: Shape): void {
    shape.clear();
    this.#shape = shape;
    this.#bytes = image.payload;
    this.#view = image.payloadView;
    this.#cursor = 0;
    this.#end = end - PAYLOAD_AT;
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
    this.#shape.extra ??= Object.create(null) as Record<string, RawMsgpack>;
    this.#shape.extra[name] = this.#raw();
    return -1;
  }

  #number(value: number): void {
    this.#shape.places[value] = this.#numberPlace(IS_INT[value] === 1, VALUES[value]!.wire);
  }

  /** Passes a number and returns its place. */
  #numberPlace(isInt: boolean, name: string): number {
    if (this.#cursor >= this.#end) this.#fail("the end of the payload");
    const tag = this.#bytes[this.#cursor]!;
    if (tag <= 0x7f) return placeOf(this.#cursor++, FIXINT);
    if (tag >= 0xe0) return placeOf(this.#cursor++, NEGATIVE_FIXINT);
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
    this.#shape.momentPlaces = this.#nil() ? null : [];
    if (this.#shape.momentPlaces === null) return;
    const count = this.#header(0x90, 0xdc, "array");
    for (let n = 0; n < count; n++) {
      this.#shape.momentPlaces.push(this.#numberPlace(false, "decode_moments"));
    }
  }

  #section(section: number): void {
    const start = SECTION_START[section]!;
    const size = SECTIONS[section]!.fields.length;
    // A key can stand twice; the last one counts, wholly.
    this.#shape.places.fill(0, start, start + size);
    this.#shape.missing[section] = 0;
    this.#shape.sectionExtra[section] = null;
    if (this.#nil()) {
      this.#shape.sections &= ~(1 << section);
      return;
    }
    this.#shape.sections |= 1 << section;
    const count = this.#header(0x90, 0xdc, "array");
    for (let n = 0; n < count; n++) {
      if (n >= size) {
        (this.#shape.sectionExtra[section] ??= []).push(this.#raw());
      } else if (start + n === MODE) {
        this.#shape.mode = this.#string("mode");
      } else {
        this.#number(start + n);
      }
    }
    if (count < size) this.#shape.missing[section] = size - count;
    if (start === MODE && count === 0) this.#shape.mode = NO_MODE;
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
