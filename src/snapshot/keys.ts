/** Matching map keys without making strings of them. */

import { CORE_FIELDS, SECTIONS } from "./fields.ts";

/** The keys of the map: the core values, then the sections, in wire order. */
const NAMES: readonly string[] = [
  ...CORE_FIELDS.map((field) => field.wire),
  ...SECTIONS.map((section) => section.wire),
];

/** How many keys the table knows. */
export const KEY_COUNT: number = NAMES.length;

/** The keys as they travel: a fixstr each (none is longer than 31 bytes). */
const ENCODED_KEYS: readonly Uint8Array[] = NAMES.map((name) =>
  Uint8Array.of(0xa0 | name.length, ...new TextEncoder().encode(name))
);

/** Bytes of each encoded key. */
export const KEY_LENGTH: Uint8Array = Uint8Array.from(ENCODED_KEYS, (key) => key.length);

const INDEX = new Map(NAMES.map((name, index) => [name, index]));

// Each key as big-endian words of 4 bytes, the last of them overlapping its predecessor, so that a
// key is compared in two to eight loads.
const WORDS_PER_KEY = 8;
const WORDS = new Int32Array(KEY_COUNT * WORDS_PER_KEY);
ENCODED_KEYS.forEach((key, index) => {
  const view = new DataView(key.buffer);
  for (let w = 0; w * 4 < key.length; w++) {
    WORDS[index * WORDS_PER_KEY + w] = view.getInt32(Math.min(w * 4, key.length - 4));
  }
});

/**
 * Whether a known key stands at a place.
 *
 * @param view The bytes.
 * @param at Where the key's tag would stand.
 * @param end Where the payload ends.
 * @param key The key's number.
 */
export function keyStandsAt(view: DataView, at: number, end: number, key: number): boolean {
  const last = at + KEY_LENGTH[key]! - 4;
  if (last + 4 > end) return false;
  let word = key * WORDS_PER_KEY;
  for (; at < last; at += 4) {
    if (view.getInt32(at) !== WORDS[word++]) return false;
  }
  return view.getInt32(last) === WORDS[word];
}

/**
 * Writes a known key, in whole words; there must be room for it.
 *
 * @param view The bytes.
 * @param at Where the key's tag goes.
 * @param key The key's number.
 * @returns Where its value goes.
 */
export function writeKey(view: DataView, at: number, key: number): number {
  const last = at + KEY_LENGTH[key]! - 4;
  let word = key * WORDS_PER_KEY;
  for (; at < last; at += 4) view.setInt32(at, WORDS[word++]!);
  view.setInt32(last, WORDS[word]!);
  return last + 4;
}

/**
 * The number of a key by its name.
 *
 * @param name The wire name.
 * @returns Its number, or -1 when this release does not know it.
 */
export function keyNumber(name: string): number {
  return INDEX.get(name) ?? -1;
}
