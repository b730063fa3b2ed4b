// @ts-check
/** One rank's tile, as large as there is room: colour, number, waiting; and what its state looks like. */

/// <reference lib="dom" />

import { age, compact, percent, percentOf, UNKNOWN } from "./format.js";

/**
 * What a tile shows.
 * @typedef {object} TileView
 * @property {number} dpRank
 * @property {import("./group.js").RankState} state
 * @property {number | null} usage
 * @property {number | null} running
 * @property {number | null} waiting
 * @property {number | null} ageMs
 */

/** @typedef {{ x: number, y: number, width: number, height: number }} Box */
/** @typedef {import("./theme.js").Palette} Palette */

/** A bar is full at this many waiting requests; it is logarithmic, as one more matters less and less. */
const FULL_WAITING = 256;

/**
 * How much of a tile's lower edge waiting requests fill, 0..1.
 *
 * @param {number | null} waiting
 * @returns {number}
 */
export function waitingShare(waiting) {
  if (waiting === null || !(waiting > 0)) return 0;
  return Math.min(1, Math.log2(1 + waiting) / Math.log2(1 + FULL_WAITING));
}

/**
 * Tells whether two views look alike, so that a tile need not be drawn again.
 *
 * @param {TileView} view
 * @returns {string}
 */
export function lookOf({ state, usage, running, waiting, ageMs }) {
  return `${state} ${percent(usage)} ${running} ${waiting} ${age(ageMs)}`;
}

/**
 * Draws a tile.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {Palette} palette
 */
export function drawTile(context, box, view, palette) {
  const radius = Math.min(10, Math.max(3, Math.min(box.width, box.height) * 0.12));
  const step = view.state === "live" ? stepOf(view.usage, palette) : null;
  context.save();
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, radius);
  context.clip();
  context.fillStyle = step?.fill ?? palette.surface;
  context.fillRect(box.x, box.y, box.width, box.height);
  if (view.state === "stale") drawHatch(context, box, palette.hatch);
  const ink = step?.ink ?? (view.state === "corrupt" ? palette.ink : palette.inkSoft);
  drawWaiting(context, box, view, ink);
  drawText(context, box, view, ink, palette);
  context.restore();
  if (view.state === "live" && step !== null) return;
  drawEdge(context, box, radius, view, palette);
}

/**
 * @param {number | null} usage
 * @param {Palette} palette
 */
function stepOf(usage, palette) {
  const value = percentOf(usage);
  return value === null ? null : palette.scale[Math.min(100, value)] ?? null;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {string} colour
 */
function drawHatch(context, { x, y, width, height }, colour) {
  const step = Math.min(10, Math.max(5, height / 8));
  context.beginPath();
  for (let from = -height; from < width; from += step) {
    context.moveTo(x + from, y + height);
    context.lineTo(x + from + height, y);
  }
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {number} radius
 * @param {TileView} view
 * @param {Palette} palette
 */
function drawEdge(context, { x, y, width, height }, radius, { state }, palette) {
  const corrupt = state === "corrupt";
  const line = corrupt ? 2 : 1;
  context.save();
  context.beginPath();
  context.roundRect(x + line / 2, y + line / 2, width - line, height - line, radius);
  context.strokeStyle = corrupt ? palette.warn : palette.hatch;
  context.lineWidth = line;
  if (state === "unreported") context.setLineDash([3, 3]);
  context.stroke();
  if (corrupt) {
    // A corner cut out: seen where there is no room for a word.
    const size = Math.min(16, Math.min(width, height) * 0.42);
    context.beginPath();
    context.moveTo(x + width, y);
    context.lineTo(x + width - size, y);
    context.lineTo(x + width, y + size);
    context.fillStyle = palette.warn;
    context.fill();
  }
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {string} ink
 */
function drawWaiting(context, { x, y, width, height }, { waiting, state }, ink) {
  const share = state === "unreported" ? 0 : waitingShare(waiting);
  if (share === 0) return;
  const thick = Math.max(2, Math.round(height * 0.045));
  context.fillStyle = ink;
  context.fillRect(x, y + height - thick, Math.max(3, width * share), thick);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {string} ink
 * @param {Palette} palette
 */
function drawText(context, box, view, ink, palette) {
  context.fillStyle = ink;
  if (box.width >= 84 && box.height >= 64) drawLarge(context, box, view, palette);
  else if (box.width >= 42 && box.height >= 36) drawMedium(context, box, view, palette);
  else drawSmall(context, box, view, palette);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {Palette} palette
 */
function drawLarge(context, { x, y, width, height }, view, { font }) {
  const pad = Math.round(Math.min(14, width * 0.085));
  const small = height >= 92 ? 13 : 11.5;
  const large = Math.round(Math.min(40, height * 0.36, width * 0.26));
  const write = writer(context, font);
  write(String(view.dpRank), x + pad, y + pad + small * 0.78, small, 600);
  const corner = view.state === "unreported" || view.state === "corrupt" ? "" : age(view.ageMs);
  write(corner, x + width - pad, y + pad + small * 0.78, small, 400, "right");
  const middle = y + height / 2 + large * 0.36 + 1;
  const share = shareText(view);
  write(share, x + pad - 1, middle, large, 500);
  if (share !== UNKNOWN) {
    const after = x + pad + context.measureText(share).width + 1;
    write("%", after, middle, Math.round(large * 0.5), 400);
  }
  const foot = y + height - pad * 0.95;
  const footer = footerOf(view, width);
  write(footer.left, x + pad, foot, small, 400);
  write(footer.right, x + width - pad, foot, small, 600, "right");
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
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {Palette} palette
 */
function drawMedium(context, { x, y, width, height }, view, { font }) {
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
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {TileView} view
 * @param {Palette} palette
 */
function drawSmall(context, { x, y, width, height }, view, { font }) {
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
    context.textAlign = align;
    context.fillText(text, x, y);
  };
}
