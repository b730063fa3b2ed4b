/** KvMetrics as a table for a terminal: a pure function of what a receiver tells. */

import { type KvMetrics, type RankHealth, totalPages, usedPages } from "../../mod.ts";
import { age, bar, count, keepStart, paint, percent, si, type Style } from "../terminal/text.ts";

/** One rank: what it told last, and what that is worth. */
export interface MetricsRow extends RankHealth {
  readonly metrics: KvMetrics | null;
}

/** How a table is to look. */
export interface MetricsTableOptions {
  /** Tokens of a page. */
  readonly pageSize: number;
  /** Columns of the terminal; no line is longer. */
  readonly width: number;
  /** Whether escape sequences for colour may be used. */
  readonly colour: boolean;
}

interface Column {
  readonly title: string;
  readonly width: number;
  readonly cell: (metrics: KvMetrics, pageSize: number) => string;
}

const BAR = 12;

const COLUMNS: readonly Column[] = [
  { title: "run", width: 5, cell: (metrics) => count(metrics.requestActiveSlots) },
  { title: "of", width: 5, cell: (metrics) => count(metrics.requestTotalSlots) },
  { title: "wait", width: 5, cell: (metrics) => count(metrics.numRequestsWaiting) },
  {
    title: "tokens",
    width: 11,
    cell: (metrics) => `${si(metrics.kvActiveBlocks)}/${si(metrics.kvTotalBlocks)}`,
  },
  {
    title: "pages",
    width: 11,
    cell: (metrics, size) => `${si(usedPages(metrics, size))}/${si(totalPages(metrics, size))}`,
  },
  {
    title: "usage",
    width: BAR + 6,
    cell: ({ gpuCacheUsagePerc: usage }) =>
      bar(usage, BAR).padEnd(BAR, "·") + percent(usage).padStart(6),
  },
  { title: "hit", width: 5, cell: (metrics) => percent(metrics.gpuPrefixCacheHitRate) },
];

const STATES: Readonly<Record<RankHealth["state"], readonly [word: string, style: Style]>> = {
  unreported: ["no report", "dim"],
  live: ["live", "green"],
  // A scheduler says nothing while it is idle; whether it hangs cannot be told from that.
  stale: ["silent", "yellow"],
  corrupt: ["corrupt", "red"],
};

/**
 * Renders ranks as a table.
 *
 * @param rows The ranks, in order.
 * @param options The page size, and what the terminal can do.
 * @returns A title and a line for each rank; each ends with a newline.
 */
export function renderMetrics(rows: readonly MetricsRow[], options: MetricsTableOptions): string {
  const titles = ["rank".padStart(5), ...COLUMNS.map(({ title, width }) => title.padStart(width))];
  const title = keepStart([...titles, "state"].join("  "), options.width);
  const lines = [
    paint(title, "dim", options.colour),
    ...rows.map((row) => renderRow(row, options)),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function renderRow(
  { dpRank, state, ageMs, metrics }: MetricsRow,
  { pageSize, width, colour }: MetricsTableOptions,
): string {
  // A rank that never told anything has no zeros.
  const cells = COLUMNS.map((column) =>
    (metrics === null ? "" : column.cell(metrics, pageSize)).padStart(column.width)
  );
  const [word, style] = STATES[state];
  const text = `${[String(dpRank).padStart(5), ...cells].join("  ")}  `;
  const told = ageMs === null ? word : `${word} ${age(ageMs)}`;
  if (text.length + told.length > width) return keepStart(text + told, width);
  return text + paint(told, style, colour);
}
