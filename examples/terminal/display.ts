/** Showing a slot file again and again: redrawn in place, or as text below text. */

import { say, writeAll } from "../command_line.ts";
import { renderTable } from "../terminal_table.ts";
import { renderHeader } from "./header.ts";
import { Screen } from "./screen.ts";
import type { SlotView } from "./slot_view.ts";

/** Something that shows what a reader sees. */
export interface Display extends Disposable {
  show(view: SlotView): void;
}

/** A table that is redrawn in place, as large as the terminal. */
export class LiveDisplay implements Display {
  readonly #screen = new Screen();
  readonly #hint: string | null;

  /** @param hint What the header says while nothing is wrong. */
  constructor(hint: string | null) {
    this.#hint = hint;
  }

  show(view: SlotView): void {
    const size = terminalSize();
    this.#screen.draw(renderScreen(view, this.#hint, size), size.height);
  }

  [Symbol.dispose](): void {
    this.#screen[Symbol.dispose]();
  }
}

/** Table below table, without escape sequences; while there is none, what is wrong, once. */
export class PlainDisplay implements Display {
  readonly #hint: string | null;
  #said: string | null = null;

  /** @param hint What the header says while nothing is wrong. */
  constructor(hint: string | null) {
    this.#hint = hint;
  }

  show(view: SlotView): void {
    if (view.rows.length > 0) {
      writeAll(`${renderOnce(view, this.#hint, false)}\n`);
    } else if (view.trouble !== this.#said) {
      say(waiting(view).trouble ?? "");
    }
    this.#said = view.trouble;
  }

  [Symbol.dispose](): void {}
}

/** @returns The view with all its ranks, as wide as the terminal; nothing is cut in a file. */
export function renderOnce(view: SlotView, hint: string | null, colour: boolean): string {
  const { width } = terminalSize();
  const headerWidth = Deno.stdout.isTerminal() ? width : Infinity;
  return renderHeader(view, hint, { width: headerWidth, colour }) +
    renderTable(view.rows, { width, colour });
}

function renderScreen(
  view: SlotView,
  hint: string | null,
  { width, height }: { readonly width: number; readonly height: number },
): string {
  const look = { width, colour: true };
  if (view.rows.length === 0) return renderHeader(waiting(view), hint, look);
  const header = renderHeader(view, hint, look);
  const used = header.split("\n").length - 1;
  return header + renderTable(view.rows, { ...look, height: height - used });
}

function waiting(view: SlotView): SlotView {
  return { ...view, trouble: view.trouble === null ? null : `${view.trouble}; waiting for one` };
}

function terminalSize(): { readonly width: number; readonly height: number } {
  const { columns, rows } = Deno.stdout.isTerminal()
    ? Deno.consoleSize()
    : { columns: 80, rows: 24 };
  // A pseudo-terminal that nobody gave a size says 0.
  return { width: columns || 80, height: rows || 24 };
}
