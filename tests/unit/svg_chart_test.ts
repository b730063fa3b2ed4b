/** Charts as text: everything has its place, and names do no harm. */

import assert from "node:assert/strict";
import { type Chart, renderCharts } from "../bench/svg_chart.ts";

const CHART: Chart = {
  title: "Waits <of> A & B",
  kind: "bars",
  xLabel: "delay, ms",
  yLabel: "p99, ms",
  isLog: false,
  categories: ["10", "20"],
  series: [{ name: "ours", values: [30, 60] }, { name: "theirs", values: [90, null] }],
};

/** The numbers of an attribute, in order of the text. */
function numbersOf(svg: string, element: string, attribute: string): number[] {
  const pattern = new RegExp(`<${element} [^>]*\\b${attribute}="([^"]*)"`, "g");
  return Array.from(svg.matchAll(pattern), ([, value]) => Number(value));
}

Deno.test("bars are as high as their values, and a gap has none", () => {
  const svg = renderCharts([CHART]);
  // The page and two marks of the legend come first.
  const heights = numbersOf(svg, "rect", "height").slice(3);
  assert.equal(heights.length, 3);
  const [thirty, sixty, ninety] = heights.toSorted((a, b) => a - b);
  assert(
    Math.abs(sixty! - 2 * thirty!) < 0.5 && Math.abs(ninety! - 3 * thirty!) < 0.5,
    `${heights}`,
  );
});

Deno.test("on a logarithmic axis, equal ratios are equal distances", () => {
  const series = [{ name: "x", values: [3, 30, 300] }];
  const lines: Chart = {
    ...CHART,
    kind: "lines",
    isLog: true,
    categories: ["a", "b", "c"],
    series,
  };
  const [low, middle, high] = numbersOf(renderCharts([lines]), "circle", "cy");
  assert(low! > middle! && middle! > high!);
  assert(Math.abs((low! - middle!) - (middle! - high!)) < 0.3, `${low} ${middle} ${high}`);
});

Deno.test("a logarithmic axis takes zeros, single values and none", () => {
  for (const values of [[0, 5], [7, 7], [1e-9, 1e12], [null, null]]) {
    for (const kind of ["bars", "lines"] as const) {
      const svg = renderCharts([{ ...CHART, kind, isLog: true, series: [{ name: "x", values }] }]);
      assert(!/NaN|Infinity|undefined/.test(svg), `${values}`);
    }
  }
});

Deno.test("names are text, charts stand beside each other, and dark pages have their own colours", () => {
  const svg = renderCharts([CHART, CHART, CHART], 2);
  assert(svg.includes("Waits &lt;of&gt; A &amp; B") && !svg.includes("<of>"));
  assert.deepEqual(Array.from(svg.matchAll(/translate\((\d+) (\d+)\)">/g), ([, x, y]) => [x, y]), [
    ["0", "0"],
    ["560", "0"],
    ["0", "360"],
  ]);
  assert(svg.includes("prefers-color-scheme: dark"));
});
