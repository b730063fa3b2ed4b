// @ts-check
/** What is known of the group: each rank's newest load, state and age, and what they come to. */

import { listIn, numberIn, valueIn } from "./json_values.js";
import { loadFrom, shownState, STATES } from "./rank.js";

/** @typedef {import("./rank.js").Rank} Rank */
/** @typedef {import("./rank.js").RankState} RankState */

/**
 * @typedef {object} Totals
 * @property {number} reported Ranks that these are the totals of.
 * @property {number} running
 * @property {number} waiting
 * @property {number} usedTokens
 * @property {number} totalTokens
 * @property {number} maxTokens
 * @property {number | null} usage
 * @property {number} throughput
 */

/** More than any group has; what a server says beyond that is not believed. */
const MOST_RANKS = 8192;

/** The group as the stream tells it. */
export class Group {
  /** @type {Rank[]} */
  #ranks = [];
  #told = false;

  /** All ranks, in order. @returns {readonly Rank[]} */
  get ranks() {
    return this.#ranks;
  }

  /** Whether the server has said how many ranks there are. */
  get isTold() {
    return this.#told;
  }

  /**
   * Takes the data of a `loads` event: all ranks that have a load, or those that changed.
   *
   * @param {unknown} data
   * @param {number} now
   */
  applyLoads(data, now) {
    for (const entry of listIn(data, "loads")) {
      const rank = this.#rankOf(entry, now);
      if (rank === null) continue;
      rank.load = loadFrom(entry);
      this.#judge(rank, entry, now);
    }
  }

  /**
   * Takes the data of a `health` event: every rank's state and age.
   *
   * @param {unknown} data
   * @param {number} now
   * @returns {ReadonlyMap<RankState, readonly number[]>} The ranks whose state has changed, by the new state.
   */
  applyHealth(data, now) {
    const size = numberIn(data, "dp_size");
    if (size !== null && Number.isInteger(size) && size >= 0 && size <= MOST_RANKS) {
      // A new engine may be smaller; what the old one's ranks told is not its load.
      this.#ranks.length = Math.min(this.#ranks.length, size);
      this.#growTo(size, now);
    }
    const first = !this.#told;
    this.#told = true;
    /** @type {Map<RankState, number[]>} */
    const changed = new Map();
    for (const entry of listIn(data, "ranks")) {
      const rank = this.#rankOf(entry, now);
      if (rank === null) continue;
      const before = rank.state;
      this.#judge(rank, entry, now);
      if (rank.state === "unreported") rank.load = null;
      if (rank.state === before || first) continue;
      const list = changed.get(rank.state);
      if (list === undefined) changed.set(rank.state, [rank.dpRank]);
      else list.push(rank.dpRank);
    }
    return changed;
  }

  /**
   * What all ranks that have told a load come to, whether it is fresh or not.
   *
   * @returns {Totals | null} `null` if none has.
   */
  totals() {
    const totals = {
      reported: 0,
      running: 0,
      waiting: 0,
      usedTokens: 0,
      totalTokens: 0,
      maxTokens: 0,
      throughput: 0,
    };
    for (const { load } of this.#ranks) {
      if (load === null) continue;
      totals.reported++;
      totals.running += known(load.num_running_reqs);
      totals.waiting += known(load.num_waiting_reqs);
      totals.usedTokens += known(load.num_used_tokens);
      totals.totalTokens += known(load.num_total_tokens);
      totals.maxTokens += known(load.max_total_num_tokens);
      totals.throughput += known(load.gen_throughput);
    }
    if (totals.reported === 0) return null;
    return {
      ...totals,
      usage: totals.maxTokens > 0 ? totals.usedTokens / totals.maxTokens : null,
    };
  }

  /**
   * How many ranks are shown in each state.
   *
   * @param {number} now
   * @param {boolean} connected
   * @returns {Record<RankState, number>}
   */
  stateCounts(now, connected) {
    const counts = { live: 0, stale: 0, corrupt: 0, unreported: 0 };
    for (const rank of this.#ranks) counts[shownState(rank, now, connected)]++;
    return counts;
  }

  /**
   * @param {unknown} entry
   * @param {number} now
   * @returns {Rank | null}
   */
  #rankOf(entry, now) {
    const dpRank = numberIn(entry, "dp_rank");
    if (dpRank === null || !Number.isInteger(dpRank) || dpRank < 0 || dpRank >= MOST_RANKS) {
      return null;
    }
    this.#growTo(dpRank + 1, now);
    return this.#ranks[dpRank] ?? null;
  }

  /**
   * @param {number} size
   * @param {number} now
   */
  #growTo(size, now) {
    while (this.#ranks.length < size) {
      const dpRank = this.#ranks.length;
      this.#ranks.push({ dpRank, load: null, state: "unreported", ageMs: null, heardAt: now });
    }
  }

  /**
   * @param {Rank} rank
   * @param {unknown} entry
   * @param {number} now
   */
  #judge(rank, entry, now) {
    const state = STATES.find((name) => name === valueIn(entry, "state"));
    if (state !== undefined) rank.state = state;
    rank.ageMs = numberIn(entry, "age_ms");
    rank.heardAt = now;
  }
}

/** @param {number} value */
function known(value) {
  return Number.isFinite(value) ? value : 0;
}
