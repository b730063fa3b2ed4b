// @ts-check
/** Drawing: once in a frame at most, and for data no faster than a person can read. */

/// <reference lib="dom" />

/** Between two drawings that only new data asks for. */
const DATA_INTERVAL_MS = 100;

/** Calls a function in the next frame that is due, however often it is asked. */
export class Frames {
  #draw;
  #requested = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer = undefined;
  #lastMs = -Infinity;

  /** @param {(now: number) => void} draw */
  constructor(draw) {
    this.#draw = draw;
  }

  /** Something that a person did is to be seen: in the next frame. */
  request() {
    if (this.#requested) return;
    this.#requested = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    requestAnimationFrame(() => {
      this.#requested = false;
      this.#lastMs = performance.now();
      this.#draw(this.#lastMs);
    });
  }

  /** There is new data. */
  requestSoon() {
    if (this.#requested || this.#timer !== undefined) return;
    const wait = this.#lastMs + DATA_INTERVAL_MS - performance.now();
    if (wait <= 0) this.request();
    else this.#timer = setTimeout(() => this.request(), wait);
  }
}
