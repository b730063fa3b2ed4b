/** A chart of dots on a logarithmic axis, one row a case, with a line for the spread. */

import type { Spread } from "./statistics.ts";
import { escape, line, logAxis, round, styles, text } from "./svg_chart.ts";

/** One row. */
export interface DotRow {
  readonly name: string;
  readonly spread: Spread;
}

/** Rows below a title of their own. */
export interface DotGroup {
  readonly title: string;
  readonly rows: readonly DotRow[];
}

/** A chart. */
export interface DotChart {
  readonly title: string;
  readonly xLabel: string;
  readonly groups: readonly DotGroup[];
}

/** Sizes in SVG units. */
const SIZE = { width: 860, names: 470, right: 64, top: 36, bottom: 44, row: 17, gap: 10 } as const;

/** Draws a chart; a vertical line marks 1. */
export function renderDots({ title, xLabel, groups }: DotChart): string {
  const spreads = groups.flatMap(({ rows }) => rows.map(({ spread }) => spread));
  const axis = logAxis([1, ...spreads.flatMap(({ low, high }) => [low, high])]);
  const rowCount = groups.reduce((sum, { rows }) => sum + rows.length + 1, 0);
  const height = SIZE.top + rowCount * SIZE.row + groups.length * SIZE.gap + SIZE.bottom;
  const end = height - SIZE.bottom;
  const x = (value: number) =>
    SIZE.names + (SIZE.width - SIZE.names - SIZE.right) * axis.place(value);
  let bottom = SIZE.top;
  const next = (gap = 0) => (bottom += SIZE.row + gap) - SIZE.row / 2;
  const marks = groups.flatMap(({ title, rows }) => [
    text(12, next(SIZE.gap) + 4, title, "start", "title"),
    ...rows.flatMap(({ name, spread }) => {
      const y = next();
      return [
        text(SIZE.names - 10, y + 4, name, "end"),
        `<path class="l2" d="M${round(x(spread.low))} ${round(y)}H${round(x(spread.high))}"/>`,
        `<circle class="f2" cx="${round(x(spread.median))}" cy="${round(y)}" r="4"/>`,
        text(SIZE.width - 8, y + 4, `${Number(spread.median.toPrecision(2))}x`, "end"),
      ];
    }),
  ]);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${height}" role="img">`,
    `<title>${escape(title)}</title>`,
    `<style>\n${styles()}\n</style>`,
    `<rect class="page" width="${SIZE.width}" height="${height}"/>`,
    text(12, 20, title, "start", "title"),
    ...axis.ticks.flatMap((tick) => [
      line(tick === 1 ? "axis" : "grid", x(tick), SIZE.top, x(tick), end),
      text(x(tick), end + 16, String(Number(tick.toPrecision(3))), "middle"),
    ]),
    ...marks,
    text((SIZE.names + SIZE.width - SIZE.right) / 2, height - 8, xLabel, "middle"),
    "</svg>\n",
  ].join("\n");
}
