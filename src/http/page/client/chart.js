// @ts-check
/** One chart: a course over time, and its value now or under the cursor. */

/// <reference lib="dom" />

import { compact, timeOfDay } from "./format.js";
import { make, setText } from "./dom.js";

/** @typedef {import("npm:uplot@1.6.32")} Plot */
/** @typedef {typeof import("npm:uplot@1.6.32")} PlotClass */
/** @typedef {import("./theme.js").Palette} Palette */

/** A classic script of the page has put it there. */
const plotClass = () =>
  /** @type {{ uPlot: PlotClass }} */ (/** @type {unknown} */ (globalThis)).uPlot;

/** Between two times on the axis, in seconds. */
const TIME_STEPS = [1, 5, 10, 30, 60, 120, 300, 600];

/** Between two values on the axis: 1, 2 and 5 of each power of ten; there is no half request. */
const VALUE_STEPS = Array.from({ length: 36 }, (_, index) => [1, 2, 5][index % 3] ?? 1).map((
  step,
  index,
) => step * 10 ** Math.floor(index / 3));

/** A card with a chart. */
export class Chart {
  /** The card. */
  element = make("section", "chart");
  #name;
  #unit;
  #value = make("span", "chart-value");
  #number = make("span");
  #note = make("small");
  #plotBox = make("div", "plot");
  /** @type {Plot | null} */
  #plot = null;
  /** @type {Palette | null} */
  #drawnWith = null;
  #withMean = false;
  /** @type {import("./courses.js").Course} */
  #course = { times: [], values: [], mean: [] };
  #span = { from: 0, to: 1 };
  /** @type {number | null} */
  #now = null;

  /**
   * @param {string} name
   * @param {string} unit
   */
  constructor(name, unit) {
    this.#name = name;
    this.#unit = unit;
    const head = make("div", "chart-head");
    this.#value.append(this.#number, this.#note);
    head.append(make("h3", "", name), this.#value);
    this.#plotBox.setAttribute("role", "img");
    this.element.append(head, this.#plotBox);
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(this.#plotBox);
  }

  /**
   * Draws a course.
   *
   * @param {import("./courses.js").Course} course
   * @param {{ from: number, to: number }} span In Unix time, in seconds.
   * @param {Palette} palette
   * @param {boolean} withMean
   */
  draw(course, span, palette, withMean) {
    this.#course = course;
    this.#span = span;
    if (palette !== this.#drawnWith || withMean !== this.#withMean || this.#plot === null) {
      this.#plot?.destroy();
      this.#drawnWith = palette;
      this.#withMean = withMean;
      this.#plot = this.#make(palette);
    } else {
      this.#plot.setData(dataOf(course), false);
      this.#plot.setScale("x", { min: span.from, max: span.to });
    }
    this.#showValue();
    this.#describe();
  }

  /**
   * @param {Palette} palette
   * @returns {Plot}
   */
  #make(palette) {
    const font = `11px ${palette.font}`;
    const axis = { stroke: palette.inkSoft, font, ticks: { show: false } };
    const plot = new (plotClass())(
      {
        ...this.#size(),
        padding: [8, 10, 0, 0],
        legend: { show: false },
        cursor: { sync: { key: "courses", setSeries: false }, drag: { x: false, y: false } },
        scales: {
          x: { time: true, range: () => [this.#span.from, this.#span.to] },
          // Zero is always there: a small wave does not look like a storm.
          y: { range: (_plot, _low, high) => [0, Math.max(1, (high ?? 0) * 1.12)] },
        },
        axes: [
          {
            ...axis,
            size: 24,
            gap: 6,
            space: 58,
            incrs: TIME_STEPS,
            grid: { show: false },
            values: timeLabels,
          },
          {
            ...axis,
            size: 44,
            gap: 6,
            space: 34,
            incrs: VALUE_STEPS,
            grid: { stroke: palette.line, width: 1 },
            values: (_plot, splits) => splits.map((split) => compactLabel(split)),
          },
        ],
        series: [
          {},
          {
            stroke: palette.accent,
            width: 1.75,
            fill: `color-mix(in srgb, ${palette.accent} 12%, transparent)`,
            points: { show: false },
          },
          {
            show: this.#withMean,
            stroke: palette.inkSoft,
            width: 1.25,
            dash: [4, 4],
            points: { show: false },
          },
        ],
        hooks: { setCursor: [() => this.#showValue()] },
      },
      dataOf(this.#course),
      this.#plotBox,
    );
    return plot;
  }

  #size() {
    return { width: this.#plotBox.clientWidth, height: this.#plotBox.clientHeight };
  }

  /**
   * Takes the value of this moment: it is newer than the last sample.
   *
   * @param {number | null} value
   */
  showNow(value) {
    this.#now = value;
    this.#showValue();
  }

  #showValue() {
    const index = this.#plot?.cursor.idx ?? null;
    const { times, values } = this.#course;
    setText(this.#number, compact(index === null ? this.#now : values[index] ?? null));
    setText(this.#note, index === null ? this.#unit : `at ${timeOfDay(times[index] ?? 0)}`);
  }

  #describe() {
    const values = this.#course.values.filter((value) => value !== null);
    const text = values.length === 0
      ? `${this.#name}: nothing known`
      : `${this.#name}: between ${compact(Math.min(...values))} and ${
        compact(Math.max(...values))
      } ${this.#unit}`;
    this.#plotBox.setAttribute("aria-label", text);
  }
}

/** @param {import("./courses.js").Course} course */
function dataOf({ times, values, mean }) {
  return /** @type {[number[], (number | null)[], (number | null)[]]} */ ([times, values, mean]);
}

/**
 * @param {Plot} _plot
 * @param {number[]} splits
 */
function timeLabels(_plot, splits) {
  return splits.map((split) => {
    const text = timeOfDay(split);
    return split % 60 === 0 ? text.slice(0, 5) : text;
  });
}

/** @param {number} value */
function compactLabel(value) {
  // 1.50M and 2.00M are 1.5M and 2M.
  return compact(value).replace(/\.?0+(?=[kMGT]$)/, (zeros) => zeros.startsWith(".") ? "" : zeros)
    .replace(/(\.\d)0(?=[kMGT]$)/, "$1");
}
