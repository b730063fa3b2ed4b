// @ts-check
/** One rank: its newest load, and what that is worth now. */

import { numberIn } from "./json_values.js";

/**
 * What a rank's load is worth, as the server says.
 * @typedef {"unreported" | "live" | "stale" | "corrupt"} RankState
 */

/** In the order in which they are told. @type {readonly RankState[]} */
export const STATES = ["live", "stale", "corrupt", "unreported"];

/**
 * A load, under the wire's names; only what the page shows.
 * @typedef {object} Load
 * @property {number} num_running_reqs
 * @property {number} num_waiting_reqs
 * @property {number} num_waiting_uncached_tokens
 * @property {number} num_used_tokens
 * @property {number} num_total_tokens
 * @property {number} max_total_num_tokens
 * @property {number} max_running_requests
 * @property {number} token_usage
 * @property {number} gen_throughput
 * @property {number} cache_hit_rate
 */

/**
 * @typedef {object} Rank
 * @property {number} dpRank
 * @property {Load | null} load `null` until it has told one.
 * @property {RankState} state
 * @property {number | null} ageMs As of `heardAt`.
 * @property {number} heardAt By the page's own clock, in ms.
 */

/** Without a word from the server a rank that was live is not called so for longer. */
export const UNHEARD_MS = 5000;

const LOAD_FIELDS = /** @type {const} */ ([
  "num_running_reqs",
  "num_waiting_reqs",
  "num_waiting_uncached_tokens",
  "num_used_tokens",
  "num_total_tokens",
  "max_total_num_tokens",
  "max_running_requests",
  "token_usage",
  "gen_throughput",
  "cache_hit_rate",
]);

/**
 * How old a rank's load is now: ages go on between events.
 *
 * @param {Rank} rank
 * @param {number} now
 * @returns {number | null}
 */
export function ageNow({ ageMs, heardAt }, now) {
  return ageMs === null ? null : ageMs + Math.max(0, now - heardAt);
}

/**
 * The state to show: while nothing is heard of the server, nothing stays live.
 *
 * @param {Rank} rank
 * @param {number} now
 * @param {boolean} connected
 * @returns {RankState}
 */
export function shownState(rank, now, connected) {
  if (rank.state !== "live" || connected) return rank.state;
  return now - rank.heardAt > UNHEARD_MS ? "stale" : "live";
}

/**
 * A state in words.
 *
 * @param {RankState} state
 * @returns {string}
 */
export function stateName(state) {
  return state === "unreported" ? "never reported" : state;
}

/**
 * Used share of a rank's tokens.
 *
 * @param {Load | null} load
 * @returns {number | null}
 */
export function usageOf(load) {
  return load === null || !Number.isFinite(load.token_usage) ? null : load.token_usage;
}

/**
 * Reads a load out of JSON.
 *
 * @param {unknown} entry
 * @returns {Load}
 */
export function loadFrom(entry) {
  const load = /** @type {Load} */ ({});
  // JSON has no NaN: a value that is not a number came as null.
  for (const field of LOAD_FIELDS) load[field] = numberIn(entry, field) ?? NaN;
  return load;
}
