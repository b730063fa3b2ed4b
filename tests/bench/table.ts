/** Results as text. */

import { type Result, type Section, type Unit, type Verdict, verdictsOf } from "./results.ts";
import { median, spreadOf } from "./statistics.ts";

const NOTHING = "-";

/** Renders a section: a title, a table, and notes. */
export function renderSection(section: Section): string {
  const { title, series, ratios, results, notes } = section;
  const header = ["case", ...series, ...ratios, "target"];
  const rows = results.map((result) => [
    result.name,
    ...series.map((name) => figure(result.series[name], result.unit)),
    ...ratios.map((name) => ratio(result.ratios[name])),
    verdictsOf(result).map((verdict) => verdictText(verdict, result)).join("; ") || NOTHING,
  ]);
  return [title, "", ...lines([header, ...rows]), ...notes.map((note) => `  ${note}`), ""].join(
    "\n",
  );
}

/** Renders the count of targets, and each one that was missed. */
export function renderVerdicts(sections: readonly Section[]): string {
  const looked = sections.flatMap(({ results }) =>
    results.flatMap((result) => verdictsOf(result).map((verdict) => ({ result, verdict })))
  );
  const missed = looked.filter(({ verdict }) => !verdict.met);
  return [
    `${looked.length - missed.length} of ${looked.length} targets met`,
    ...missed.map(({ result, verdict }) =>
      `  missed: ${result.name}: ${verdict.target.of} ${verdictText(verdict, result)}`
    ),
  ].join("\n");
}

/** Lays out rows, the first of which is the header: text to the left, figures to the right. */
export function lines(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const render = (row: readonly string[]) =>
    row.map((cell, column) => {
      const isText = column === 0 || column === row.length - 1;
      return isText ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
    }).join("  ").trimEnd();
  return [
    render(rows[0]!),
    widths.map((width) => "-".repeat(width)).join("  "),
    ...rows.slice(1).map(render),
  ];
}

function figure(samples: readonly number[] | undefined, unit: Unit): string {
  return samples === undefined || samples.length === 0 ? NOTHING : amount(median(samples), unit);
}

function ratio(samples: readonly number[] | undefined): string {
  if (samples === undefined || samples.length === 0) return NOTHING;
  const { low, median: middle, high } = spreadOf(samples);
  return `${short(middle)}x (${short(low)}..${short(high)})`;
}

function verdictText({ target, found, met }: Verdict, result: Result): string {
  const [word, limit] = "atLeast" in target
    ? ["at least", target.atLeast] as const
    : ["at most", target.atMost] as const;
  const say = (value: number) =>
    target.of in result.ratios ? `${short(value)}x` : amount(value, result.unit);
  return `${word} ${say(limit)}: ${met ? "met" : `NOT MET (${say(found)})`}`;
}

/** A time or a size in the unit that suits it. */
export function amount(value: number, unit: Unit): string {
  if (unit === "bytes") return `${(value / 2 ** 20).toFixed(1)} MiB`;
  if (Math.abs(value) < 1e3) return `${value.toFixed(0)} ns`;
  if (Math.abs(value) < 1e6) return `${short(value / 1e3)} us`;
  return `${short(value / 1e6)} ms`;
}

/** Three digits that matter. */
export function short(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}
