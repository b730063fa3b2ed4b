/** Seeded random numbers: the same seed and stream give the same sequence on every machine. */

/** A generator of 32-bit numbers (sfc32) with the distributions that a workload needs. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /**
   * @param seed What the whole simulation is named by.
   * @param stream Which of its independent sequences this is, such as a rank.
   */
  constructor(seed: number, stream: number) {
    this.#a = seed | 0;
    this.#b = stream | 0;
    this.#c = 0x9e3779b9 | 0;
    // Neighbouring seeds start out alike; a few rounds drive them apart.
    for (let round = 0; round < 16; round++) this.#next();
  }

  /** @returns A number from 0 to below 1. */
  uniform(): number {
    return this.#next() / 0x1_0000_0000;
  }

  /** @returns A number from `low` to below `high`. */
  between(low: number, high: number): number {
    return low + (high - low) * this.uniform();
  }

  /** @returns A whole number from 0 to below `count`. */
  index(count: number): number {
    return Math.floor(this.uniform() * count);
  }

  /** @returns `true` with the given probability. */
  chance(probability: number): boolean {
    return this.uniform() < probability;
  }

  /** @returns The time to the next event of a Poisson process with that mean distance. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform());
  }

  /** @returns A heavy-tailed number whose logarithm is normal. */
  logNormal(median: number, sigma: number): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return median * Math.exp(sigma * radius * Math.cos(2 * Math.PI * this.uniform()));
  }

  #next(): number {
    const out = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + out) | 0;
    return out >>> 0;
  }
}
