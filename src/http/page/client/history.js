// @ts-check
/** The last minutes of every rank and of the group: rings of fixed size, so that memory stays flat. */

/** What is kept of each. */
export const FIELDS = /** @type {const} */ (["tokens", "running", "waiting", "throughput"]);

/** @typedef {typeof FIELDS[number]} Field */

/** One value per field. @typedef {{ readonly [name in Field]: number }} Sample */

/** Samples of a number of rows, all taken at the same times. NaN is a gap. */
export class History {
  #capacity;
  #rows;
  #times;
  /** @type {Record<Field, Float64Array>} */
  #values;
  #next = 0;
  #size = 0;

  /**
   * @param {number} rows
   * @param {number} capacity How many samples of each row are kept.
   */
  constructor(rows, capacity) {
    this.#rows = rows;
    this.#capacity = capacity;
    this.#times = new Float64Array(capacity);
    const cells = () => new Float64Array(rows * capacity).fill(NaN);
    this.#values = { tokens: cells(), running: cells(), waiting: cells(), throughput: cells() };
  }

  /** How many rows there are. */
  get rows() {
    return this.#rows;
  }

  /** How many samples there are. */
  get size() {
    return this.#size;
  }

  /** When the newest sample was taken; `null` without one. */
  get newestTime() {
    return this.#size === 0 ? null : this.#times[this.#slot(this.#size - 1)] ?? null;
  }

  /**
   * Adds a sample of every row; the oldest makes room.
   *
   * @param {number} time Later than the last one's.
   * @param {(row: number) => Sample | null} sampleOf `null` makes a gap.
   */
  push(time, sampleOf) {
    const slot = this.#next;
    this.#times[slot] = time;
    for (let row = 0; row < this.#rows; row++) {
      const sample = sampleOf(row);
      const cell = row * this.#capacity + slot;
      for (const field of FIELDS) this.#values[field][cell] = sample === null ? NaN : sample[field];
    }
    this.#next = (slot + 1) % this.#capacity;
    this.#size = Math.min(this.#size + 1, this.#capacity);
  }

  /**
   * The times from one on, oldest first.
   *
   * @param {number} since
   * @returns {number[]}
   */
  times(since) {
    const times = [];
    for (let i = this.#firstSince(since); i < this.#size; i++) {
      times.push(this.#times[this.#slot(i)] ?? NaN);
    }
    return times;
  }

  /**
   * A row's values at those times.
   *
   * @param {number} row
   * @param {Field} field
   * @param {number} since
   * @returns {(number | null)[]} `null` is a gap.
   */
  series(row, field, since) {
    const values = this.#values[field];
    const base = row * this.#capacity;
    /** @type {(number | null)[]} */
    const series = [];
    for (let i = this.#firstSince(since); i < this.#size; i++) {
      const value = values[base + this.#slot(i)] ?? NaN;
      series.push(Number.isNaN(value) ? null : value);
    }
    return series;
  }

  /**
   * The same history for another number of rows; rows that are new have gaps.
   *
   * @param {number} rows
   * @returns {History}
   */
  resized(rows) {
    const other = new History(rows, this.#capacity);
    other.#times.set(this.#times);
    const cells = Math.min(rows, this.#rows) * this.#capacity;
    for (const field of FIELDS) other.#values[field].set(this.#values[field].subarray(0, cells));
    other.#next = this.#next;
    other.#size = this.#size;
    return other;
  }

  /** @param {number} index From the oldest. */
  #slot(index) {
    return (this.#next - this.#size + index + this.#capacity) % this.#capacity;
  }

  /** @param {number} since */
  #firstSince(since) {
    let low = 0;
    let high = this.#size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#times[this.#slot(middle)] ?? 0) < since) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
