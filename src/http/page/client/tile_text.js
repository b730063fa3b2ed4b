// @ts-check
/** What is written on a tile, as far as there is room. */

/// <reference lib="dom" />

import { age, compact, percent, UNKNOWN } from "./format.js";

/** @typedef {import("./tile.js").TileView} TileView */
/** @typedef {import("./tile.js").Box} Box */
/** @typedef {import("./theme.js").Palette} Palette */

/**
 * Between a large tile's edge and what is in it.
 *
 * @param {number} width
 * @returns {number}
 */
export function padOf(width) {
  return Math.round(Math.min(15, width * 0.085));
}

/**
 * Where there is room for words.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {Palette} palette
 */
export function drawLarge(context, { x, y, width, height }, view, { font }) {
  const pad = padOf(width);
  const small = height >= 92 ? 13 : 11.5;
  const large = Math.round(Math.min(40, height * 0.34, width * 0.26));
  const write = writer(context, font);
  const head = y + pad + small * 0.78;
  write(String(view.dpRank), x + pad, head, small, 600);
  write(cornerOf(view), x + width - pad, head, small, 400, "right");
  const middle = y + height / 2 + large * 0.36 - 1;
  const share = shareText(view);
  write(share, x + pad - 1, middle, large, 500);
  if (share !== UNKNOWN) {
    const after = x + pad + 1 + context.measureText(share).width;
    write("%", after, middle, Math.round(large * 0.5), 400);
  }
  const foot = y + height - pad - 3;
  const footer = footerOf(view, width);
  write(footer.left, x + pad, foot, small, 400);
  write(footer.right, x + width - pad, foot, small, 600, "right");
}

/** @param {TileView} view */
function cornerOf({ state, ageMs }) {
  if (state === "live") return age(ageMs);
  return state === "stale" ? `stale ${age(ageMs)}` : "";
}

/**
 * @param {TileView} view
 * @param {number} width
 * @returns {{ left: string, right: string }}
 */
function footerOf(view, width) {
  if (view.state === "unreported") return { left: "never reported", right: "" };
  const left = view.state === "corrupt"
    ? "corrupt"
    : `${compact(view.running)}${width >= 104 ? " running" : " run"}`;
  return {
    left,
    right: view.waiting !== null && view.waiting > 0 ? `+${compact(view.waiting)}` : "",
  };
}

/**
 * Where there is room for the rank and two numbers.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {Palette} palette
 */
export function drawMedium(context, { x, y, width, height }, view, { font }) {
  const write = writer(context, font);
  write(String(view.dpRank), x + 5, y + 12, 9.5, 600);
  const waits = view.state !== "unreported" && view.waiting !== null && view.waiting > 0;
  if (waits && width >= 54) {
    write(`+${compact(view.waiting)}`, x + width - 5, y + 12, 9.5, 400, "right");
  }
  const size = Math.round(Math.min(22, height * 0.42));
  write(shareText(view), x + width / 2, y + height / 2 + size * 0.36 + 5, size, 500, "center");
}

/**
 * Where there is room for one number.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {Palette} palette
 */
export function drawSmall(context, { x, y, width, height }, view, { font }) {
  const text = shareText(view);
  const size = Math.min(13, height * 0.58, width / (0.64 * Math.max(2, text.length)));
  writer(context, font)(text, x + width / 2, y + height / 2 + size * 0.34, size, 500, "center");
}

/**
 * @param {TileView} view
 * @returns {string}
 */
function shareText({ state, usage }) {
  return state === "unreported" ? UNKNOWN : percent(usage);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} font
 */
function writer(context, font) {
  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {number} size
   * @param {number} weight
   * @param {CanvasTextAlign} [align]
   */
  return (text, x, y, size, weight, align = "left") => {
    if (text === "") return;
    context.font = `${weight} ${size}px ${font}`;
    context.letterSpacing = size > 16 ? `${-0.035 * size}px` : "0px";
    context.textAlign = align;
    context.fillText(text, x, y);
  };
}
