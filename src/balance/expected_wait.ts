/** How long a request that were sent to a rank now would wait for its prefill, for all ranks. */

import type { DispatchLedger } from "./dispatch_ledger.ts";
import { type Moment, NOW_MS, PENDING_MS, REQUEST_MS } from "./moment.ts";
import type { RankReports } from "./rank_reports.ts";

/**
 * What a full rank costs more than an empty one while nobody waits anywhere, in ms. It keeps
 * running requests spread evenly, and is small beside any wait worth avoiding.
 */
const FULL_MS = 100;

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
 *
 * Whatever depends on one rank is brought up to date when something happens to that rank, so that a
 * choice has little to do for each of them.
 */
export class ExpectedWait {
  /** The wait, by rank, in ms, as of the last {@linkcode estimate}. */
  readonly waitMs: Float64Array;
  /** The wait and everything else by which ranks are compared, by rank, in ms, likewise. */
  readonly costMs: Float64Array;
  /** Requests that the rank should have now, by rank. */
  readonly requests: Float64Array;
  /** Tokens that the rank should have now, by rank. */
  readonly tokens: Float64Array;
  /** Requests that were in a rank's report and are complete since, by rank. */
  readonly doneRequests: Float64Array;
  readonly #doneTokens: Float64Array;
  readonly #reports: RankReports;
  readonly #ledger: DispatchLedger;
  readonly #moment: Moment;
  /** When the prefill work that is there will be done, by rank, in ms. */
  readonly #freeAtMs: Float64Array;
  /** The wait for a place, by rank, in ms. */
  readonly #forPlaceMs: Float64Array;
  /** Tokens that fit the pool beside those that are there, by rank. */
  readonly #room: Float64Array;
  /** What being full costs, by rank, in ms. */
  readonly #fullMs: Float64Array;
  #durationMs = USUAL_DURATION_MS;

  constructor(dpSize: number, reports: RankReports, ledger: DispatchLedger, moment: Moment) {
    this.#reports = reports;
    this.#ledger = ledger;
    this.#moment = moment;
    this.waitMs = new Float64Array(dpSize);
    this.costMs = new Float64Array(dpSize);
    this.requests = new Float64Array(dpSize);
    this.tokens = new Float64Array(dpSize);
    this.doneRequests = new Float64Array(dpSize);
    this.#doneTokens = new Float64Array(dpSize);
    this.#freeAtMs = new Float64Array(dpSize);
    this.#forPlaceMs = new Float64Array(dpSize);
    this.#room = new Float64Array(dpSize).fill(Infinity);
    this.#fullMs = new Float64Array(dpSize);
  }

  /** Starts anew from a report: its own backlog, and what was sent too late to be in it. */
  onReport(dpRank: number, reportAtMs: number): void {
    const ledger = this.#ledger;
    const msPerToken = this.#reports.msPerToken[dpRank]!;
    let freeAtMs = reportAtMs + this.#reports.waitingTokens[dpRank]! * msPerToken;
    for (let at = ledger.firstPending(dpRank); at >= 0; at = ledger.nextPending(at)) {
      freeAtMs = Math.max(freeAtMs, ledger.sentAtMs[at]!) + ledger.tokens[at]! * msPerToken;
    }
    this.#freeAtMs[dpRank] = freeAtMs;
    this.doneRequests[dpRank] = 0;
    this.#doneTokens[dpRank] = 0;
    this.#refresh(dpRank);
  }

  /** Adds a request that is sent now, and stands in the ledger already. */
  onDispatch(dpRank: number, tokens: number): void {
    const beginMs = Math.max(this.#freeAtMs[dpRank]!, this.#moment[NOW_MS]!);
    this.#freeAtMs[dpRank] = beginMs + tokens * this.#reports.msPerToken[dpRank]!;
    this.#refresh(dpRank);
  }

  /** Takes a complete request off, until the next report does; it has left the ledger already. */
  onComplete(dpRank: number, tokens: number, sentAtMs: number, wasReported: boolean): void {
    const tookMs = this.#moment[NOW_MS]! - sentAtMs;
    if (tookMs > 0) this.#durationMs += (tookMs - this.#durationMs) * NEW_DURATION;
    if (wasReported) { // else it was in the ledger's numbers, and is gone there
      this.doneRequests[dpRank]! += 1;
      this.#doneTokens[dpRank]! += tokens;
    }
    this.#refresh(dpRank);
  }

  /** Estimates some ranks now, for a request of that many tokens. */
  estimate(tokens: number, ranks: Uint16Array, count: number): void {
    const { waitMs, costMs } = this;
    const { msPerToken, perToken, meanMsPerToken } = this.#reports;
    const freeAtMs = this.#freeAtMs;
    const forPlaceMs = this.#forPlaceMs;
    const fullMs = this.#fullMs;
    const rooms = this.#room;
    const nowMs = this.#moment[NOW_MS]!;
    const usualMs = tokens * meanMsPerToken;
    const slowMs = meanMsPerToken * UNLIKE;
    const fastMs = meanMsPerToken / UNLIKE;
    for (let n = 0; n < count; n++) {
      const rank = ranks[n]!;
      const backlogMs = freeAtMs[rank]! - nowMs;
      let wait = forPlaceMs[rank]!;
      if (backlogMs > wait) wait = backlogMs;
      const room = rooms[rank]!;
      if (tokens > room) {
        // Room comes free as those who have it are complete.
        wait = Math.max(wait, (tokens - room) * perToken[rank]! * this.#durationMs);
      }
      const ownMs = msPerToken[rank]!;
      const workMs = ownMs > slowMs || ownMs < fastMs ? tokens * ownMs : usualMs;
      waitMs[rank] = wait;
      costMs[rank] = wait + workMs + fullMs[rank]!;
    }
  }

  /** Sets what choices among other routers go by, for a request of that many tokens. */
  weigh(tokens: number): void {
    const { meanMsPerToken } = this.#reports;
    this.#moment[PENDING_MS] = this.#ledger.allPendingTokens * meanMsPerToken;
    this.#moment[REQUEST_MS] = tokens * meanMsPerToken;
  }

  #refresh(dpRank: number): void {
    const reports = this.#reports;
    const there = Math.max(0, reports.requests[dpRank]! - this.doneRequests[dpRank]!);
    const held = Math.max(0, reports.tokens[dpRank]! - this.#doneTokens[dpRank]!);
    const requests = this.#ledger.pending[dpRank]! + there;
    const tokens = this.#ledger.pendingTokens[dpRank]! + held;
    const perRequest = reports.perRequest[dpRank]!;
    const beyond = Math.max(0, requests + 1 - reports.maxRequests[dpRank]!);
    this.requests[dpRank] = requests;
    this.tokens[dpRank] = tokens;
    this.#forPlaceMs[dpRank] = beyond * perRequest * this.#durationMs;
    this.#room[dpRank] = reports.maxTokens[dpRank]! - tokens;
    const fill = requests * perRequest + tokens * reports.perToken[dpRank]!;
    this.#fullMs[dpRank] = fill * (FULL_MS / 2);
  }
}
