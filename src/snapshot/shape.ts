/**
 * Where each value stands in a payload.
 *
 * A scan checks the whole payload, but makes no values: it notes for each one its place and its
 * form. The values are then read from those places. So a payload with the keys and forms of an
 * earlier one, which is the rule, needs no scan: it is enough that every byte that is not a value's
 * is the same.
 */

import { SECTION_START, SECTIONS, VALUES } from "./fields.ts";
import { type Image, PAYLOAD_AT } from "./image.ts";
import type { RawMsgpack } from "./raw_msgpack.ts";
import { ABSENT, FIXINT, LEAD, NEGATIVE_FIXINT, WIDTH } from "./wire.ts";
import type { Compare, Workspace } from "./workspace.ts";

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
  /** What tells other payloads of this shape; only the shapes that a cache keeps have it. */
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

/** What tells payloads of one shape, by word of the image; the arrays lie one behind the other. */
export interface Mask {
  /** A bit is 1 where a payload of this shape must not differ from the template. */
  readonly bits: Int32Array;
  /** Whose values stand there: a bit for each section, none for the core. */
  readonly owners: Int32Array;
  /** The payload that was scanned. */
  readonly template: Int32Array;
  /** Where they start. */
  readonly start: number;
  /** Bytes of each of them. */
  readonly size: number;
  /** The workspace's, if they lie in one: `start` is their place in it then. */
  readonly compare: Compare | null;
}

/** The mode where a payload names none. */
export const NO_MODE = "null";

// By value: the bit of its section.
const OWNER = Uint8Array.from(
  VALUES,
  (_, v) => v < SECTION_START[0]! ? 0 : 1 << SECTION_START.findLastIndex((start) => v >= start),
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
 * Makes a shape's mask.
 *
 * @param image The payload that has the shape.
 * @param end Where it ends in the image.
 * @param workspace Where the mask is to lie.
 */
export function maskOf(shape: Shape, image: Image, end: number, workspace: Workspace): Mask {
  const { buffer, start, size, compare } = workspace.createWords(end);
  const [bits, owners, template] = [0, 1, 2].map((n) =>
    new Int32Array(buffer, start + n * size, (end + 3) >> 2)
  ) as [Int32Array, Int32Array, Int32Array];
  const bytes = new Uint8Array(buffer, start, size);
  bytes.fill(0xff, PAYLOAD_AT, end);
  shape.places.forEach((place, v) => unmask(place, OWNER[v]!, bytes, owners));
  for (const place of shape.momentPlaces ?? []) unmask(place, 0, bytes, owners);
  template.set(image.words.subarray(0, template.length));
  return { bits, owners, template, start, size, compare };
}

/** Clears the bits of one value. */
function unmask(place: number, owner: number, mask: Uint8Array, owners: Int32Array): void {
  const form = place & 15;
  if (form === ABSENT) return;
  const at = PAYLOAD_AT + (place >> 4) + LEAD[form]!;
  const next = at + WIDTH[form]!;
  mask.fill(0, at, next);
  // A fixint is its own tag: its highest bits must stay, three of them if it is negative.
  if (form === FIXINT) mask[at] = 0x80;
  if (form === NEGATIVE_FIXINT) mask[at] = 0xe0;
  for (let w = at >> 2; w <= (next - 1) >> 2; w++) owners[w] = owners[w]! | owner;
}

/** Whether a payload has the shape of a mask. */
export function fits(image: Image, mask: Mask): boolean {
  const { compare, start, size } = mask;
  return compare === null || image.at < 0
    ? fitsWordByWord(image, mask)
    : compare(image.at, start + 2 * size, start, size) >= 0;
}

function fitsWordByWord({ words }: Image, { template, bits }: Mask): boolean {
  for (let w = PAYLOAD_AT >> 2; w < template.length; w++) {
    if (((words[w]! ^ template[w]!) & bits[w]!) !== 0) return false;
  }
  return true;
}

/**
 * Which sections' values differ between two payloads, as bits; -1 if they are not of one shape.
 *
 * @param image One of them.
 * @param before The other, which has the shape of the mask.
 */
export function changedSections(image: Image, before: Image, mask: Mask): number {
  const { compare, start, size } = mask;
  return compare === null || image.at < 0 || before.at < 0
    ? changedWordByWord(image, before, mask)
    : compare(image.at, before.at, start, size);
}

function changedWordByWord(
  { words: now }: Image,
  { words: before }: Image,
  { bits, owners }: Mask,
): number {
  let changed = 0;
  for (let w = PAYLOAD_AT >> 2; w < bits.length; w++) {
    const difference = now[w]! ^ before[w]!;
    if (difference === 0) continue;
    if ((difference & bits[w]!) !== 0) return -1;
    changed |= owners[w]!;
  }
  return changed;
}
