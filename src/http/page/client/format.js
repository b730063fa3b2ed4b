// @ts-check
/** How numbers, shares and ages are written. What is not known is a dash, never a zero. */

/** Stands for what is not known. */
export const UNKNOWN = "–";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * A whole number with its thousands apart: 165,431.
 *
 * @param {number | null} value
 * @returns {string}
 */
export function exact(value) {
  if (value === null || !Number.isFinite(value)) return UNKNOWN;
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * A number in few characters: as it is below 10,000, else with three digits that count: 165k, 2.10M.
 *
 * @param {number | null} value
 * @returns {string}
 */
export function compact(value) {
  if (value === null || !Number.isFinite(value)) return UNKNOWN;
  if (Math.abs(value) < 9999.5) return exact(value);
  for (const [unit, name] of UNITS) {
    // What rounds to a thousand of a unit is one of the next.
    if (Math.abs(value) < 999.5 * unit) return threeDigits(value / unit) + name;
  }
  return threeDigits(value / 1e12) + "T";
}

/** @type {readonly (readonly [number, string])[]} */
const UNITS = [[1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"]];

/**
 * @param {number} value
 * @returns {string}
 */
function threeDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/**
 * A share as whole per cent, without the sign; it says 100 only when full, and 0 only when empty.
 *
 * @param {number | null} share
 * @returns {string}
 */
export function percent(share) {
  const value = percentOf(share);
  return value === null ? UNKNOWN : String(value);
}

/**
 * @param {number | null} share
 * @returns {number | null} 0..100, or more where the engine says so.
 */
export function percentOf(share) {
  if (share === null || !Number.isFinite(share)) return null;
  const value = Math.round(share * 100);
  if (value === 100 && share < 1) return 99;
  if (value === 0 && share > 0) return 1;
  return Math.max(0, value);
}

/**
 * How long ago: now, 12 s, 3 min, 2 h, 5 d. Whole units, so that a wall does not flicker.
 *
 * @param {number | null} ageMs
 * @returns {string}
 */
export function age(ageMs) {
  if (ageMs === null || !Number.isFinite(ageMs)) return UNKNOWN;
  if (ageMs < 1000) return "now";
  if (ageMs < MINUTE_MS) return `${Math.floor(ageMs / 1000)} s`;
  if (ageMs < HOUR_MS) return `${Math.floor(ageMs / MINUTE_MS)} min`;
  if (ageMs < DAY_MS) return `${Math.floor(ageMs / HOUR_MS)} h`;
  return `${Math.floor(ageMs / DAY_MS)} d`;
}

/**
 * The same, within a sentence.
 *
 * @param {number | null} ageMs
 * @returns {string}
 */
export function ago(ageMs) {
  if (ageMs === null) return "never";
  return ageMs < 1000 ? "just now" : `${age(ageMs)} ago`;
}

/**
 * The time of day: 14:03:09.
 *
 * @param {number} unixSeconds
 * @returns {string}
 */
export function timeOfDay(unixSeconds) {
  const date = new Date(unixSeconds * 1000);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, "0")).join(":");
}

/**
 * One or many: 1 rank, 8 ranks.
 *
 * @param {number} count
 * @param {string} noun
 * @returns {string}
 */
export function countOf(count, noun) {
  return `${exact(count)} ${noun}${count === 1 ? "" : "s"}`;
}
