/** The lines above the table: what is watched, and what is to know about it. */

import type { SlotView } from "./slot_view.ts";
import { count, harmless, keepEnd, paint, type Style, textWidth, wrap } from "./text.ts";

/**
 * Renders the header.
 *
 * @param view What is watched.
 * @param hint What is said while nothing is wrong, or `null`.
 * @param options The terminal's width, and whether it has colour.
 * @returns Lines, each ended by a newline; the last one is empty.
 */
export function renderHeader(
  view: SlotView,
  hint: string | null,
  options: { readonly width: number; readonly colour: boolean },
): string {
  const { width, colour } = options;
  const facts = [
    view.rows.length === 0 ? null : view.rows.length === 1 ? "1 rank" : `${view.rows.length} ranks`,
    view.publicationsPerSecond === null
      ? null
      : `${count(view.publicationsPerSecond)} publications/s`,
  ].filter((fact) => fact !== null).join("  ");
  const path = harmless(view.path);

  const fitsOneLine = textWidth(path) + 2 + textWidth(facts) <= width;
  const lines = facts === "" || fitsOneLine
    ? [`${paint(keepEnd(path, width), "bold", colour)}  ${facts}`.trimEnd()]
    : [paint(keepEnd(path, width), "bold", colour), ...wrap(facts, width)];

  const [note, style]: [string | null, Style] = view.trouble === null
    ? [hint, "dim"]
    : [harmless(view.trouble), "yellow"];
  if (note !== null) lines.push(...wrap(note, width).map((line) => paint(line, style, colour)));
  return [...lines, ""].map((line) => `${line}\n`).join("");
}
