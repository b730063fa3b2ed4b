/** When a publication is due: SGLang counts calls, not time. */

/** Counts calls up to the interval. */
export class PublishCounter {
  readonly #interval: number;
  #calls = 0;
  #skipped = 0;

  /**
   * @param interval Every so many calls one is due; below 1 is taken as 1.
   * @throws {RangeError} If it is no number.
   */
  constructor(interval: number = 1) {
    if (Number.isNaN(interval) || typeof interval !== "number") {
      throw new RangeError(`Cannot use publishInterval ${interval}: not a number`);
    }
    this.#interval = Math.max(1, interval);
  }

  /** How many calls were not due. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Counts a call, and tells whether it is due. A forced one is, and starts the count anew. */
  isDue(force: boolean): boolean {
    this.#calls++;
    if (!force && this.#calls < this.#interval) {
      this.#skipped++;
      return false;
    }
    this.#calls = 0;
    return true;
  }
}
