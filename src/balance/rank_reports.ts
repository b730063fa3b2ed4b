/** What each rank reported last, as far as it can be believed. */

import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";

/** More than this is no number of requests that one rank has. */
const MOST_REQUESTS = 1e7;

/** More than this is no number of tokens that one rank has. */
const MOST_TOKENS = 1e12;

/** Where the engine does not say how many may run, so many count as full. */
const USUAL_PLACES = 128;

/** Prefill time per token beyond these bounds, in ms, is not believed. */
const MS_PER_TOKEN = { least: 1e-5, most: 10 } as const;

/** A turn of a rank's loop that takes longer, in ms, is not allowed for. */
const LONGEST_TURN_MS = 1_000;

/** What a rank says of itself at the newest reports counts for more. */
const KEEP = 0.9;

/** Prefilled tokens below which a measured speed tells too little. */
const ENOUGH_TOKENS = 1_000;

/** What happened to a report. */
export type ReportOutcome = "taken" | "known" | "refused";

/** The newest report of each rank, in numbers. */
export class RankReports {
  /** Requests that run or wait, by rank. */
  readonly requests: Float64Array;
  /** Tokens in the pool and tokens of prompts that wait, by rank. */
  readonly tokens: Float64Array;
  /** Prompt tokens that are still to be prefilled, by rank. */
  readonly waitingTokens: Float64Array;
  /** Most requests that may run, by rank; infinite where that is not known. */
  readonly maxRequests: Float64Array;
  /** Size of the pool, by rank; infinite where that is not known. */
  readonly maxTokens: Float64Array;
  /** How full a request makes the rank's places, by rank. */
  readonly perRequest: Float64Array;
  /** How full a token makes its pool, by rank. */
  readonly perToken: Float64Array;
  /** How long a token's prefill takes, by rank, in ms: measured where the engine tells, else given. */
  readonly msPerToken: Float64Array;
  /** How long the turn of the rank's loop before its report may have taken, by rank, in ms. */
  readonly turnMs: Float64Array;
  /** Tokens that came to all ranks since the first reports, as far as the engine counts them. */
  arrivedTokens = 0;
  readonly #last: (LoadSnapshot | null)[];
  #sumMsPerToken: number;
  readonly #prefilled: Float64Array;
  readonly #busyUs: Float64Array;
  readonly #sumTokens: Float64Array;
  readonly #sumMs: Float64Array;

  /**
   * @param dpSize How many ranks.
   * @param msPerToken What to assume where the engine does not tell its speed.
   */
  constructor(dpSize: number, msPerToken: number) {
    this.requests = new Float64Array(dpSize);
    this.tokens = new Float64Array(dpSize);
    this.waitingTokens = new Float64Array(dpSize);
    this.maxRequests = new Float64Array(dpSize);
    this.maxTokens = new Float64Array(dpSize);
    this.perRequest = new Float64Array(dpSize);
    this.perToken = new Float64Array(dpSize);
    this.#sumMsPerToken = msPerToken * dpSize;
    this.msPerToken = new Float64Array(dpSize).fill(msPerToken);
    this.turnMs = new Float64Array(dpSize);
    this.#last = Array.from({ length: dpSize }, () => null);
    this.#prefilled = new Float64Array(dpSize).fill(NaN);
    this.#busyUs = new Float64Array(dpSize).fill(NaN);
    this.#sumTokens = new Float64Array(dpSize);
    this.#sumMs = new Float64Array(dpSize);
  }

  /** How long a token's prefill takes on average, in ms. */
  get meanMsPerToken(): number {
    return this.#sumMsPerToken / this.msPerToken.length;
  }

  /** Whether a rank has ever reported. */
  has(dpRank: number): boolean {
    return this.#last[dpRank] !== null;
  }

