// @ts-check
/** Values out of JSON that came from elsewhere: of the right type, or none. */

/**
 * A property, if it is an object that has one.
 *
 * @param {unknown} object
 * @param {string} name
 * @returns {unknown}
 */
export function valueIn(object, name) {
  if (typeof object !== "object" || object === null) return undefined;
  return /** @type {Record<string, unknown>} */ (object)[name];
}

/**
 * A property that is a number.
 *
 * @param {unknown} object
 * @param {string} name
 * @returns {number | null}
 */
export function numberIn(object, name) {
  const value = valueIn(object, name);
  return typeof value === "number" ? value : null;
}

/**
 * A property that is a list; else an empty one.
 *
 * @param {unknown} object
 * @param {string} name
 * @returns {readonly unknown[]}
 */
export function listIn(object, name) {
  const value = valueIn(object, name);
  return Array.isArray(value) ? value : [];
}
