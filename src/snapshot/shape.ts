/**
 * Where each value stands in a payload.
 *
 * A scan checks the whole payload, but makes no values: it notes for each one its place and its
 * form. The values are then read from those places. So a payload with the keys and forms of an
 * earlier one, which is the rule, needs no scan: it is enough that every byte that is not a value's
 * is the same.
 */

import { CORE_FIELDS, SECTION_START, VALUES } from "./fields.ts";
import { type Image, PAYLOAD_AT } from "./image.ts";
import type { RawMsgpack } from "./raw_msgpack.ts";
import { ABSENT, FIXINT, WIDTH } from "./wire.ts";

/** What a scan finds. It never changes, but for its mask, and ranks share it. */
export interface Shape {
  /** Where and in which form each value of the table stands; see {@linkcode placeOf}. */
  readonly places: Int32Array;
  /** The places of the decode moments, or `null` without them. */
  readonly momentPlaces: readonly number[] | null;
  /** One bit for each section that is there, the first section's lowest. */
  readonly sections: number;
  /** How many of its values each section did not send. */
  readonly missing: Uint8Array;
  /** The elements behind the known ones, by section. */
  readonly sectionExtra: readonly (RawMsgpack[] | null)[];
  /** The only string of the table. */
  readonly mode: string;
  /** The keys that the table does not know. */
  readonly extra: Readonly<Record<string, RawMsgpack>> | null;
  /** What tells other payloads of this shape; made when a second one may come. */
  mask: Mask | null;
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

/** The core's bit in {@linkcode Mask.owners}; the sections' follow it. */
export const CORE = 1;

const OWNER = Uint8Array.from(
  VALUES,
  (_, v) => v < CORE_FIELDS.length ? CORE : 2 << SECTION_START.findLastIndex((start) => v >= start),
);

/** A place: where a value stands, and in the lowest four bits its form. An absent value's is 0. */
export function placeOf(at: number, form: number): number {
  return at << 4 | form;
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
  for (let v = 0; v < VALUES.length; v++) unmask(shape.places[v]!, OWNER[v]!, image, bytes, owners);
  for (const place of shape.momentPlaces ?? []) unmask(place, CORE, image, bytes, owners);
  return shape.mask = { template: image.words.slice(0, wordCount), bits, owners };
}

/** Clears the bits of one value. */
function unmask(
  place: number,
  owner: number,
  image: Image,
  mask: Uint8Array,
  owners: Uint8Array,
): void {
  const form = place & 15;
  if (form === ABSENT) return;
  const at = PAYLOAD_AT + (place >> 4);
  const next = at + WIDTH[form]!;
  for (let byte = at; byte < next; byte++) mask[byte] = 0;
  // A fixint is its own tag: its highest bits must stay, three of them if it is negative.
  if (form === FIXINT) mask[at] = image.bytes[at]! < 0x80 ? 0x80 : 0xe0;
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
