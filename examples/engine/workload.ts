/** What users ask of one rank: an endless, seeded stream of requests. */

import { LIMITS } from "./limits.ts";
import { Random } from "./random.ts";

/** One request as it reaches the engine. */
export interface Arrival {
  readonly atMs: number;
  readonly promptTokens: number;
  /** How many of the prompt's first tokens the prefix cache holds. */
  readonly cachedTokens: number;
  /** How many tokens the answer will have. */
  readonly outputTokens: number;
  /** How long its grammar takes to compile; 0 without one. */
  readonly grammarMs: number;
  /** The LoRA adapter that it wants, or `null` for the base model. */
  readonly adapter: number | null;
}

/** Where a scheduler's own requests come from, in their order. */
export interface Arrivals {
  /** When the next request arrives; `Infinity` if none does. */
  readonly nextMs: number;
  /** @returns The next request, and moves on to the one after it. */
  take(): Arrival;
}

/** No requests but those that are submitted. */
export const NO_ARRIVALS: Arrivals = {
  nextMs: Infinity,
  take: () => {
    throw new RangeError("Cannot take a request: none arrives");
  },
};

/** Requests per second of a rank at its mean, before waves, bursts and quiet spells. */
const MEAN_RATE = 3;
const WAVE_DEPTH = 0.6;
const BURST_FACTOR = 3.5;
const ADAPTERS = 12;

/** Arrivals of one rank: Poisson, at a rate that swells, bursts and now and then dries up. */
export class Workload implements Arrivals {
  readonly #random: Random;
  readonly #scale: number;
  readonly #periodMs: number;
  readonly #phase: number;
  readonly #bursts: Spells;
  readonly #lulls: Spells;
  #candidateMs = 0;
  #next: Arrival;

  constructor(seed: number, dpRank: number) {
    this.#random = new Random(seed, dpRank * 4);
    this.#scale = this.#random.between(0.5, 1.5);
    this.#periodMs = this.#random.between(40_000, 90_000);
    this.#phase = this.#random.between(0, 2 * Math.PI);
    this.#bursts = new Spells(new Random(seed, dpRank * 4 + 1), 30_000, [2_000, 6_000]);
    this.#lulls = new Spells(new Random(seed, dpRank * 4 + 2), 90_000, [6_000, 25_000]);
    this.#next = this.#draw();
  }

  /** When the next request arrives. */
  get nextMs(): number {
    return this.#next.atMs;
  }

  /** @returns The next request, and moves on to the one after it. */
  take(): Arrival {
    const arrival = this.#next;
    this.#next = this.#draw();
    return arrival;
  }

  /** Thinning: candidates come at the highest rate, and each is kept with the share of its moment. */
  #draw(): Arrival {
    const highest = this.#scale * MEAN_RATE * (1 + WAVE_DEPTH) * BURST_FACTOR;
    do {
      this.#candidateMs += this.#random.exponential(1000 / highest);
    } while (!this.#random.chance(this.#rateAt(this.#candidateMs) / highest));
    return this.#request(this.#candidateMs);
  }

  #rateAt(ms: number): number {
    const burst = this.#bursts.cover(ms) ? BURST_FACTOR : 1;
    const lull = this.#lulls.cover(ms) ? 0 : 1;
    const wave = 1 + WAVE_DEPTH * Math.sin(2 * Math.PI * ms / this.#periodMs + this.#phase);
    return this.#scale * MEAN_RATE * wave * burst * lull;
  }

  #request(atMs: number): Arrival {
    const random = this.#random;
    const promptTokens = clampTokens(random.logNormal(1_800, 1.15), 8, LIMITS.maxPromptTokens);
    // Most requests go on with a conversation; the others share a system prompt at best.
    const share = random.chance(0.65) ? random.between(0.4, 0.97) : random.between(0, 0.15);
    return {
      atMs,
      promptTokens,
      // The last prompt token is always computed: its logits are the first answer token.
      cachedTokens: Math.min(Math.floor(promptTokens * share), promptTokens - 1),
      outputTokens: clampTokens(random.logNormal(380, 0.95), 1, LIMITS.maxOutputTokens),
      grammarMs: random.chance(0.06) ? random.between(30, 900) : 0,
      adapter: random.chance(0.35) ? Math.floor(ADAPTERS * random.uniform() ** 2) : null,
    };
  }
}

/** Spans of time that come at random, asked for at moments that never go back. */
class Spells {
  readonly #random: Random;
  readonly #meanGapMs: number;
  readonly #lengthMs: readonly [number, number];
  #startMs = 0;
  #endMs = 0;

  constructor(random: Random, meanGapMs: number, lengthMs: readonly [number, number]) {
    this.#random = random;
    this.#meanGapMs = meanGapMs;
    this.#lengthMs = lengthMs;
  }

  cover(ms: number): boolean {
    while (ms >= this.#endMs) {
      this.#startMs = this.#endMs + this.#random.exponential(this.#meanGapMs);
      this.#endMs = this.#startMs + this.#random.between(...this.#lengthMs);
    }
    return ms >= this.#startMs;
  }
}

function clampTokens(tokens: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, Math.round(tokens)));
}
