// @ts-check
/** The heat map: a canvas of tiles, and for keyboards and screen readers a list with one choice. */

/// <reference lib="dom" />

import { layoutHeat, rankAfterKey, rankAt, tileOf } from "./heat_layout.js";
import { drawTile, hasSpark, lookOf } from "./tile.js";
import { ago, exact, percent } from "./format.js";
import { byId, make } from "./dom.js";

/** @typedef {import("./tile.js").TileView} TileView */
/** @typedef {import("./theme.js").Palette} Palette */

/**
 * The courses of usage; of another version when there is a new sample.
 * @typedef {{ readonly version: number, of(rank: number): import("./tile.js").Spark }} Sparks
 */

/** Room around the tiles for the ring of the chosen one. */
const MARGIN = 4;

/** The tiles of all ranks. */
export class HeatMap {
  #list = byId("heat");
  /** @type {HTMLCanvasElement} */
  #canvas = byId("heat-canvas");
  #option = make("div", "unseen");
  #context;
  #onSelect;
  #onResize;
  #layout = layoutHeat(0, 0, 0);
  #width = 0;
  #ratio = 1;
  /** How each tile looks that is on the canvas. @type {string[]} */
  #looks = [];
  /** @type {Palette | null} */
  #drawnWith = null;
  /** @type {number | null} */
  #selected = null;
  /** @type {Sparks | null} */
  #sparks = null;
  /** The rank that has a ring on the canvas. @type {number | null} */
  #ringed = null;

