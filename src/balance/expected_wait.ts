/** How long a request that were sent to a rank now would wait for its prefill, for all ranks. */

import type { DispatchLedger } from "./dispatch_ledger.ts";
import type { RankReports } from "./rank_reports.ts";

/**
 * What a full rank costs more than an empty one while nobody waits anywhere, in ms. It keeps
 * running requests spread evenly, and is small beside any wait worth avoiding.
 */
const FULL_MS = 100;

/** Where the engine does not say how many may run, so many count as full. */
const USUAL_MAX_REQUESTS = 128;

/** How long a request takes from dispatch to completion, in ms, until completions tell. */
const USUAL_DURATION_MS = 5_000;

/** The newest completions count for more. */
const NEW_DURATION = 0.02;

/**
 * Ranks whose measured speeds differ by less count as equally fast: who had many short prompts seems
 * slow, and would get fewer and fewer.
 */
const UNLIKE = 1.5;

/**
 * Follows the prefill work of each rank as a queue that empties with the time: a report sets it, a
 * dispatch adds to it. To that comes what the request would wait for a place or for room in the pool.
 */
export class ExpectedWait {
  /** The wait, by rank, in ms, as of the last {@linkcode estimate}. */
  readonly waitMs: Float64Array;
  /** Requests that the rank should have now, by rank. */
  readonly requests: Float64Array;
  /** Tokens that the rank should have now, by rank. */
  readonly tokens: Float64Array;
  /** The wait and everything else by which ranks are compared, by rank, in ms. */
  readonly costMs: Float64Array;
  /** Requests that were in a rank's report and are complete since, by rank. */
  readonly doneRequests: Float64Array;
  /** The prefill work of all requests that no report holds yet, in ms. */
  pendingMs = 0;
  /** The prefill work of the request that was estimated for, on an average rank, in ms. */
  requestMs = 0;
  readonly #reports: RankReports;
  readonly #ledger: DispatchLedger;
  readonly #backlogMs: Float64Array;
  readonly #backlogAtMs: Float64Array;
  readonly #doneTokens: Float64Array;
  #durationMs = USUAL_DURATION_MS;

  constructor(dpSize: number, reports: RankReports, ledger: DispatchLedger) {
    this.#reports = reports;
    this.#ledger = ledger;
    this.waitMs = new Float64Array(dpSize);
    this.requests = new Float64Array(dpSize);
    this.tokens = new Float64Array(dpSize);
    this.costMs = new Float64Array(dpSize);
    this.#backlogMs = new Float64Array(dpSize);
    this.#backlogAtMs = new Float64Array(dpSize);
    this.doneRequests = new Float64Array(dpSize);
    this.#doneTokens = new Float64Array(dpSize);
  }

  /** Starts anew from a report: its own backlog, and what was sent too late to be in it. */
  onReport(dpRank: number, reportAtMs: number): void {
    const ledger = this.#ledger;
    const msPerToken = this.#reports.msPerToken[dpRank]!;
    this.doneRequests[dpRank] = 0;
    this.#doneTokens[dpRank] = 0;
    let backlogMs = this.#reports.waitingTokens[dpRank]! * msPerToken;
    let atMs = reportAtMs;
    for (let at = ledger.firstPending(dpRank); at >= 0; at = ledger.nextPending(at)) {
      const sentAtMs = ledger.sentAtMs[at]!;
      if (sentAtMs > atMs) {
        backlogMs = Math.max(0, backlogMs - (sentAtMs - atMs));
        atMs = sentAtMs;
      }
      backlogMs += ledger.tokens[at]! * msPerToken;
    }
    this.#backlogMs[dpRank] = backlogMs;
    this.#backlogAtMs[dpRank] = atMs;
  }

  /** Adds a request that is sent now. */
  onDispatch(dpRank: number, tokens: number, nowMs: number): void {
    const atMs = this.#backlogAtMs[dpRank]!;
    const left = Math.max(0, this.#backlogMs[dpRank]! - Math.max(0, nowMs - atMs));
    this.#backlogMs[dpRank] = left + tokens * this.#reports.msPerToken[dpRank]!;
    this.#backlogAtMs[dpRank] = Math.max(atMs, nowMs);
  }

  /** Takes a complete request off, until the next report does. */
  onComplete(dpRank: number, tokens: number, tookMs: number, wasReported: boolean): void {
    if (tookMs > 0) this.#durationMs += (tookMs - this.#durationMs) * NEW_DURATION;
    if (!wasReported) return; // it was in the ledger's numbers, and is gone there
    this.doneRequests[dpRank]! += 1;
    this.#doneTokens[dpRank]! += tokens;
  }

  /** Estimates all ranks, for a request of that many tokens. */
  estimate(tokens: number, nowMs: number): void {
    const { msPerToken, maxRequests, maxTokens } = this.#reports;
    const { pending, pendingTokens } = this.#ledger;
    let sumMs = 0;
    for (let rank = 0; rank < msPerToken.length; rank++) sumMs += msPerToken[rank]!;
    const meanMs = sumMs / msPerToken.length;
    let pendingMs = 0;
    for (let rank = 0; rank < this.waitMs.length; rank++) {
      const elapsedMs = Math.max(0, nowMs - this.#backlogAtMs[rank]!);
      const backlogMs = Math.max(0, this.#backlogMs[rank]! - elapsedMs);
      const requests = pending[rank]! +
        Math.max(0, this.#reports.requests[rank]! - this.doneRequests[rank]!);
      const held = pendingTokens[rank]! +
        Math.max(0, this.#reports.tokens[rank]! - this.#doneTokens[rank]!);
      const most = maxRequests[rank]!;
      const pool = maxTokens[rank]!;
      // A place comes free each time that one of those who run is complete.
      const forPlaceMs = most > 0
        ? Math.max(0, requests + 1 - most) * (this.#durationMs / most)
        : 0;
      const forRoomMs = pool > 0
        ? Math.max(0, held + tokens - pool) * (this.#durationMs / pool)
        : 0;
      const waitMs = Math.max(backlogMs, forPlaceMs, forRoomMs);
      const fill = requests / (most > 0 ? most : USUAL_MAX_REQUESTS) +
        (pool > 0 ? held / pool : 0);
      pendingMs += pendingTokens[rank]! * msPerToken[rank]!;
      const ownMs = msPerToken[rank]!;
      const tokenMs = ownMs > meanMs * UNLIKE || ownMs * UNLIKE < meanMs ? ownMs : meanMs;
      this.requests[rank] = requests;
      this.tokens[rank] = held;
      this.waitMs[rank] = waitMs;
      this.costMs[rank] = waitMs + tokens * tokenMs + fill * (FULL_MS / 2);
    }
    this.pendingMs = pendingMs;
    this.requestMs = tokens * meanMs;
  }
}
