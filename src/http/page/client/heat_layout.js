// @ts-check
/** Where each rank's tile goes, for any number of ranks and any width. */

/**
 * A grid of tiles, row by row; all in CSS pixels.
 * @typedef {object} HeatLayout
 * @property {number} count
 * @property {number} columns
 * @property {number} rows
 * @property {number} gap
 * @property {number} tileWidth
 * @property {number} tileHeight
 * @property {number} height Of the whole grid.
 */

/** Below this a number of two digits cannot be read. */
export const SMALLEST_TILE = 18;

/** A tile that is taller looks empty. */
const TALLEST_TILE = 132;
const LOWEST_RATIO = 0.52;
const HIGHEST_RATIO = 0.86;

/**
 * Finds the grid that shows its tiles largest; where that is close, one whose rows are full or hold
 * 8, 16, 32 ... ranks, so that a rank is found by counting.
 *
 * @param {number} count
 * @param {number} width
 * @param {number} height What the grid should stay within; many ranks make it taller.
 * @returns {HeatLayout}
 */
export function layoutHeat(count, width, height) {
  const gap = gapFor(count, width);
  if (count === 0) {
    return { count, columns: 0, rows: 0, gap, tileWidth: 0, tileHeight: 0, height: 0 };
  }
  const most = Math.max(1, Math.floor((width + gap) / (SMALLEST_TILE + gap)));
  let best = grid(count, Math.min(count, most), width, height, gap);
  let bestScore = -1;
  for (let columns = 1; columns <= Math.min(count, most); columns++) {
    const candidate = grid(count, columns, width, height, gap);
    const score = scoreOf(candidate, height);
    if (score > bestScore) {
      best = candidate;
      bestScore = score;
    }
  }
  return best;
}

/**
 * @param {number} count
 * @param {number} width
 * @returns {number}
 */
function gapFor(count, width) {
  if (width < 480) return count > 64 ? 2 : 5;
  if (count > 128) return 3;
  return count > 32 ? 5 : 8;
}

/**
 * @param {number} count
 * @param {number} columns
 * @param {number} width
 * @param {number} height
 * @param {number} gap
 * @returns {HeatLayout}
 */
function grid(count, columns, width, height, gap) {
  const rows = Math.ceil(count / columns);
  const tileWidth = Math.max(1, (width - gap * (columns - 1)) / columns);
  const fitting = (height - gap * (rows - 1)) / rows;
  const low = Math.min(TALLEST_TILE, Math.max(SMALLEST_TILE, tileWidth * LOWEST_RATIO));
  const high = Math.min(TALLEST_TILE, Math.max(SMALLEST_TILE, tileWidth * HIGHEST_RATIO));
  const tileHeight = Math.floor(Math.min(high, Math.max(low, fitting)));
  return {
    count,
    columns,
    rows,
    gap,
    tileWidth,
    tileHeight,
    height: rows * tileHeight + (rows - 1) * gap,
  };
}

/**
 * @param {HeatLayout} layout
 * @param {number} height
 * @returns {number}
 */
function scoreOf(layout, height) {
  const { count, columns, rows, tileWidth, tileHeight } = layout;
  const size = Math.min(tileWidth, tileHeight * 1.7);
  const full = count % columns === 0;
  const round = (columns & (columns - 1)) === 0;
  const order = full && round ? 1.5 : full || round && rows > 1 ? 1.25 : 1;
  const empty = (rows * columns - count) / (rows * columns);
  const over = Math.max(0, layout.height - height) / height;
  return size * order * (1 - empty * 0.5) / (1 + 4 * over);
}

/**
 * Where a rank's tile is.
 *
 * @param {HeatLayout} layout
 * @param {number} rank
 * @returns {{ x: number, y: number, width: number, height: number }} Its edges lie on whole pixels.
 */
export function tileOf({ columns, gap, tileWidth, tileHeight }, rank) {
  const column = rank % columns;
  const x = Math.round(column * (tileWidth + gap));
  const y = Math.floor(rank / columns) * (tileHeight + gap);
  return {
    x,
    y,
    width: Math.round(column * (tileWidth + gap) + tileWidth) - x,
    height: tileHeight,
  };
}

/**
 * Which rank's tile is at a point.
 *
 * @param {HeatLayout} layout
 * @param {number} x
 * @param {number} y
 * @returns {number | null} `null` between tiles and outside.
 */
export function rankAt(layout, x, y) {
  const { count, columns, gap, tileWidth, tileHeight } = layout;
  if (count === 0 || x < 0 || y < 0) return null;
  const column = Math.min(columns - 1, Math.floor(x / (tileWidth + gap)));
  const rank = Math.floor(y / (tileHeight + gap)) * columns + column;
  if (rank >= count) return null;
  const tile = tileOf(layout, rank);
  const inside = x >= tile.x && x < tile.x + tile.width && y >= tile.y && y < tile.y + tile.height;
  return inside ? rank : null;
}

/**
 * Where a key leads from a rank.
 *
 * @param {HeatLayout} layout
 * @param {number | null} rank `null` when none is chosen: any key then leads to the first, or End to the last.
 * @param {string} key As `KeyboardEvent.key` names it.
 * @returns {number | null} `null` if the key does not move.
 */
export function rankAfterKey({ count, columns }, rank, key) {
  if (count === 0) return null;
  const from = rank ?? 0;
  const lineStart = from - from % columns;
  /** @type {Record<string, number>} */
  const targets = {
    ArrowLeft: from - 1,
    ArrowRight: from + 1,
    ArrowUp: from - columns,
    ArrowDown: from + columns,
    Home: 0,
    End: count - 1,
    PageUp: from % columns,
    PageDown: from + columns * Math.floor((count - 1 - from) / columns),
  };
  if (!Object.hasOwn(targets, key)) return null;
  if (rank === null) return key === "End" ? count - 1 : 0;
  const target = targets[key] ?? from;
  if (target >= 0 && target < count) return target;
  // Below the last full row there may be none: the last rank is the nearest.
  if (key === "ArrowDown" && lineStart + columns < count) return count - 1;
  return from;
}
