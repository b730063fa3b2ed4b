/** The counts and the choices of SGLang's data-parallel controller, rule by rule. */

import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";

/**
 * What SGLang's `DPBudget` keeps of each rank, and how it chooses by it.
 *
 * It is here to be equal, faults included: a refresh overwrites what was just dispatched, and a rank
 * that froze keeps its counts. What it does not have is added elsewhere.
 */
export class SglangCounts {
  /** Requests by rank. */
  readonly requests: Float64Array;
  /** Tokens by rank. */
  readonly tokens: Float64Array;
  readonly #timestamps: Float64Array;
  #turn = 0;

  /** @param dpSize How many ranks. */
  constructor(dpSize: number) {
    this.requests = new Float64Array(dpSize);
    this.tokens = new Float64Array(dpSize);
    this.#timestamps = new Float64Array(dpSize);
  }

  /** Takes a report, unless its timestamp is the one that was taken last. */
  update(load: LoadSnapshot): void {
    const { dpRank, timestamp } = load;
    if (timestamp === this.#timestamps[dpRank]) return;
    this.#timestamps[dpRank] = timestamp;
    this.requests[dpRank] = load.numRunningReqs + load.numWaitingReqs;
    this.tokens[dpRank] = load.numTotalTokens;
  }

  /** Counts one request more until the next report. */
  add(dpRank: number, estimatedTokens: number): void {
    this.requests[dpRank]! += 1;
    this.tokens[dpRank]! += estimatedTokens;
  }

  /** The first rank with the fewest requests; -1 if all are left out. */
  leastRequests(leftOut: Uint8Array): number {
    const { requests } = this;
    let found = -1;
    for (let rank = 0; rank < requests.length; rank++) {
      if (leftOut[rank] !== 0) continue;
      if (found < 0 || requests[rank]! < requests[found]!) found = rank;
    }
    return found;
  }

  /** The first rank with the fewest tokens, and the fewest requests among those; -1 for none. */
  leastTokens(leftOut: Uint8Array): number {
    const { requests, tokens } = this;
    let found = -1;
    for (let rank = 0; rank < tokens.length; rank++) {
      if (leftOut[rank] !== 0) continue;
      const isLess = found < 0 || tokens[rank]! < tokens[found]! ||
        (tokens[rank] === tokens[found] && requests[rank]! < requests[found]!);
      if (isLess) found = rank;
    }
    return found;
  }

  /** The next rank in turn. As with SGLang, the turn counts places among those that take part. */
  next(leftOut: Uint8Array): number {
    let count = 0;
    for (let rank = 0; rank < leftOut.length; rank++) if (leftOut[rank] === 0) count++;
    if (count === 0) return -1;
    let place = this.#turn % count;
    this.#turn = (this.#turn + 1) % count;
    for (let rank = 0;; rank++) {
      if (leftOut[rank] === 0 && place-- === 0) return rank;
    }
  }
}
