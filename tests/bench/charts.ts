/** The charts of a run, for README.md. */

import { TIMES_AS_FAST } from "./compare.ts";
import { type DotGroup, renderDots } from "./dot_chart.ts";
import { type Growth, growthOf } from "./growth.ts";
import type { SavedCase, SavedRun } from "./run_file.ts";
import { spreadOf } from "./statistics.ts";
import { type Chart, renderCharts } from "./svg_chart.ts";

/** What is drawn over the ranks: all kinds of reading and writing a slot file. */
const BY_RANKS = [
  "read, changed",
  "read, unchanged",
  "readAll, changed",
  "readAll, unchanged",
  "write",
] as const;

/** The curves' other cases are in a chart of their own. */
const DRAWN_RANKS: readonly number[] = [8, 512];

/** Draws a run. Charts without anything to show are left out. */
export function chartsOf(run: SavedRun): Map<string, string> {
  const charts = new Map<string, string>();
  const groups = groupsOf(run.results);
  const of = `loadslots ${run.machine.loadslots ?? ""}, ${run.machine.date?.slice(0, 10) ?? ""}`;
  if (groups.length > 0) {
    const title = `Times as fast as SGLang's own (${of})`;
    const xLabel = "times as fast, with the quartiles of the rounds";
    charts.set("times_as_fast.svg", renderDots({ title, xLabel, groups }));
  }
  const growths = growthOf(run.results);
  const byRanks = BY_RANKS.flatMap((kind) => chartOf(growths, kind, "ranks"));
  if (byRanks.length > 0) charts.set("by_ranks.svg", renderCharts(byRanks));
  const others = (["bytes", "readers"] as const).flatMap((axis) => {
    const kinds = new Set(growths.filter((one) => one.axis === axis).map(({ kind }) => kind));
    return Array.from(kinds).flatMap((kind) => chartOf(growths, kind, axis));
  });
  if (others.length > 0) charts.set("by_size_and_readers.svg", renderCharts(others));
  return charts;
}

function groupsOf(results: readonly SavedCase[]): DotGroup[] {
  const drawn = results.filter(({ ratios, growth }) =>
    (ratios[TIMES_AS_FAST]?.length ?? 0) > 0 &&
    (growth === undefined || (growth.axis === "ranks" && DRAWN_RANKS.includes(growth.value)))
  );
  return Array.from(Map.groupBy(drawn, ({ section }) => section), ([section, cases]) => ({
    title: section,
    rows: cases.map(({ name, ratios }) => ({ name, spread: spreadOf(ratios[TIMES_AS_FAST]!) })),
  }));
}

/** One panel, with a line for each side; none if nothing was measured. */
function chartOf(growths: readonly Growth[], kind: string, axis: Growth["axis"]): Chart[] {
  const sides = growths.filter((one) => one.kind === kind && one.axis === axis);
  if (sides.length === 0) return [];
  const values = [...new Set(sides.flatMap(({ points }) => points.map(([value]) => value)))]
    .toSorted((a, b) => a - b);
  return [{
    title: axis === "ranks" ? kind : `${kind}, by ${axis}`,
    kind: "lines",
    xLabel: axis,
    yLabel: "us",
    isLog: true,
    categories: values.map((value) => String(Math.round(value))),
    series: sides.map(({ side, points }) => ({
      name: side,
      values: values.map((value) => {
        const cost = points.find(([at]) => at === value)?.[1];
        return cost === undefined ? null : cost / 1000;
      }),
    })),
  }];
}
