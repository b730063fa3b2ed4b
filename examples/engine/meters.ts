/** What a scheduler counts about its own work: totals since the start, and rates per log interval. */

import { LIMITS } from "./limits.ts";

/** Decode steps between two looks at the rates, as an engine logs them. */
const STEPS_PER_LOG = 40;

/** Prefill work: two totals, and the hit rate of the last batch. */
export class PrefillMeter {
  uncachedTokens = 0;
  busyUs = 0;
  hitRate = 0;

  record(cached: number, uncached: number, durationMs: number): void {
    this.uncachedTokens += uncached;
    this.busyUs += Math.round(durationMs * 1000);
    this.hitRate = cached / (cached + uncached);
  }
}

/** Decode work: moments of the step time, throughput and how many drafts were accepted. */
export class DecodeMeter {
  /** Sums over all steps: 1, requests, step time in us, requests squared, requests x us, tokens. */
  readonly #moments: [number, number, number, number, number, number] = [0, 0, 0, 0, 0, 0];
  #tokensPerSecond = 0;
  #acceptRate = 0;
  #logMs = 0;
  #log = { steps: 0, requests: 0, tokens: 0 };

  /** The sums, or `null` before the first step. */
  get moments(): readonly number[] | null {
    return this.#moments[0] > 0 ? [...this.#moments] : null;
  }

  /** Tokens per second over the last log interval; stays as it was while nothing decodes. */
  get tokensPerSecond(): number {
    return this.#tokensPerSecond;
  }

  /** Tokens per request and step since the start, or `null` before the first step. */
  get acceptLength(): number | null {
    const [, requests, , , , tokens] = this.#moments;
    return requests > 0 ? tokens / requests : null;
  }

  /** Accepted share of the draft tokens over the last log interval. */
  get acceptRate(): number {
    return this.#acceptRate;
  }

  /** Counts one step. @returns Whether it ended a log interval. */
  record(requests: number, tokens: number, durationMs: number, nowMs: number): boolean {
    const us = Math.round(durationMs * 1000);
    const sums = this.#moments;
    sums[0] += 1;
    sums[1] += requests;
    sums[2] += us;
    sums[3] += requests * requests;
    sums[4] += requests * us;
    sums[5] += tokens;
    this.#log.steps++;
    this.#log.requests += requests;
    this.#log.tokens += tokens;
    if (this.#log.steps < STEPS_PER_LOG) return false;

    // Each request gets one token for sure; what is beyond that came out of its drafts.
    const drafted = this.#log.requests * LIMITS.draftTokens;
    this.#acceptRate = (this.#log.tokens - this.#log.requests) / drafted;
    this.#tokensPerSecond = this.#log.tokens / (nowMs - this.#logMs) * 1000;
    this.#logMs = nowMs;
    this.#log = { steps: 0, requests: 0, tokens: 0 };
    return true;
  }
}
