// @ts-check
/** The figures of the whole group, and the legend that counts its ranks by state. */

/// <reference lib="dom" />

import { stateName, STATES } from "./rank.js";
import { compact, exact, percent, UNKNOWN } from "./format.js";
import { byId, make, setText } from "./dom.js";
import { drawGround } from "./tile.js";

/** @typedef {import("./rank.js").RankState} RankState */

/** The row of large figures. */
export class TotalsRow {
  #usage = byId("total-usage");
  #used = byId("total-used");
  #max = byId("total-max");
  #running = byId("total-running");
  #waiting = byId("total-waiting");
  #throughput = byId("total-throughput");
  #live = byId("total-live");
  #ranks = byId("total-ranks");
  #note = byId("total-note");

  /**
   * @param {import("./group.js").Totals | null} totals
   * @param {Record<RankState, number>} counts
   */
  update(totals, counts) {
    setText(this.#usage, percent(totals?.usage ?? null));
    setText(this.#used, compact(totals?.usedTokens ?? null));
    setText(this.#max, compact(totals?.maxTokens ?? null));
    setText(this.#running, compact(totals?.running ?? null));
    setText(this.#waiting, compact(totals?.waiting ?? null));
    setText(this.#throughput, compact(totals?.throughput ?? null));
    const all = STATES.reduce((sum, state) => sum + counts[state], 0);
    setText(this.#live, all === 0 ? UNKNOWN : exact(counts.live));
    setText(this.#ranks, all === 0 ? "" : `/${exact(all)}`);
    const note = noteOf(counts);
    setText(this.#note, note || (all === 1 ? "rank" : "ranks"));
    this.#note.classList.toggle("alarm", note !== "");
  }
}

/**
 * What a person should know of the figures: that some are old.
 *
 * @param {Record<RankState, number>} counts
 * @returns {string}
 */
function noteOf(counts) {
  return STATES.filter((state) => state !== "live" && counts[state] > 0)
    .map((state) => `${exact(counts[state])} ${stateName(state)}`).join(", ");
}

/** What each state looks like, and how many ranks are in it. */
export class Legend {
  /** @type {Record<RankState, { count: HTMLElement, icon: HTMLCanvasElement }>} */
  #entries;
  /** @type {import("./theme.js").Palette | null} */
  #drawnWith = null;

  constructor() {
    const list = byId("legend");
    const entry = (/** @type {RankState} */ state) => {
      const item = make("li");
      const icon = make("canvas");
      icon.setAttribute("aria-hidden", "true");
      const count = make("b", "", "0");
      item.dataset["state"] = state;
      item.append(icon, count, ` ${stateName(state)}`);
      list.append(item);
      return { count, icon };
    };
    this.#entries = {
      live: entry("live"),
      stale: entry("stale"),
      corrupt: entry("corrupt"),
      unreported: entry("unreported"),
    };
    const waiting = make("li", "waits");
    waiting.append(make("b", "", "+n"), " waiting, as the bar below it");
    list.append(waiting);
  }

  /**
   * @param {Record<RankState, number>} counts
   * @param {import("./theme.js").Palette} palette
   */
  update(counts, palette) {
    for (const state of STATES) setText(this.#entries[state].count, exact(counts[state]));
    if (palette === this.#drawnWith) return;
    this.#drawnWith = palette;
    for (const state of STATES) drawIcon(this.#entries[state].icon, state, palette);
    drawScale(palette);
  }
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {RankState} state
 * @param {import("./theme.js").Palette} palette
 */
function drawIcon(canvas, state, palette) {
  const ratio = Math.max(2, globalThis.devicePixelRatio || 1);
  canvas.width = 24 * ratio;
  canvas.height = 18 * ratio;
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.scale(ratio, ratio);
  drawGround(context, { x: 0, y: 0, width: 24, height: 18 }, { state, usage: 0.6 }, palette);
}

/** @param {import("./theme.js").Palette} palette */
function drawScale(palette) {
  const context = /** @type {HTMLCanvasElement} */ (byId("scale")).getContext("2d");
  if (context === null) return;
  palette.scale.forEach(({ fill }, step) => {
    context.fillStyle = fill;
    context.fillRect(step, 0, 1, 1);
  });
}
