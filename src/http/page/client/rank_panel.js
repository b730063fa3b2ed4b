// @ts-check
/** What the charts are of, and all else that is known of the chosen rank. */

/// <reference lib="dom" />

import { ageNow, shownState } from "./rank.js";
import { ago, exact, UNKNOWN } from "./format.js";
import { byId, make, setText, show } from "./dom.js";

/** @typedef {import("./rank.js").Load} Load */

/** @type {readonly (readonly [name: string, text: (load: Load) => string])[]} */
const VALUES = [
  ["Running", (load) => exact(load.num_running_reqs)],
  ["Waiting", (load) => exact(load.num_waiting_reqs)],
  ["Usage", (load) => share(load.token_usage)],
  ["Tokens in use", (load) => exact(load.num_used_tokens)],
  ["Used and pending", (load) => exact(load.num_total_tokens)],
  ["Uncached waiting", (load) => exact(load.num_waiting_uncached_tokens)],
  ["Token capacity", (load) => exact(load.max_total_num_tokens)],
  ["Tokens/s", (load) => exact(load.gen_throughput)],
  ["Cache hits", (load) => share(load.cache_hit_rate)],
  ["Most running", (load) => exact(load.max_running_requests)],
];

/** The heading above the charts, and the values below them. */
export class RankPanel {
  #list = byId("chosen-values");
  #title = byId("chosen-title");
  #close = byId("chosen-close");
  #state = byId("chosen-state");
  #values;

  /** @param {() => void} onClose */
  constructor(onClose) {
    this.#values = VALUES.map(([name, text]) => {
      const group = make("div");
      const value = make("dd");
      group.append(make("dt", "", name), value);
      this.#list.append(group);
      return { value, text };
    });
    this.#close.addEventListener("click", onClose);
  }

  /**
   * @param {import("./rank.js").Rank | null} rank
   * @param {number} now
   * @param {boolean} connected
   */
  update(rank, now, connected) {
    for (const part of [this.#list, this.#state, this.#close]) show(part, rank !== null);
    setText(this.#title, rank === null ? "The group, over time" : `Rank ${rank.dpRank}`);
    if (rank === null) return;
    const state = shownState(rank, now, connected);
    setText(this.#state, stateText(state, ageNow(rank, now)));
    this.#state.dataset["state"] = state;
    for (const { value, text } of this.#values) {
      setText(value, rank.load === null ? UNKNOWN : text(rank.load));
    }
  }
}

/**
 * @param {import("./rank.js").RankState} state
 * @param {number | null} ageMs
 * @returns {string}
 */
function stateText(state, ageMs) {
  switch (state) {
    case "unreported":
      return "never reported";
    case "corrupt":
      return `corrupt, last good load ${ago(ageMs)}`;
    default:
      return `${state}, ${ago(ageMs)}`;
  }
}

/** @param {number} value */
function share(value) {
  return Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : UNKNOWN;
}
