/** The load of all ranks as a table for a terminal: a pure function of what a reader saw. */

import type { LoadSnapshot, RankHealth } from "../mod.ts";
import { age, bar, count, keepStart, paint, percent, si, type Style } from "./terminal/text.ts";

/** One rank: what it said last, and what that is worth. */
export interface RankRow extends RankHealth {
  readonly load: LoadSnapshot | null;
}

/** How a table is to look. */
export interface TableOptions {
  /** Columns of the terminal; no line is longer. */
  readonly width: number;
  /**
   * Lines that the table may take. If there are more ranks, only the busiest are shown.
   * @default {Infinity}
   */
  readonly height?: number;
  /** Whether escape sequences for colour may be used. */
  readonly colour: boolean;
}

type Numbers =
  & Pick<LoadSnapshot, "numRunningReqs" | "numWaitingReqs" | "numWaitingUncachedTokens">
  & Pick<LoadSnapshot, "numUsedTokens" | "maxTotalNumTokens" | "tokenUsage" | "genThroughput">
  & Partial<Pick<LoadSnapshot, "cacheHitRate" | "speculative" | "lora">>;

/** One line of numbers: a rank's, or the sum of the live ones. */
interface Line {
  readonly label: string;
  /** `null` where there are none: a rank that never reported must not read as idle. */
  readonly numbers: Numbers | null;
  /** Whether they are of now. Those of the past are dimmed. */
  readonly current: boolean;
  readonly state: Span;
}

type Span = readonly [text: string, style: Style];

interface Column {
  readonly title: string;
  readonly width: number;
  /** What stands in the column, in at most `width` columns. */
  readonly cell: (line: Line, width: number) => readonly Span[];
}

const USAGE: Column = { title: "usage", width: 5, cell: usageCell };

const COLUMNS = {
  rank: { title: "rank", width: 5, cell: ({ label }) => [[label, "bold"]] },
  running: numbers("run", 5, (load) => count(load.numRunningReqs)),
  waiting: numbers("wait", 5, (load) => count(load.numWaitingReqs)),
  tokens: numbers(
    "tokens",
    11,
    (load) => `${si(load.numUsedTokens)}/${si(load.maxTotalNumTokens)}`,
  ),
  usage: USAGE,
  throughput: numbers("tok/s", 6, (load) => count(load.genThroughput)),
  hitRate: numbers("hit", 5, (load) => optional(load.cacheHitRate, percent)),
  uncached: numbers("uncached", 8, (load) => si(load.numWaitingUncachedTokens)),
  accept: numbers("accept", 6, (load) => optional(load.speculative?.acceptLength, toPlaces)),
  lora: numbers(
    "lora",
    5,
    (load) => optional(load.lora, (it) => `${it.slotsUsed}/${it.slotsTotal}`),
  ),
  state: { title: "state", width: 10, cell: ({ state }) => [state] },
} as const satisfies Readonly<Record<string, Column>>;

/** Which columns make room for a bar of a decent length on a narrow terminal, first to last. */
const OPTIONAL = ["lora", "accept", "uncached", "hitRate", "tokens", "throughput"] as const;
/** Which ones go after the bar itself. */
const LAST_TO_GO = ["waiting", "running", "state", "rank", "usage"] as const;

const GAP = 2;
const DECENT_BAR = 10;
const SHORTEST_BAR = 4;
const LONGEST_BAR = 40;

/**
 * Renders ranks as a table.
 *
 * @param rows The ranks, in order.
 * @param options The size and the abilities of the terminal.
 * @returns A title, a line for each rank, and their sum; each ends with a newline.
 */
export function renderTable(rows: readonly RankRow[], options: TableOptions): string {
  const { width, colour, height = Infinity } = options;
  const columns = layOut(width);
  const { shown, left } = chooseRows(rows, height - 2);
  const title = columns.map((it) => it.title.padStart(it.width)).join(" ".repeat(GAP));
  const lines = [
    paint(title, "dim", colour),
    ...shown.map((row) => drawLine(columns, rankLine(row), colour)),
    ...left.length === 0 ? [] : [paint(keepStart(describeLeft(left), width), "dim", colour)],
    drawLine(columns, totalLine(rows), colour),
  ];
  return lines.slice(0, Math.max(0, height)).map((line) => `${line}\n`).join("");
}

/** Chooses the columns that fit, and gives what is left of the width to the usage bar. */
function layOut(width: number): readonly Column[] {
  let columns: readonly Column[] = Object.values(COLUMNS);
  const spare = (): number =>
    width - columns.reduce((sum, column) => sum + column.width + GAP, -GAP);
  const drop = (name: keyof typeof COLUMNS): void => {
    columns = columns.filter((column) => column !== COLUMNS[name]);
  };
  for (const name of OPTIONAL) if (spare() <= DECENT_BAR) drop(name);
  for (const name of LAST_TO_GO) if (spare() < 0) drop(name);
  const usageWidth = USAGE.width + Math.min(spare(), LONGEST_BAR + 1);
  return columns.map((column) => column === USAGE ? { ...USAGE, width: usageWidth } : column);
}

