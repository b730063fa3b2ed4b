/** One answer of a simulated scheduler, for a request that came from outside. */

import { isFinished, type Request } from "./request.ts";
import type { SimulatedScheduler } from "./scheduler.ts";

/** What a {@linkcode Completion} asks for. */
export interface Prompt {
  readonly promptTokens: number;
  /** How many tokens the answer will have. */
  readonly outputTokens: number;
}

/**
 * A request that is under way. It waits, runs and is published as the scheduler's own are; iterate
 * it for its tokens. Leaving the iteration, or the signal, gives the request up.
 */
export class Completion {
  readonly #scheduler: SimulatedScheduler;
  readonly #request: Request;
  readonly #signal: AbortSignal;
  #unread = 0;
  #wake = (): void => {};

  /**
   * Submits a request.
   *
   * @param scheduler The rank that is to answer.
   * @param prompt What is asked for.
   * @param signal Gives it up.
   */
  constructor(scheduler: SimulatedScheduler, prompt: Prompt, signal: AbortSignal) {
    this.#scheduler = scheduler;
    this.#signal = signal;
    const asked = { ...prompt, cachedTokens: 0, grammarMs: 0, adapter: null };
    this.#request = scheduler.submit(asked, (tokens) => {
      this.#unread += tokens;
      this.#wake();
    });
    if (signal.aborted) this.#abort();
    else signal.addEventListener("abort", this.#abort);
  }

  /**
   * How many tokens are new, again and again, as they come.
   *
   * @throws The signal's reason, when it is aborted before the answer is complete.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<number> {
    try {
      while (true) {
        this.#signal.throwIfAborted();
        if (this.#unread > 0) {
          const tokens = this.#unread;
          this.#unread = 0;
          yield tokens;
        } else if (isFinished(this.#request)) {
          return;
        } else {
          await new Promise<void>((resolve) => this.#wake = resolve);
        }
      }
    } finally {
      this.#signal.removeEventListener("abort", this.#abort);
      if (!isFinished(this.#request)) this.#scheduler.abort(this.#request);
    }
  }

  readonly #abort = (): void => {
    this.#scheduler.abort(this.#request);
    this.#wake();
  };
}
