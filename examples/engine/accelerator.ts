/** How long the simulated hardware takes, and what comes out of it. */

import { LIMITS } from "./limits.ts";
import type { Random } from "./random.ts";

/** The model runner of one rank. */
export class Accelerator {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** @returns The time to prefill that many uncached tokens, in milliseconds. */
  prefillMs(tokens: number): number {
    return (7 + tokens / 30) * this.#jitter();
  }

  /** @returns The time of one decode step with that batch and context, in milliseconds. */
  decodeMs(requests: number, contextTokens: number): number {
    return (9 + requests * 0.16 + contextTokens * 6e-5) * this.#jitter();
  }

  /** @returns Tokens of one request in one step: one, and the drafts before the first refusal. */
  acceptedTokens(): number {
    let tokens = 1;
    while (tokens <= LIMITS.draftTokens && this.#random.chance(0.68)) tokens++;
    return tokens;
  }

  /** Batches take about as long as they should, and now and then twice that. */
  #jitter(): number {
    return this.#random.between(0.92, 1.1) * (this.#random.chance(0.004) ? 2 : 1);
  }
}