  /**
   * @param {(rank: number | null) => void} onSelect
   * @param {() => void} onResize Called when it has to be drawn anew.
   */
  constructor(onSelect, onResize) {
    const context = this.#canvas.getContext("2d");
    if (context === null) throw new Error("Cannot draw: the browser gives no canvas context");
    this.#context = context;
    this.#onSelect = onSelect;
    this.#onResize = onResize;
    this.#option.id = "heat-option";
    this.#option.setAttribute("role", "option");
    this.#option.setAttribute("aria-selected", "true");
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("click", (event) => this.#click(event));
    this.#list.addEventListener("pointermove", (event) => this.#hover(event));
    new ResizeObserver(() => {
      if (this.#list.clientWidth === this.#width) return;
      this.#drawnWith = null;
      this.#onResize();
    }).observe(this.#list);
    globalThis.addEventListener("resize", () => {
      this.#drawnWith = null;
      this.#onResize();
    });
  }

  /** @param {number | null} rank */
  select(rank) {
    this.#selected = rank;
  }

  /**
   * Draws what has changed.
   *
   * @param {readonly TileView[]} views
   * @param {Palette} palette
   * @param {Sparks} sparks
   */
  draw(views, palette, sparks) {
    this.#fit(views.length, palette);
    this.#sparks = hasSpark(this.#layout.tileWidth, this.#layout.tileHeight) ? sparks : null;
    for (const view of views) this.#drawView(view, palette);
    if (this.#ringed !== this.#selected) this.#moveRing(views, palette);
    this.#describe(views);
  }

  /**
   * @param {number} count
   * @param {Palette} palette
   */
  #fit(count, palette) {
    const ratio = globalThis.devicePixelRatio || 1;
    if (palette === this.#drawnWith && count === this.#layout.count && ratio === this.#ratio) {
      return;
    }
    this.#drawnWith = palette;
    this.#ratio = ratio;
    this.#width = this.#list.clientWidth;
    const narrow = this.#width < 480;
    const height = Math.max(220, globalThis.innerHeight * (narrow ? 0.62 : 0.42));
    this.#layout = layoutHeat(count, this.#width - 2 * MARGIN, height);
    const full = this.#layout.height + 2 * MARGIN;
    this.#canvas.width = Math.round(this.#width * ratio);
    this.#canvas.height = Math.round(full * ratio);
    this.#canvas.style.height = `${full}px`;
    this.#context.setTransform(ratio, 0, 0, ratio, MARGIN * ratio, MARGIN * ratio);
    this.#looks.length = 0;
    this.#ringed = null;
  }

  /**
   * @param {TileView} view
   * @param {Palette} palette
   */
  #drawView(view, palette) {
    const look = `${lookOf(view)} ${this.#sparks?.version}`;
    if (this.#looks[view.dpRank] === look) return;
    this.#looks[view.dpRank] = look;
    const box = tileOf(this.#layout, view.dpRank);
    this.#context.clearRect(box.x, box.y, box.width, box.height);
    const spark = view.state === "unreported" ? null : this.#sparks?.of(view.dpRank) ?? null;
    drawTile(this.#context, box, { ...view, spark }, palette);
  }

  /**
   * @param {readonly TileView[]} views
   * @param {Palette} palette
   */
  #moveRing(views, palette) {
    if (this.#ringed !== null) {
      const { x, y, width, height } = tileOf(this.#layout, this.#ringed);
      this.#context.clearRect(x - MARGIN, y - MARGIN, width + 2 * MARGIN, height + 2 * MARGIN);
      // The ring may have touched its neighbours' edges.
      for (const near of this.#around(this.#ringed)) {
        delete this.#looks[near];
        const view = views[near];
        if (view !== undefined) this.#drawView(view, palette);
      }
    }
    this.#ringed = this.#selected;
    if (this.#selected === null || this.#selected >= this.#layout.count) return;
    const { x, y, width, height } = tileOf(this.#layout, this.#selected);
    // Within the margin and the gap, with half of its line: what is cleared is all of it.
    const { gap } = this.#layout;
    const line = gap > 3 ? 2.25 : gap;
    const out = gap > 3 ? 2.75 : gap / 2;
    this.#context.beginPath();
    this.#context.roundRect(x - out, y - out, width + 2 * out, height + 2 * out, 7 + out);
    this.#context.strokeStyle = palette.ink;
    this.#context.lineWidth = line;
    this.#context.stroke();
  }

  /** @param {number} rank */
  #around(rank) {
    const { columns, count } = this.#layout;
    return [-columns - 1, -columns, -columns + 1, -1, 0, 1, columns - 1, columns, columns + 1]
      .map((step) => rank + step).filter((near) => near >= 0 && near < count);
  }

  /** @param {readonly TileView[]} views */
  #describe(views) {
    const view = this.#selected === null ? undefined : views[this.#selected];
    if (view === undefined) {
      if (this.#option.isConnected) this.#option.remove();
      this.#list.removeAttribute("aria-activedescendant");
      return;
    }
    const label = describe(view);
    if (this.#option.getAttribute("aria-label") !== label) {
      this.#option.setAttribute("aria-label", label);
    }
    this.#option.setAttribute("aria-posinset", String(view.dpRank + 1));
    this.#option.setAttribute("aria-setsize", String(views.length));
    if (this.#option.isConnected) return;
    this.#list.append(this.#option);
    this.#list.setAttribute("aria-activedescendant", this.#option.id);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape" && this.#selected !== null) {
      event.preventDefault();
      this.#onSelect(null);
      return;
    }
    const rank = rankAfterKey(this.#layout, this.#selected, event.key);
    if (rank === null) return;
    event.preventDefault();
    this.#onSelect(rank);
    this.#reveal(rank);
  }

  /**
   * Scrolls so that a tile is in sight.
   *
   * @param {number} rank
   */
  #reveal(rank) {
    const { y, height } = tileOf(this.#layout, rank);
    const top = this.#canvas.getBoundingClientRect().top + y;
    const below = top + height + 24 - globalThis.innerHeight;
    if (top < 24) globalThis.scrollBy(0, top - 24);
    else if (below > 0) globalThis.scrollBy(0, below);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const rank = this.#rankUnder(event);
    if (rank !== null) this.#onSelect(rank === this.#selected ? null : rank);
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const rank = this.#rankUnder(event);
    this.#list.style.cursor = rank === null ? "default" : "pointer";
    const title = rank === null ? "" : `Rank ${rank}`;
    if (this.#list.title !== title) this.#list.title = title;
  }

  /** @param {MouseEvent} event */
  #rankUnder(event) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    return rankAt(this.#layout, event.clientX - left - MARGIN, event.clientY - top - MARGIN);
  }
}

/**
 * A tile in words.
 *
 * @param {TileView} view
 * @returns {string}
 */
function describe({ dpRank, state, usage, running, waiting, ageMs }) {
  if (state === "unreported") return `Rank ${dpRank}, never reported`;
  return [
    `Rank ${dpRank}`,
    state,
    `usage ${percent(usage)} %`,
    `${exact(running)} running`,
    `${exact(waiting)} waiting`,
    ...(state === "live" ? [] : [ago(ageMs)]),
  ].join(", ");
}
