// @ts-check
/** What the charts show, out of the history: the group, or one rank beside the mean of all. */

import { History } from "./history.js";

/** @typedef {import("./history.js").Field} Field */
/** @typedef {import("./group.js").Group} Group */

/**
 * What one chart draws.
 * @typedef {object} Course
 * @property {readonly number[]} times Unix time, in seconds.
 * @property {readonly (number | null)[]} values
 * @property {readonly (number | null)[]} mean Of all ranks; all gaps where the group itself is shown.
 */

/** Times this far apart have a gap between them, in seconds. */
const GAP_S = 3;

/** The last minutes, a sample each second. */
export class Courses {
  #ranks = new History(0, 1);
  #group;
  #capacity;

  /** @param {number} capacity In samples. */
  constructor(capacity) {
    this.#capacity = capacity;
    this.#group = new History(2, capacity);
    this.#ranks = new History(0, capacity);
  }

  /**
   * Takes a sample if a second has passed since the last one.
   *
   * @param {Group} group
   * @param {number} unixSeconds
   * @param {(rank: import("./rank.js").Rank) => boolean} isLive What is not leaves a gap.
   * @returns {boolean} Whether it did.
   */
  sample(group, unixSeconds, isLive) {
    const last = this.#group.newestTime;
    // A clock that was set back starts the courses anew.
    if (last !== null && unixSeconds < last - 1) this.#clear();
    else if (last !== null && unixSeconds - last < 0.95) return false;
    if (last !== null && unixSeconds - last > GAP_S) this.#push(group, last + 1, () => false);
    this.#push(group, unixSeconds, isLive);
    return true;
  }

  /**
   * @param {number | null} rank `null` is the group.
   * @param {Field} field
   * @param {number} since
   * @returns {Course}
   */
  course(rank, field, since) {
    const times = this.#group.times(since);
    if (rank === null) {
      return { times, values: this.#group.series(0, field, since), mean: times.map(() => null) };
    }
    const values = rank < this.#ranks.rows
      ? this.#ranks.series(rank, field, since)
      : times.map(() => null);
    return { times, values, mean: this.#group.series(1, field, since) };
  }

  /** When the newest sample was taken; 0 without one. */
  get version() {
    return this.#group.newestTime ?? 0;
  }

  /**
   * The course of a rank's usage, as a tile shows it.
   *
   * @param {import("./rank.js").Rank} rank
   * @param {number} from
   * @param {number} to
   * @returns {import("./tile.js").Spark}
   */
  spark({ dpRank, load }, from, to) {
    if (dpRank >= this.#ranks.rows || load === null) return { along: [], usage: [] };
    const most = load.max_total_num_tokens;
    return {
      along: this.#ranks.times(from).map((time) => (time - from) / (to - from)),
      usage: this.#ranks.series(dpRank, "tokens", from).map((tokens) =>
        tokens === null || !(most > 0) ? null : tokens / most
      ),
    };
  }

  #clear() {
    this.#group = new History(2, this.#capacity);
    this.#ranks = new History(this.#ranks.rows, this.#capacity);
  }

  /**
   * @param {Group} group
   * @param {number} time
   * @param {(rank: import("./rank.js").Rank) => boolean} isLive
   */
  #push(group, time, isLive) {
    const { ranks } = group;
    if (this.#ranks.rows !== ranks.length) this.#ranks = this.#ranks.resized(ranks.length);
    let live = 0;
    this.#ranks.push(time, (row) => {
      const rank = ranks[row];
      if (rank === undefined || rank.load === null || !isLive(rank)) return null;
      live++;
      return sampleOf(rank.load);
    });
    // A rank that hangs still has its requests: the group counts it, as its figures do.
    const totals = live === 0 ? null : group.totals();
    this.#group.push(time, (row) => {
      if (totals === null) return null;
      return sampleOfTotals(totals, row === 0 ? 1 : totals.reported);
    });
  }
}

/**
 * @param {import("./rank.js").Load} load
 * @returns {import("./history.js").Sample}
 */
export function sampleOf(load) {
  return {
    tokens: load.num_used_tokens,
    running: load.num_running_reqs,
    waiting: load.num_waiting_reqs,
    throughput: load.gen_throughput,
  };
}

/**
 * @param {import("./group.js").Totals} totals
 * @param {number} [share] By how many they are divided.
 * @returns {import("./history.js").Sample}
 */
export function sampleOfTotals(totals, share = 1) {
  return {
    tokens: totals.usedTokens / share,
    running: totals.running / share,
    waiting: totals.waiting / share,
    throughput: totals.throughput / share,
  };
}
