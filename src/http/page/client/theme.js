// @ts-check
/** Light or dark: as the system says, until a person says otherwise. */

/// <reference lib="dom" />

import { colourScale } from "./colour_scale.js";

/** @typedef {"auto" | "light" | "dark"} Theme */
/** @typedef {"light" | "dark"} Scheme */

/**
 * What a canvas is drawn with.
 * @typedef {object} Palette
 * @property {Scheme} scheme
 * @property {readonly import("./colour_scale.js").Step[]} scale By per cent of usage.
 * @property {string} ink
 * @property {string} inkSoft
 * @property {string} surface
 * @property {string} line
 * @property {string} hatch
 * @property {string} edge
 * @property {string} accent
 * @property {string} warn
 * @property {string} font
 */

const KEY = "loadslots.theme";
const ORDER = /** @type {readonly Theme[]} */ (["auto", "light", "dark"]);
const NAMES = { auto: "As the system", light: "Light", dark: "Dark" };

/** The theme, its button, and the colours that follow from it. */
export class ThemeSwitch {
  #button;
  #onChange;
  #systemDark = matchMedia("(prefers-color-scheme: dark)");
  /** @type {Theme} */
  #theme = "auto";
  /** @type {Palette} */
  palette;

  /**
   * @param {HTMLElement} button
   * @param {() => void} onChange Called when the palette is another one.
   */
  constructor(button, onChange) {
    this.#button = button;
    this.#onChange = onChange;
    this.#theme = ORDER.find((name) => name === remembered()) ?? "auto";
    this.palette = this.#apply();
    button.addEventListener("click", () => {
      this.#theme = ORDER[(ORDER.indexOf(this.#theme) + 1) % ORDER.length] ?? "auto";
      remember(this.#theme);
      this.#change();
    });
    this.#systemDark.addEventListener("change", () => this.#change());
  }

  #change() {
    this.palette = this.#apply();
    this.#onChange();
  }

  /** @returns {Palette} */
  #apply() {
    const root = document.documentElement;
    if (this.#theme === "auto") delete root.dataset["theme"];
    else root.dataset["theme"] = this.#theme;
    this.#button.dataset["theme"] = this.#theme;
    this.#button.setAttribute("aria-label", `Theme: ${NAMES[this.#theme]}`);
    this.#button.title = `Theme: ${NAMES[this.#theme]}`;
    const dark = this.#theme === "auto" ? this.#systemDark.matches : this.#theme === "dark";
    return readPalette(dark ? "dark" : "light");
  }
}

/**
 * @param {Scheme} scheme
 * @returns {Palette}
 */
function readPalette(scheme) {
  // A custom property's own value is text; on a real property it becomes a colour.
  const probe = document.createElement("i");
  document.body.append(probe);
  /** @param {string} name */
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const palette = {
    scheme,
    scale: colourScale(scheme),
    ink: colour("ink"),
    inkSoft: colour("ink-soft"),
    surface: colour("surface"),
    line: colour("line"),
    hatch: colour("hatch"),
    edge: colour("edge"),
    accent: colour("accent"),
    warn: colour("warn"),
    font: getComputedStyle(document.body).fontFamily,
  };
  probe.remove();
  return palette;
}

/** @returns {string | null} */
function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    // Storage may be denied: the choice then holds as long as the page.
    return null;
  }
}

/** @param {Theme} theme */
function remember(theme) {
  try {
    if (theme === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // As above.
  }
}
