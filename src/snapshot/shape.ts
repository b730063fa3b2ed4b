/**
 * Where each value stands in a payload.
 *
 * A scan checks the whole payload, but makes no values: it notes for each one its place and its
 * form. The values are then read from those places. So a payload with the keys and forms of an
 * earlier one, which is the rule, needs no scan: it is enough that every byte that is not a value's
 * is the same.
 */

import { CORE_FIELDS, SECTION_START, SECTIONS, VALUES } from "./fields.ts";
import { type Image, PAYLOAD_AT } from "./image.ts";
import type { RawMsgpack } from "./raw_msgpack.ts";
import { ABSENT, FIXINT, LEAD, NEGATIVE_FIXINT, WIDTH } from "./wire.ts";

/** What a scan finds. A decoder has one that it scans into; those that a cache keeps never change. */
export class Shape {
  /** Where and in which form each value of the table stands; see {@linkcode placeOf}. */
  places: Int32Array = new Int32Array(VALUES.length);
  /** The places of the decode moments, or `null` without them. */
  momentPlaces: number[] | null = null;
  /** One bit for each section that is there, the first section's lowest. */
  sections = 0;
  /** How many of its values each section did not send. */
  missing: Uint8Array = new Uint8Array(SECTIONS.length);
  /** The elements behind the known ones, by section. */
  sectionExtra: (RawMsgpack[] | null)[] = SECTIONS.map(() => null);
  /** The only string of the table. */
  mode: string = NO_MODE;
  /** The keys that the table does not know. */
  extra: Record<string, RawMsgpack> | null = null;
  /** What tells other payloads of this shape; see {@linkcode maskOf}. */
  mask: Mask | null = null;

  /** Forgets the last scan. What it made for snapshots is left to them. */
  clear(): void {
    this.places.fill(0);
    this.momentPlaces = null;
    this.sections = 0;
    this.missing.fill(0);
    for (let s = 0; s < SECTIONS.length; s++) this.sectionExtra[s] = null;
    this.mode = NO_MODE;
    this.extra = null;
    this.mask = null;
  }

  /** A copy that the next scan does not touch. */
  copy(): Shape {
    const copy = new Shape();
    Object.assign(copy, this);
    copy.places = this.places.slice();
    copy.missing = this.missing.slice();
    copy.sectionExtra = this.sectionExtra.slice();
    return copy;
  }
}

/** What tells payloads of one shape, by word of the image. */
export interface Mask {
  /** The payload that was scanned. */
  readonly template: Int32Array;
  /** A bit is 1 where a payload of this shape must not differ from the template. */
  readonly bits: Int32Array;
  /** Whose values stand there: {@linkcode CORE}, and a bit for each section. */
  readonly owners: Uint8Array;
}

/** The mode where a payload names none. */
export const NO_MODE = "null";

/** The core's bit in {@linkcode Mask.owners}; the sections' follow it. */
export const CORE = 1;

const OWNER = Uint8Array.from(
  VALUES,
  (_, v) => v < CORE_FIELDS.length ? CORE : 2 << SECTION_START.findLastIndex((start) => v >= start),
);

/**
 * A place: in the lowest four bits a value's form, above them where to load it. A value of one or
 * two bytes is loaded as the end of a word of four, so that all short integers are one load and one
 * mask. An absent value's place is 0.
 *
 * @param at Where the value stands, behind its tag.
 * @param form Its form.
 */
export function placeOf(at: number, form: number): number {
  return (at - LEAD[form]!) << 4 | form;
}

/**
 * Makes a shape's mask, if it has none yet.
 *
 * @param image The payload that has the shape.
 * @param end Where it ends in the image.
 */
export function maskOf(shape: Shape, image: Image, end: number): Mask {
  if (shape.mask !== null) return shape.mask;
  const wordCount = (end + 3) >> 2;
  const bits = new Int32Array(wordCount);
  const owners = new Uint8Array(wordCount);
  const bytes = new Uint8Array(bits.buffer);
  bytes.fill(0xff, PAYLOAD_AT, end);
  for (let v = 0; v < VALUES.length; v++) unmask(shape.places[v]!, OWNER[v]!, bytes, owners);
  for (const place of shape.momentPlaces ?? []) unmask(place, CORE, bytes, owners);
  return shape.mask = { template: image.words.slice(0, wordCount), bits, owners };
}

/** Clears the bits of one value. */
function unmask(
  place: number,
  owner: number,
  mask: Uint8Array,
  owners: Uint8Array,
): void {
  const form = place & 15;
  if (form === ABSENT) return;
  const at = PAYLOAD_AT + (place >> 4) + LEAD[form]!;
  const next = at + WIDTH[form]!;
  for (let byte = at; byte < next; byte++) mask[byte] = 0;
  // A fixint is its own tag: its highest bits must stay, three of them if it is negative.
  if (form === FIXINT) mask[at] = 0x80;
  if (form === NEGATIVE_FIXINT) mask[at] = 0xe0;
  for (let w = at >> 2; w <= (next - 1) >> 2; w++) owners[w] = owners[w]! | owner;
}

/** Whether a payload has the shape of a mask. */
export function fits(image: Image, { template, bits }: Mask): boolean {
  const { words } = image;
  for (let w = PAYLOAD_AT >> 2; w < template.length; w++) {
    if (((words[w]! ^ template[w]!) & bits[w]!) !== 0) return false;
  }
  return true;
}
