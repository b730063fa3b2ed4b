/** Waiting between two looks: shortly while things change, longer while nothing does. */

/** After a change, the next one is looked for this soon; no timer is shorter. */
const SHORTEST_MS = 1;

/** Waits that double up to a bound as long as nothing changes. */
export class AdaptiveWait {
  readonly #longestMs: number;
  #nextMs: number = SHORTEST_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #resolve: (() => void) | null = null;

  /** @param longestMs The longest wait, in ms. */
  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** Resolves when it is time. One at a time. */
  wait(): Promise<void> {
    const ms = this.#nextMs;
    this.#nextMs = Math.min(ms * 2, this.#longestMs);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#timer = setTimeout(() => this.wake(), ms);
    });
  }

  /** Has the waits begin again with the shortest. */
  shorten(): void {
    this.#nextMs = Math.min(SHORTEST_MS, this.#longestMs);
  }

  /** Ends the wait. */
  wake(): void {
    clearTimeout(this.#timer);
    const resolve = this.#resolve;
    this.#resolve = null;
    resolve?.();
  }
}
