/** Slopes, charts and options of the benchmarks, on made-up figures. */

import assert from "node:assert/strict";
import { chartsOf } from "../bench/charts.ts";
import { exponentOf, type Grown, growthOf, lineOf, renderGrowth } from "../bench/growth.ts";
import { readOptions } from "../bench/options.ts";
import type { GrowthPoint } from "../bench/results.ts";
import { runFromJson } from "../bench/run_file.ts";

const VALUES = [1, 8, 64, 512];

function near(actual: number, expected: number): void {
  assert(Math.abs(actual - expected) < 1e-6 * Math.abs(expected), `${actual} is not ${expected}`);
}

function caseOf(
  value: number,
  series: Readonly<Record<string, readonly number[]>>,
  axis: GrowthPoint["axis"] = "ranks",
): Grown {
  return { unit: "ns", series, growth: { kind: "readAll", axis, value } };
}

Deno.test("a power has its exponent, and a straight line its parts", () => {
  near(exponentOf(VALUES.map((value) => [value, 7 * value ** 1.5])), 1.5);
  assert(Math.abs(exponentOf(VALUES.map((value) => [value, 40]))) < 1e-9);
  const { fixed, perUnit } = lineOf(VALUES.map((value) => [value, 300 + 25 * value]));
  near(fixed, 300);
  near(perUnit, 25);
});

Deno.test("a point at 0 counts for the line, and has no logarithm", () => {
  near(exponentOf([[0, 5], [1, 2], [2, 4], [4, 8]]), 1);
  near(lineOf([[0, 5], [1, 6], [2, 7], [4, 9]]).fixed, 5);
});

Deno.test("each side of a kind has a curve, in the order of its points", () => {
  const results = [64, 1, 8].map((value) =>
    caseOf(value, { ours: [2 * value, 2 * value, 2 * value], reference: [50, 50, 50] })
  );
  const [ours, reference] = growthOf(results);
  assert.deepEqual(ours!.points, [[1, 2], [8, 16], [64, 128]]);
  near(ours!.exponent.median, 1);
  near(ours!.perUnit, 2);
  assert(Math.abs(reference!.exponent.median) < 1e-9);
  near(reference!.fixed, 50);
  const text = renderGrowth([ours!, reference!]);
  assert.match(text, /readAll +ours +1\.\.64 ranks +1\.00 \(1\.00\.\.1\.00\) +2\.00 ns/);
});

Deno.test("too few points, and cases of no curve, have no slope", () => {
  const two = [1, 8].map((value) => caseOf(value, { ours: [1, 1, 1] }));
  assert.deepEqual(growthOf([...two, { unit: "ns", series: { ours: [1] } }]), []);
  assert.equal(renderGrowth([]), "");
});

Deno.test("the same kind along two axes is two curves", () => {
  const results = (["ranks", "bytes"] as const).flatMap((axis) =>
    VALUES.map((value) => caseOf(value, { ours: [value] }, axis))
  );
  assert.deepEqual(growthOf(results).map(({ axis }) => axis), ["ranks", "bytes"]);
});

Deno.test("a run is drawn, and what it lacks is left out", () => {
  const results = VALUES.map((ranks) => ({
    section: "Slot <file>",
    name: `write, ${ranks} ranks`,
    unit: "ns",
    series: { ours: [100, 110, 120], reference: [500, 510, 520] },
    ratios: { "times as fast": [4.5, 5, 5.5] },
    growth: { kind: "write", axis: "ranks", value: ranks },
  }));
  const draw = (some: readonly unknown[]) =>
    chartsOf(runFromJson(JSON.stringify({ machine: {}, results: some }), "a run"));
  const charts = draw(results);
  assert.deepEqual([...charts.keys()], ["times_as_fast.svg", "by_ranks.svg"]);
  const dots = charts.get("times_as_fast.svg")!;
  assert.equal(dots.match(/<circle/g)?.length, 2);
  assert(dots.includes("Slot &lt;file&gt;") && !dots.includes("write, 1 ranks"));
  assert.equal(charts.get("by_ranks.svg")!.match(/<circle/g)?.length, 8);
  for (const svg of charts.values()) {
    assert(!/NaN|Infinity|undefined/.test(svg));
    assert(svg.includes("prefers-color-scheme: dark"));
  }
  assert.equal(draw([]).size, 0);
});

Deno.test("options that do not go together are refused", () => {
  assert.deepEqual(readOptions(["--compare", "a", "--with", "b"]), {
    cases: [],
    json: null,
    compare: "a",
    charts: null,
    with: "b",
    quick: false,
  });
  assert.equal(readOptions(["--help"]), null);
  for (
    const args of [
      ["--with", "a"],
      ["--with", "a", "--charts", "b", "--quick"],
      ["--with", "a", "--compare", "b", "--json", "c"],
      ["--with", "a", "--compare", "b", "--case", "read"],
      ["--wrong"],
    ]
  ) assert.throws(() => readOptions(args), TypeError);
});
