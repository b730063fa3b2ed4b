// @ts-check
/**
 * The colours of usage. Each step of one per cent looks as large as any other (equal steps in OKLab),
 * and lightness goes one way only, so that the order holds for every kind of colour vision, and in grey.
 */

/** @typedef {readonly [lightness: number, a: number, b: number]} Lab */

/**
 * Lightness, chroma and hue of the stops, from empty to full. Empty is near the page's background,
 * full is far from it.
 */
const STOPS = {
  light: [[0.955, 0.028, 115], [0.86, 0.075, 160], [0.71, 0.092, 198], [0.55, 0.1, 236], [
    0.37,
    0.115,
    270,
  ]],
  dark: [[0.275, 0.03, 262], [0.41, 0.08, 250], [0.56, 0.092, 214], [0.72, 0.1, 174], [
    0.9,
    0.115,
    118,
  ]],
};

/** How many steps a scale has: one for each per cent, 0 and 100 included. */
export const STEPS = 101;

/** Ink on light tiles, and on dark ones. */
const INKS = ["#000000", "#ffffff"];

/**
 * A colour of the scale, and the ink that is read best on it.
 * @typedef {{ readonly fill: string, readonly ink: string }} Step
 */

/**
 * Makes the scale of a scheme.
 *
 * @param {"light" | "dark"} scheme
 * @returns {readonly Step[]} By per cent.
 */
export function colourScale(scheme) {
  return scaleLab(scheme).map((lab) => {
    const rgb = toRgb(lab);
    const [dark, light] = INKS;
    const luminance = relativeLuminance(rgb);
    const onLight = (luminance + 0.05) / (relativeLuminance(parseHex(dark ?? "")) + 0.05);
    const onDark = 1.05 / (luminance + 0.05);
    return { fill: toHex(rgb), ink: (onLight >= onDark ? dark : light) ?? "" };
  });
}

/**
 * The scale in OKLab.
 *
 * @param {"light" | "dark"} scheme
 * @returns {readonly Lab[]}
 */
export function scaleLab(scheme) {
  const stops = STOPS[scheme].map(([lightness = 0, chroma = 0, hue = 0]) => /** @type {Lab} */ ([
    lightness,
    chroma * Math.cos(hue * Math.PI / 180),
    chroma * Math.sin(hue * Math.PI / 180),
  ]));
  /** @type {number[]} */
  const lengths = [0];
  for (let i = 1; i < stops.length; i++) {
    lengths.push(at(lengths, i - 1) + distance(at(stops, i - 1), at(stops, i)));
  }
  const total = at(lengths, lengths.length - 1);
  return Array.from({ length: STEPS }, (_, step) => {
    const along = total * step / (STEPS - 1);
    let i = 1;
    while (i < stops.length - 1 && at(lengths, i) < along) i++;
    const share = (along - at(lengths, i - 1)) / (at(lengths, i) - at(lengths, i - 1));
    return mix(at(stops, i - 1), at(stops, i), share);
  });
}

/**
 * @template T
 * @param {readonly T[]} list
 * @param {number} index
 * @returns {T}
 */
function at(list, index) {
  return /** @type {T} */ (list[index]);
}

/**
 * @param {Lab} from
 * @param {Lab} to
 * @param {number} share
 * @returns {Lab}
 */
function mix(from, to, share) {
  return [
    from[0] + (to[0] - from[0]) * share,
    from[1] + (to[1] - from[1]) * share,
    from[2] + (to[2] - from[2]) * share,
  ];
}

/**
 * How different two colours look.
 *
 * @param {Lab} one
 * @param {Lab} other
 * @returns {number}
 */
export function distance(one, other) {
  return Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]);
}

/** @typedef {readonly [red: number, green: number, blue: number]} Rgb Each 0..255. */

/**
 * @param {Lab} lab
 * @returns {Rgb}
 */
function toRgb([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encode(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

/**
 * @param {number} linear
 * @returns {number}
 */
function encode(linear) {
  const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(1, Math.max(0, value)));
}

/**
 * @param {Rgb} rgb
 * @returns {string}
 */
function toHex(rgb) {
  return "#" + rgb.map((part) => part.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {string} hex
 * @returns {Rgb}
 */
export function parseHex(hex) {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16 & 255, value >> 8 & 255, value & 255];
}

/**
 * Luminance as WCAG defines it, 0..1.
 *
 * @param {Rgb} rgb
 * @returns {number}
 */
export function relativeLuminance(rgb) {
  const [red, green, blue] = rgb.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
}