/** Keeps the ranks that need eyes most: those in trouble, then those with most to do. */
function chooseRows(
  rows: readonly RankRow[],
  room: number,
): { readonly shown: readonly RankRow[]; readonly left: readonly RankRow[] } {
  if (rows.length <= room) return { shown: rows, left: [] };
  // One line less: it tells how many are left out.
  const busiest = new Set(
    rows.toSorted((a, b) => urgency(b) - urgency(a)).slice(0, Math.max(0, room - 1)),
  );
  return {
    shown: rows.filter((row) => busiest.has(row)),
    left: rows.filter((row) => !busiest.has(row)),
  };
}

function urgency({ state, load }: RankRow): number {
  if (state === "stale" || state === "corrupt") return Number.MAX_VALUE;
  if (state === "unreported" || load === null) return -1;
  return finite(load.numRunningReqs) + finite(load.numWaitingReqs) + finite(load.tokenUsage);
}

function describeLeft(left: readonly RankRow[]): string {
  const { numRunningReqs, numWaitingReqs } = sumOf(left);
  const ranks = left.length === 1 ? "1 rank" : `${left.length} ranks`;
  return `  … ${ranks} with less to do: ${count(numRunningReqs)} running, ${
    count(numWaitingReqs)
  } waiting`;
}

function rankLine({ dpRank, state, ageMs, load }: RankRow): Line {
  const label = String(dpRank);
  const past = ageMs === null ? "" : ` ${age(ageMs)}`;
  switch (state) {
    case "live":
      return { label, numbers: load, current: true, state: [`live${past}`, "green"] };
    case "stale":
      return { label, numbers: load, current: false, state: [`stale${past}`, "yellow"] };
    case "corrupt":
      return { label, numbers: load, current: false, state: ["corrupt", "red"] };
    case "unreported":
      return { label, numbers: null, current: false, state: ["no report", "dim"] };
  }
}

function totalLine(rows: readonly RankRow[]): Line {
  const live = rows.filter((row) => row.state === "live");
  const all = live.length === rows.length;
  return {
    label: "all",
    numbers: live.length === 0 ? null : sumOf(live),
    current: true,
    state: [
      all ? `${live.length} live` : `${live.length}/${rows.length} live`,
      all ? "green" : "yellow",
    ],
  };
}

function sumOf(rows: readonly RankRow[]): Numbers {
  const sum = (value: (load: LoadSnapshot) => number): number =>
    rows.reduce((total, { load }) => total + (load === null ? 0 : finite(value(load))), 0);
  const numUsedTokens = sum((load) => load.numUsedTokens);
  const maxTotalNumTokens = sum((load) => load.maxTotalNumTokens);
  return {
    numRunningReqs: sum((load) => load.numRunningReqs),
    numWaitingReqs: sum((load) => load.numWaitingReqs),
    numWaitingUncachedTokens: sum((load) => load.numWaitingUncachedTokens),
    numUsedTokens,
    maxTotalNumTokens,
    tokenUsage: maxTotalNumTokens === 0 ? 0 : numUsedTokens / maxTotalNumTokens,
    genThroughput: sum((load) => load.genThroughput),
  };
}

function drawLine(columns: readonly Column[], line: Line, colour: boolean): string {
  return columns.map((column) => {
    const spans = column.cell(line, column.width);
    const text = spans.map(([part]) => part).join("");
    if (text.length > column.width) return keepStart(text, column.width);
    return " ".repeat(column.width - text.length) +
      spans.map(([part, style]) => paint(part, style, colour)).join("");
  }).join(" ".repeat(GAP));
}

/** A column of numbers out of the load. */
function numbers(title: string, width: number, text: (load: Numbers) => string): Column {
  return {
    title,
    width,
    cell: ({ numbers, current }) => [
      numbers === null ? ["-", "dim"] : [text(numbers), current ? "plain" : "dim"],
    ],
  };
}

function usageCell({ numbers, current }: Line, width: number): readonly Span[] {
  const barWidth = width - USAGE.width - 1;
  const share = numbers?.tokenUsage ?? NaN;
  const style = current ? usageStyle(share) : "dim";
  const text: Span = numbers === null
    ? ["-".padStart(USAGE.width), "dim"]
    : [percent(share).padStart(USAGE.width), style];
  if (barWidth < SHORTEST_BAR) return [text];
  const filled = bar(share, barWidth);
  return [[filled, style], ["·".repeat(barWidth - filled.length), "dim"], [" ", "plain"], text];
}

function usageStyle(share: number): Style {
  return share >= 0.9 ? "red" : share >= 0.7 ? "yellow" : "green";
}

function optional<Value>(value: Value | null | undefined, text: (value: Value) => string): string {
  return value === null || value === undefined ? "" : text(value);
}

function toPlaces(value: number): string {
  return Math.abs(value) < 100 ? value.toFixed(2) : si(value);
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}
