/**
 * Charts as SVG text: grouped bars and lines, a linear or logarithmic axis, a legend. Readable on
 * light and on dark pages, for it follows the reader's colour scheme.
 */

/** One row of values, one for each category; `null` leaves a gap. */
export interface ChartSeries {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

/** One chart. */
export interface Chart {
  readonly title: string;
  readonly kind: "bars" | "lines";
  /** Below the horizontal axis. */
  readonly xLabel: string;
  /** Beside the vertical axis, with the unit. */
  readonly yLabel: string;
  /** Steps of ten on the vertical axis instead of a linear one. */
  readonly isLog: boolean;
  readonly categories: readonly string[];
  readonly series: readonly ChartSeries[];
}

/** Colours that differ in lightness too, on white and on black. */
const COLOURS = [
  ["#c2410c", "#fb923c"],
  ["#0e7490", "#22d3ee"],
  ["#1d4ed8", "#60a5fa"],
  ["#6b7280", "#9ca3af"],
  ["#9333ea", "#c084fc"],
  ["#15803d", "#4ade80"],
  ["#be123c", "#fb7185"],
  ["#a16207", "#fcd34d"],
] as const;

const FONT = "12px system-ui, -apple-system, Segoe UI, sans-serif";

/** Sizes in SVG units. */
const PANEL = { width: 560, height: 360, left: 62, right: 16, top: 76, bottom: 48 } as const;

/** An axis: where a value stands, and the values that have a mark. */
export interface Axis {
  readonly ticks: readonly number[];
  /** The place of a value, 0 at the bottom and 1 at the top. */
  place(value: number): number;
}

/**
 * Draws charts side by side.
 *
 * @param charts The charts, in order.
 * @param columns How many stand in a row.
 * @returns A whole SVG document.
 */
export function renderCharts(charts: readonly Chart[], columns = 2): string {
  const across = Math.min(columns, charts.length);
  const width = across * PANEL.width;
  const height = Math.ceil(charts.length / across) * PANEL.height;
  const panels = charts.map((chart, n) => {
    const x = (n % across) * PANEL.width;
    const y = Math.floor(n / across) * PANEL.height;
    return `<g transform="translate(${x} ${y})">\n${renderPanel(chart)}\n</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escape(charts.map(({ title }) => title).join("; "))}</title>`,
    `<style>\n${styles()}\n</style>`,
    `<rect class="page" width="${width}" height="${height}"/>`,
    ...panels,
    "</svg>\n",
  ].join("\n");
}

/** Rules for both colour schemes. */
export function styles(): string {
  const rules = (dark: 0 | 1) =>
    COLOURS.map((pair, n) => `.f${n}{fill:${pair[dark]}} .l${n}{stroke:${pair[dark]}}`).join("\n");
  return [
    `text{font:${FONT};fill:#1f2937} .title{font-weight:600;font-size:14px}`,
    ".page{fill:#ffffff} .axis{stroke:#6b7280} .grid{stroke:#e5e7eb} path{fill:none;stroke-width:2}",
    rules(0),
    "@media (prefers-color-scheme: dark){",
    "text{fill:#e5e7eb} .page{fill:#0d1117} .axis{stroke:#9ca3af} .grid{stroke:#30363d}",
    rules(1),
    "}",
  ].join("\n");
}

function renderPanel(chart: Chart): string {
  const { width, height, left, right, top, bottom } = PANEL;
  const area = { width: width - left - right, height: height - top - bottom };
  const values = chart.series.flatMap(({ values }) => values.filter((value) => value !== null));
  const axis = chart.isLog ? logAxis(values) : linearAxis(values);
  const y = (value: number) => top + area.height * (1 - axis.place(value));
  const step = area.width / chart.categories.length;
  const x = (n: number) => left + step * (n + 0.5);
  const lines = [
    text(left, 20, chart.title, "start", "title"),
    ...legend(chart.series),
    text(left + area.width / 2, height - 8, chart.xLabel, "middle"),
    `<text transform="translate(14 ${top + area.height / 2}) rotate(-90)" text-anchor="middle">${
      escape(chart.yLabel)
    }</text>`,
    ...axis.ticks.flatMap((tick) => [
      line("grid", left, y(tick), width - right, y(tick)),
      text(left - 6, y(tick) + 4, short(tick), "end"),
    ]),
    ...chart.categories.map((name, n) => text(x(n), height - bottom + 18, name, "middle")),
    ...chart.series.flatMap((series, n) =>
      chart.kind === "lines" ? lineMarks(series, n, x, y) : barMarks(chart, series, n, step, x, y)
    ),
    line("axis", left, height - bottom, width - right, height - bottom),
  ];
  return lines.join("\n");
}

function legend(series: readonly ChartSeries[]): string[] {
  let x = PANEL.left;
  let y = 40;
  return series.flatMap(({ name }, n) => {
    const width = 20 + name.length * 6.6;
    if (x + width > PANEL.width - PANEL.right) {
      x = PANEL.left;
      y += 18;
    }
    const marks = [
      `<rect class="f${n % COLOURS.length}" x="${x}" y="${y - 9}" width="10" height="10" rx="2"/>`,
      text(x + 14, y, name, "start"),
    ];
    x += width + 6;
    return marks;
  });
}

type Place = (value: number) => number;

function lineMarks({ values }: ChartSeries, colour: number, x: Place, y: Place): string[] {
  const points = values.flatMap((value, n) => value === null ? [] : [[x(n), y(value)] as const]);
  const path = points.map(([px, py], n) => `${n === 0 ? "M" : "L"}${round(px)} ${round(py)}`);
  return [
    `<path class="l${colour % COLOURS.length}" d="${path.join("")}"/>`,
    ...points.map(([px, py]) =>
      `<circle class="f${colour % COLOURS.length}" cx="${round(px)}" cy="${round(py)}" r="3.5"/>`
    ),
  ];
}

function barMarks(
  { series: all }: Chart,
  { values }: ChartSeries,
  colour: number,
  step: number,
  x: Place,
  y: Place,
): string[] {
  const width = step * 0.8 / all.length;
  const base = PANEL.height - PANEL.bottom;
  return values.flatMap((value, n) => {
    if (value === null) return [];
    const left = x(n) - step * 0.4 + width * colour;
    const top = Math.min(y(value), base - 1);
    const place = `x="${round(left)}" y="${round(top)}"`;
    const size = `width="${round(width * 0.92)}" height="${round(base - top)}"`;
    return [`<rect class="f${colour % COLOURS.length}" ${place} ${size}/>`];
  });
}

function linearAxis(values: readonly number[]): Axis {
  const most = Math.max(...values, 0);
  const rough = most > 0 ? most / 5 : 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((size) => size >= rough) ?? power * 10;
  const count = Math.max(1, Math.ceil(most / step));
  const ticks = Array.from({ length: count + 1 }, (_, n) => n * step);
  return { ticks, place: (value) => value / (count * step) };
}

/** From a mark below the values to one above, at 1, 2 and 5 of each power of ten, or at 1 of many. */
export function logAxis(values: readonly number[]): Axis {
  const positive = values.filter((value) => value > 0);
  const least = positive.length > 0 ? Math.min(...positive) : 1;
  const most = positive.length > 0 ? Math.max(...positive) : 10;
  const powers = Math.log10(most / least);
  const parts = powers > 4 ? [1] : [1, 2, 5];
  const first = Math.floor(Math.log10(least)) - 1;
  const marks = Array.from({ length: Math.ceil(powers) + 4 }, (_, n) => first + n)
    .flatMap((power) => parts.map((part) => part * 10 ** power));
  const low = marks.findLast((mark) => mark <= least / 1.2) ?? least / 10;
  const high = marks.find((mark) => mark >= most && mark > low) ?? most * 10;
  const place = (value: number) => Math.max(0, Math.log10(value / low) / Math.log10(high / low));
  return { ticks: marks.filter((mark) => mark >= low && mark <= high), place };
}

/** Text at a place. */
export function text(x: number, y: number, content: string, anchor: string, kind = ""): string {
  const style = kind === "" ? "" : ` class="${kind}"`;
  return `<text${style} x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${
    escape(content)
  }</text>`;
}

/** A straight line. */
export function line(kind: string, x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="${kind}" x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${
    round(y2)
  }"/>`;
}

/** Fine enough for a screen. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function short(value: number): string {
  return value >= 10_000 ? `${value / 1000}k` : String(Number(value.toPrecision(3)));
}

/** Text as it may stand in a document. */
export function escape(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