  /** Takes a rank's report, if it is a new one and holds what it must. */
  take(load: LoadSnapshot): ReportOutcome {
    const { dpRank } = load;
    const last = this.#last[dpRank]!;
    // Without a usable time, another object is another report: readers keep the object.
    const isKnown = last !== null &&
      (load === last || (load.timestamp === last.timestamp && load.timestamp > 0));
    if (isKnown) return "known";
    const requests = amount(load.numRunningReqs, MOST_REQUESTS) +
      amount(load.numWaitingReqs, MOST_REQUESTS);
    const tokens = amount(load.numTotalTokens, MOST_TOKENS);
    if (Number.isNaN(requests + tokens)) return "refused";
    this.#last[dpRank] = load;
    this.requests[dpRank] = requests;
    this.tokens[dpRank] = tokens;
    const waited = this.waitingTokens[dpRank]!;
    this.waitingTokens[dpRank] = waitingTokens(load, tokens);
    const prefilled = load.totalPrefillUncachedTokens - this.#prefilled[dpRank]!;
    // What came is prefilled since, or waits. A restart sets the count back, and passes no more.
    if (prefilled >= 0 && prefilled < MOST_TOKENS) {
      this.arrivedTokens += prefilled + this.waitingTokens[dpRank]! - waited;
    }
    const places = Math.floor(amount(load.maxRunningRequests, MOST_REQUESTS)) || Infinity;
    const pool = Math.floor(amount(load.maxTotalNumTokens, MOST_TOKENS)) || Infinity;
    this.maxRequests[dpRank] = places;
    this.maxTokens[dpRank] = pool;
    this.perRequest[dpRank] = 1 / (places === Infinity ? USUAL_PLACES : places);
    this.perToken[dpRank] = 1 / pool;
    this.#measureTurn(load, last);
    this.#measureSpeed(load);
    return "taken";
  }

  /**
   * A scheduler reports at the end of a turn what it took in at the turn's begin. What was sent to it
   * while a long prefill ran is in the next report, not in this one.
   */
  #measureTurn(load: LoadSnapshot, last: LoadSnapshot | null): void {
    const sinceMs = last === null ? 0 : (load.timestamp - last.timestamp) * 1000;
    const busyMs = (load.totalPrefillBusyUs - this.#busyUs[load.dpRank]!) / 1000;
    // Where the engine does not count its prefills, one may have begun with the report before.
    const turnMs = load.totalPrefillBusyUs > 0 ? Math.min(busyMs, sinceMs) : sinceMs;
    this.turnMs[load.dpRank] = turnMs >= 0 ? Math.min(turnMs, LONGEST_TURN_MS) : 0;
  }

  /** Engines since 2026-08 count what they prefilled, and for how long. */
  #measureSpeed(load: LoadSnapshot): void {
    const { dpRank, totalPrefillUncachedTokens: prefilled, totalPrefillBusyUs: busyUs } = load;
    const tokens = prefilled - this.#prefilled[dpRank]!;
    const ms = (busyUs - this.#busyUs[dpRank]!) / 1000;
    this.#prefilled[dpRank] = prefilled;
    this.#busyUs[dpRank] = busyUs;
    // A restart sets both back; neither NaN nor that passes here.
    if (!(tokens > 0 && ms > 0 && tokens < MOST_TOKENS)) return;
    const sumTokens = this.#sumTokens[dpRank]! * KEEP + tokens;
    const sumMs = this.#sumMs[dpRank]! * KEEP + ms;
    this.#sumTokens[dpRank] = sumTokens;
    this.#sumMs[dpRank] = sumMs;
    const msPerToken = sumMs / sumTokens;
    const isBelievable = msPerToken >= MS_PER_TOKEN.least && msPerToken <= MS_PER_TOKEN.most;
    if (!isBelievable || sumTokens < ENOUGH_TOKENS) return;
    this.#sumMsPerToken += msPerToken - this.msPerToken[dpRank]!;
    this.msPerToken[dpRank] = msPerToken;
  }
}

/** A number of things that can be, or NaN. */
export function amount(value: number, most: number): number {
  return value >= 0 && value <= most ? value : NaN;
}

/** The engine's own number of uncached tokens, which older ones do not send, or the pool's. */
function waitingTokens(load: LoadSnapshot, tokens: number): number {
  if (load.numWaitingReqs === 0) return amount(load.numWaitingUncachedTokens, MOST_TOKENS) || 0;
  const pending = amount(load.numWaitingUncachedTokens, MOST_TOKENS) || 0;
  if (pending > 0) return pending;
  const used = amount(load.numUsedTokens, MOST_TOKENS);
  return Number.isNaN(used) ? 0 : Math.max(0, tokens - used);
}
