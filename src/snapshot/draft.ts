/** A payload that was encoded, kept with the places of its values so that others replace them. */

import { CORE_COUNT, MODE, MOMENTS, SECTION_START, SECTIONS, VALUES } from "./fields.ts";
import type { Image } from "./image.ts";
import { keyNumber } from "./keys.ts";
import type { LoadSnapshot, SectionTail } from "./load_snapshot.ts";
import { formOf } from "./number_forms.ts";
import { FORM_WORDS, type Outline } from "./outline.ts";
import { PayloadWriter, storeNumber } from "./payload_writer.ts";
import { ABSENT } from "./wire.ts";

const UTF8 = new TextEncoder();

/**
 * One encoded payload. Another snapshot with the same keys, and the same forms of its numbers,
 * needs no more than a store for each number that differs.
 */
export class Draft {
  readonly #writer: PayloadWriter = new PayloadWriter();
  // The numbers that the image holds, and where: the form in the lowest four bits, above it where
  // the number stands behind its tag.
  readonly #values: Float64Array = new Float64Array(VALUES.length);
  readonly #words: Int32Array = new Int32Array(this.#values.buffer);
  readonly #places: Int32Array = new Int32Array(VALUES.length);
  readonly #forms: Int32Array = new Int32Array(FORM_WORDS);
  // -1 while there is nothing that others could replace.
  #sections = -1;
  #momentCount = -1;
  #momentsAt = 0;
  #mode = "";
  #encodedMode: Uint8Array = UTF8.encode("");

  /** The payload, behind its length. */
  get image(): Image {
    return this.#writer.image;
  }

  /** Where the payload ends in the image. */
  get end(): number {
    return this.#writer.end;
  }

  /** Whether there is nothing in it that others could replace. */
  get isSpent(): boolean {
    return this.#sections < 0;
  }

  /** Whether a snapshot has the keys of this one, as far as its numbers do not decide that. */
  suits(outline: Outline): boolean {
    return outline.sections === this.#sections && outline.momentCount === this.#momentCount &&
      outline.mode === this.#mode && !outline.hasUnknown;
  }

  /** Whether the numbers have the forms of those that stand here; ask for them first. */
  hasForms({ forms }: Outline): boolean {
    for (let w = 0; w < forms.length; w++) if (forms[w] !== this.#forms[w]) return false;
    return true;
  }

  /**
   * Replaces the numbers by those of a snapshot that suits.
   *
   * @returns False if one of them has another form: then this is neither the old payload nor the
   *   new one, but can be used again all the same.
   * @throws {RangeError} If an integer field is no integer or beyond 2^53.
   * @throws {TypeError} If a decode moment is no number.
   */
  replace(outline: Outline): boolean {
    const next = outline.words;
    const last = this.#words;
    for (let w = 0; w < next.length; w += 2) {
      if (next[w] === last[w] && next[w + 1] === last[w + 1]) continue;
      if (!this.#replaceOne(w >> 1, outline.values[w >> 1]!)) return false;
    }
    this.#replaceMoments(outline);
    return true;
  }

  #replaceOne(v: number, value: number): boolean {
    const form = formOf(value, v);
    const place = this.#places[v]!;
    if (form !== (place & 15)) return false;
    if (form !== ABSENT) storeNumber(this.image.view, place >> 4, form, value);
    this.#values[v] = value;
    return true;
  }

  #replaceMoments({ moments, momentCount }: Outline): void {
    const { view } = this.image;
    for (let n = 0; n < momentCount; n++) {
      const value = moments![n]!;
      if (typeof value !== "number") {
        throw new TypeError(
          `Cannot encode load snapshot: a decode moment is ${typeof value}, not number`,
        );
      }
      view.setFloat64(this.#momentsAt + 9 * n + 1, value);
    }
  }

  /**
   * Encodes a snapshot from the start.
   *
   * @param outline Of this snapshot, with the forms.
   * @throws {RangeError} If an extra is none.
   * @throws {TypeError} If a decode moment is no number.
   */
  write(outline: Outline, snapshot: LoadSnapshot): void {
    const { sections, forms, hasUnknown } = outline;
    const extra = hasUnknown ? snapshot.extra : null;
    this.#sections = -1;
    this.#values.set(outline.values);
    this.#forms.set(forms);
    this.#momentCount = outline.momentCount;
    if (outline.mode !== this.#mode) {
      this.#mode = outline.mode;
      this.#encodedMode = UTF8.encode(outline.mode);
    }
    this.#places.fill(0);
    const writer = this.#writer;
    const extraKeys = extra === null ? [] : Object.keys(extra);
    writer.begin();
    writer.mapHead(keyCount(outline) + extraKeys.length);
    for (let v = 0; v < CORE_COUNT; v++) {
      if (v === MOMENTS) {
        if (outline.momentCount >= 0) this.#writeMoments(outline);
      } else if (outline.formAt(v) !== ABSENT) {
        writer.key(v);
        this.#number(outline, v);
      }
    }
    for (let s = 0; s < SECTIONS.length; s++) {
      if ((sections & (1 << s)) !== 0) this.#section(outline, s, snapshot[SECTIONS[s]!.name]!);
    }
    for (const key of extraKeys) {
      if (keyNumber(key) >= 0) {
        throw new RangeError(`Cannot encode load snapshot: ${key} in extra is a known key`);
      }
      writer.string(UTF8.encode(key));
      writer.raw(extra![key]!);
    }
    if (!hasUnknown) this.#sections = sections;
  }

  #number(outline: Outline, v: number): void {
    const form = outline.formAt(v);
    this.#places[v] = this.#writer.number(outline.values[v]!, form) << 4 | form;
  }

  #section(outline: Outline, section: number, tail: SectionTail): void {
    const { fields } = SECTIONS[section]!;
    const extra = outline.hasUnknown ? tail.extra : null;
    this.#writer.key(CORE_COUNT + section);
    this.#writer.arrayHead(fields.length + (extra?.length ?? 0));
    const start = SECTION_START[section]!;
    for (let v = start; v < start + fields.length; v++) {
      if (v === MODE) this.#writer.string(this.#encodedMode);
      else this.#number(outline, v);
    }
    for (const raw of extra ?? []) this.#writer.raw(raw);
  }

  #writeMoments(outline: Outline): void {
    this.#writer.key(MOMENTS);
    this.#writer.arrayHead(outline.momentCount);
    this.#momentsAt = this.#writer.floatTags(outline.momentCount);
    this.#replaceMoments(outline);
  }
}

/** How many known keys the map has. */
function keyCount(outline: Outline): number {
  let count = outline.momentCount < 0 ? 0 : 1;
  for (let v = 0; v < CORE_COUNT; v++) if (outline.formAt(v) !== ABSENT) count++;
  for (let bits = outline.sections; bits !== 0; bits &= bits - 1) count++;
  return count;
}
