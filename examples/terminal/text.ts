/** Text for a terminal: how wide it is, how it is cut, and how numbers fit a few columns. */

/** How a piece of text looks. */
export type Style = "plain" | "bold" | "dim" | "green" | "yellow" | "red";

const SGR: Readonly<Record<Style, string>> = {
  plain: "",
  bold: "\x1b[1m",
  dim: "\x1b[2m",
  green: "\x1b[32m",
  yellow: "\x1b[33m",
  red: "\x1b[31m",
};

/** @returns The text in its style, or as it is without colour. */
export function paint(text: string, style: Style, colour: boolean): string {
  return colour && style !== "plain" && text !== "" ? `${SGR[style]}${text}\x1b[0m` : text;
}

// Marks that sit on the letter before them, and the blocks that East Asian fonts draw double.
const ZERO_WIDTH = /\p{M}/u;
const DOUBLE_WIDTH =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;

/** @returns How many columns the text takes. */
export function textWidth(text: string): number {
  let width = 0;
  for (const char of text) width += ZERO_WIDTH.test(char) ? 0 : DOUBLE_WIDTH.test(char) ? 2 : 1;
  return width;
}

/** @returns The text without what could move the cursor: a path may hold any byte. */
export function harmless(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, "\ufffd");
}

/** @returns The text, or as much of its start as fits before an ellipsis. */
export function keepStart(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  return width < 1 ? "" : `${take([...text], width - 1).join("")}…`;
}

/** @returns The text, or as much of its end as fits behind an ellipsis. */
export function keepEnd(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  return width < 1 ? "" : `…${take([...text].reverse(), width - 1).reverse().join("")}`;
}

/** @returns The first characters that fit. */
function take(chars: string[], width: number): string[] {
  let room = width;
  const end = chars.findIndex((char) => (room -= textWidth(char)) < 0);
  return end < 0 ? chars : chars.slice(0, end);
}

/** @returns The text in lines of at most that width, broken between words where that is possible. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (textWidth(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    line = keepEnd(word, width);
  }
  return [...lines, line];
}

/** @returns A count in at most six columns: whole as long as it fits, else as {@linkcode si} has it. */
export function count(value: number): string {
  const whole = Math.round(value);
  return Math.abs(whole) < 100_000 ? String(whole + 0) : si(value);
}

const UNITS = ["", "k", "M", "G", "T", "P", "E"] as const;

/** @returns A number with three digits and a unit, such as `18.2k`, in at most six columns. */
export function si(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  let scaled = Math.abs(value);
  let unit = 0;
  // From 999.5 on three digits round up to the next unit.
  while (scaled >= 999.5 && unit < UNITS.length - 1) {
    scaled /= 1000;
    unit++;
  }
  const sign = value < 0 ? "-" : "";
  if (scaled >= 999.5) return value < 0 ? "<-999E" : ">999E";
  const digits = unit === 0 ? scaled.toFixed(0) : scaled.toPrecision(3);
  return `${sign}${digits}${UNITS[unit]}`;
}

/** @returns A share as a whole percentage in at most five columns. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return si(share);
  const whole = Math.round(share * 100) + 0;
  return whole > 999 ? ">999%" : whole < -99 ? "<-99%" : `${whole}%`;
}

/** @returns An age in at most four columns. */
export function age(ms: number): string {
  if (!(ms >= 0)) return "?";
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  if (seconds < 99.5) return `${seconds.toFixed(0)}s`;
  if (seconds < 99.5 * 60) return `${(seconds / 60).toFixed(0)}m`;
  if (seconds < 99.5 * 3600) return `${(seconds / 3600).toFixed(0)}h`;
  const days = seconds / 86_400;
  return days < 999.5 ? `${days.toFixed(0)}d` : "ages";
}

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;

/** @returns The filled part of a bar: block characters in steps of an eighth of a column. */
export function bar(share: number, width: number): string {
  // A share that is no number fills nothing.
  const clamped = share > 0 ? Math.min(share, 1) : 0;
  const eighths = Math.round(clamped * width * 8);
  return "█".repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!;
}
