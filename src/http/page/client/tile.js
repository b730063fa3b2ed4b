// @ts-check
/** One rank's tile, as large as there is room: colour, number, waiting; and what its state looks like. */

/// <reference lib="dom" />

import { age, percent, percentOf } from "./format.js";
import { drawLarge, drawMedium, drawSmall, padOf } from "./tile_text.js";

/**
 * What a tile shows.
 * @typedef {object} TileView
 * @property {number} dpRank
 * @property {import("./rank.js").RankState} state
 * @property {number | null} usage
 * @property {number | null} running
 * @property {number | null} waiting
 * @property {number | null} ageMs
 * @property {Spark | null} spark Where there is room for it.
 */

/**
 * The course of usage: 0..1, `null` is a gap, and how far each is along the time shown, 0..1.
 * @typedef {{ readonly along: readonly number[], readonly usage: readonly (number | null)[] }} Spark
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
 * Tells whether a tile has room for the course of its usage.
 *
 * @param {number} width
 * @param {number} height
 * @returns {boolean}
 */
export function hasSpark(width, height) {
  return width >= 170 && height >= 80;
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
  const ink = drawGround(context, box, view, palette);
  drawWaiting(context, box, view, ink);
  if (view.spark !== null) drawSpark(context, box, view.spark, ink);
  context.fillStyle = ink;
  if (isLarge(box)) drawLarge(context, box, view, palette);
  else if (box.width >= 42 && box.height >= 36) drawMedium(context, box, view, palette);
  else drawSmall(context, box, view, palette);
}

/** @param {Box} box */
function isLarge({ width, height }) {
  return width >= 84 && height >= 64;
}

/**
 * Draws what a tile's state looks like, without a word.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {Pick<TileView, "state" | "usage">} view
 * @param {Palette} palette
 * @returns {string} The ink to write with.
 */
export function drawGround(context, box, view, palette) {
  const radius = Math.min(10, Math.max(3, Math.min(box.width, box.height) * 0.12));
  const step = view.state === "live" ? stepOf(view.usage, palette) : null;
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, radius);
  context.fillStyle = step?.fill ?? palette.surface;
  context.fill();
  if (view.state === "stale") {
    context.save();
    context.clip();
    drawHatch(context, box, palette.hatch);
    context.restore();
  }
  if (step !== null) return step.ink;
  drawEdge(context, box, radius, view.state, palette);
  return view.state === "corrupt" ? palette.ink : palette.inkSoft;
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
 * @param {import("./rank.js").RankState} state
 * @param {Palette} palette
 */
function drawEdge(context, { x, y, width, height }, radius, state, palette) {
  const corrupt = state === "corrupt";
  const line = corrupt ? 2 : 1;
  context.save();
  context.beginPath();
  context.roundRect(x + line / 2, y + line / 2, width - line, height - line, radius);
  context.strokeStyle = corrupt ? palette.warn : palette.edge;
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
  const large = isLarge({ x, y, width, height });
  const thick = large ? 3 : 2;
  const pad = large ? padOf(width) : Math.max(3, width * 0.1);
  const top = y + height - thick - (large ? 7 : 2);
  context.fillStyle = ink;
  context.beginPath();
  context.roundRect(x + pad, top, Math.max(thick, (width - 2 * pad) * share), thick, thick / 2);
  context.fill();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Box} box
 * @param {Spark} spark
 * @param {string} ink
 */
function drawSpark(context, { x, y, width, height }, { along, usage }, ink) {
  const left = x + Math.max(96, width * 0.42);
  const right = x + width - padOf(width);
  const top = y + height * 0.28;
  const bottom = y + height * 0.68;
  const points = usage.map((share, index) => ({
    x: left + (right - left) * (along[index] ?? 0),
    y: share === null ? null : bottom - (bottom - top) * Math.min(1, share),
  }));
  context.save();
  context.fillStyle = ink;
  context.globalAlpha = 0.1;
  context.beginPath();
  points.forEach(({ x, y }, index) => {
    const next = points[index + 1];
    if (y === null || next === undefined || next.y === null) return;
    context.moveTo(x, bottom);
    context.lineTo(x, y);
    context.lineTo(next.x, next.y);
    context.lineTo(next.x, bottom);
  });
  context.fill();
  context.globalAlpha = 0.7;
  context.beginPath();
  points.forEach(({ x, y }, index) => {
    if (y === null) return;
    if ((points[index - 1]?.y ?? null) === null) context.moveTo(x, y);
    else context.lineTo(x, y);
  });
  context.strokeStyle = ink;
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.stroke();
  context.restore();
}
