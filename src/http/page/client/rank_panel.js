// @ts-check
/** All that is known of the chosen rank. */

/// <reference lib="dom" />

import { ageNow, shownState } from "./group.js";
import { ago, exact, UNKNOWN } from "./format.js";
import { byId, make, setText, show } from "./dom.js";

/** @typedef {import("./group.js").Load} Load */

/** @type {readonly (readonly [name: string, text: (load: Load) => string])[]} */
const VALUES = [
  ["Running", (load) => exact(load.num_running_reqs)],
  ["Waiting", (load) => exact(load.num_waiting_reqs)],
  ["Usage", (load) => share(load.token_usage)],
  ["Tokens in use", (load) => exact(load.num_used_tokens)],
  ["Tokens, with waiting", (load) => exact(load.num_total_tokens)],
  ["Uncached waiting", (load) => exact(load.num_waiting_uncached_tokens)],
  ["Token capacity", (load) => exact(load.max_total_num_tokens)],
  ["Tokens/s", (load) => exact(load.gen_throughput)],
  ["Cache hits", (load) => share(load.cache_hit_rate)],
  ["Most running", (load) => exact(load.max_running_requests)],
];

/** The panel. */
export class RankPanel {
  #section = byId("chosen");
  #title = byId("chosen-title");
  #state = byId("chosen-state");
  #values;

  /** @param {() => void} onClose */
  constructor(onClose) {
    const list = byId("chosen-values");
    this.#values = VALUES.map(([name, text]) => {
      const group = make("div");
      const value = make("dd");
      group.append(make("dt", "", name), value);
      list.append(group);
      return { value, text };
    });
    byId("chosen-close").addEventListener("click", onClose);
  }

  /**
   * @param {import("./group.js").Rank | null} rank
   * @param {number} now
   * @param {boolean} connected
   */
  update(rank, now, connected) {
    show(this.#section, rank !== null);
    if (rank === null) return;
    const state = shownState(rank, now, connected);
    setText(this.#title, `Rank ${rank.dpRank}`);
    setText(this.#state, stateText(state, ageNow(rank, now)));
    this.#state.dataset["state"] = state;
    for (const { value, text } of this.#values) {
      setText(value, rank.load === null ? UNKNOWN : text(rank.load));
    }
  }
}

/**
 * @param {import("./group.js").RankState} state
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
