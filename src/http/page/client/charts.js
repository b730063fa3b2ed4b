// @ts-check
/** The four charts, and how long a time they show. */

/// <reference lib="dom" />

import { Chart } from "./chart.js";
import { byId, show } from "./dom.js";

/** @typedef {import("./history.js").Field} Field */

/** The longest time that can be shown, in seconds. */
export const LONGEST_S = 15 * 60;

/** @type {readonly (readonly [field: Field, name: string, unit: string])[]} */
const CHARTS = [
  ["tokens", "Tokens in use", "tokens"],
  ["running", "Running", "requests"],
  ["waiting", "Waiting", "requests"],
  ["throughput", "Throughput", "tokens/s"],
];

/** The charts. */
export class Charts {
  /** The time shown, in seconds. */
  spanS = 5 * 60;
  #charts;
  #versus = byId("versus");

  /** @param {() => void} onChange Called when another time is to be shown. */
  constructor(onChange) {
    this.#charts = CHARTS.map(([field, name, unit]) => ({ field, chart: new Chart(name, unit) }));
    byId("charts").append(...this.#charts.map(({ chart }) => chart.element));
    for (const input of document.getElementsByName("span")) {
      input.addEventListener("change", () => {
        const { value } = /** @type {HTMLInputElement} */ (input);
        this.spanS = Math.min(LONGEST_S, 60 * Number(value));
        onChange();
      });
    }
  }

  /**
   * @param {import("./courses.js").Courses} courses
   * @param {number | null} rank `null` is the group.
   * @param {number} unixSeconds
   * @param {import("./theme.js").Palette} palette
   */
  draw(courses, rank, unixSeconds, palette) {
    show(this.#versus, rank !== null);
    const span = { from: unixSeconds - this.spanS, to: unixSeconds };
    for (const { field, chart } of this.#charts) {
      // One more, so that the line comes in from the edge.
      chart.draw(courses.course(rank, field, span.from - 2), span, palette, rank !== null);
    }
  }

  /**
   * Shows the values of this moment.
   *
   * @param {import("./history.js").Sample | null} values
   */
  showNow(values) {
    for (const { field, chart } of this.#charts) {
      chart.showNow(values === null ? null : values[field]);
    }
  }
}
