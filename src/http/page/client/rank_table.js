// @ts-check
/** All ranks as a table: for those who read rather than look. Written only while it is open. */

/// <reference lib="dom" />

import { ageNow, shownState, stateName } from "./rank.js";
import { ago, exact, percent, UNKNOWN } from "./format.js";
import { byId, make, setText } from "./dom.js";

/** Numbers that a person reads row by row need not change faster. */
const INTERVAL_MS = 1000;

/** @typedef {import("./rank.js").Load} Load */

/** @type {readonly (readonly [name: string, text: (load: Load) => string])[]} */
const COLUMNS = [
  ["Running", (load) => exact(load.num_running_reqs)],
  ["Waiting", (load) => exact(load.num_waiting_reqs)],
  ["Tokens in use", (load) => exact(load.num_used_tokens)],
  ["Capacity", (load) => exact(load.max_total_num_tokens)],
  ["Usage %", (load) => percent(load.token_usage)],
  ["Tokens/s", (load) => exact(load.gen_throughput)],
];

/** The table. */
export class RankTable {
  #details = /** @type {HTMLDetailsElement} */ (byId("table"));
  #body = byId("table-body");
  /** @type {HTMLElement[][]} */
  #rows = [];
  #lastMs = -Infinity;

  /** @param {() => void} onOpen Called when it has to be filled. */
  constructor(onOpen) {
    const head = make("tr");
    for (const name of ["Rank", ...COLUMNS.map(([name]) => name), "State", "Heard"]) {
      const cell = make("th", "", name);
      cell.scope = "col";
      head.append(cell);
    }
    byId("table-head").append(head);
    this.#details.addEventListener("toggle", () => {
      this.#lastMs = -Infinity;
      if (this.#details.open) onOpen();
    });
  }

  /**
   * @param {readonly import("./rank.js").Rank[]} ranks
   * @param {number} now
   * @param {boolean} connected
   */
  update(ranks, now, connected) {
    if (!this.#details.open || now - this.#lastMs < INTERVAL_MS) return;
    this.#lastMs = now;
    while (this.#rows.length > ranks.length) {
      this.#rows.pop();
      this.#body.lastElementChild?.remove();
    }
    while (this.#rows.length < ranks.length) this.#rows.push(this.#addRow());
    ranks.forEach((rank, index) => {
      const { load } = rank;
      const texts = [
        String(rank.dpRank),
        ...COLUMNS.map(([, text]) => load === null ? UNKNOWN : text(load)),
        stateName(shownState(rank, now, connected)),
        ago(ageNow(rank, now)),
      ];
      this.#rows[index]?.forEach((cell, column) => setText(cell, texts[column] ?? ""));
    });
  }

  /** @returns {HTMLElement[]} Its cells. */
  #addRow() {
    const row = make("tr");
    const rank = make("th");
    rank.scope = "row";
    const cells = [rank, ...Array.from({ length: COLUMNS.length + 2 }, () => make("td"))];
    row.append(...cells);
    this.#body.append(row);
    return cells;
  }
}
