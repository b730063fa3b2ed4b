/** Comparing snapshots quickly, for tests that compare many. */

import assert from "node:assert/strict";

/**
 * Whether two values are equal like `assert.deepEqual` has it, NaN and -0 included, but whatever
 * their prototypes are: a snapshot's unknown keys may be in an object that has none.
 */
export function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    if (!(a instanceof Uint8Array && b instanceof Uint8Array)) return false;
    return a.length === b.length && a.every((byte, at) => byte === b[at]);
  }
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return keys.every((key) => Object.hasOwn(b, key) && isSame(left[key], right[key]));
}

/** Asserts that two values are the same; see {@linkcode isSame}. */
export function assertSame(actual: unknown, expected: unknown, message?: string): void {
  if (isSame(actual, expected)) return;
  const difference = new assert.AssertionError({ actual, expected, operator: "deepStrictEqual" });
  assert.fail(message === undefined ? difference : `${message}\n${difference.message}`);
}
