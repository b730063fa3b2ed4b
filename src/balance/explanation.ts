/** Why a rank was chosen: what each one counted for. */

import type { DispatchLedger } from "./dispatch_ledger.ts";
import type { DispatchMethod } from "./dispatch_options.ts";
import type { ExpectedWait } from "./expected_wait.ts";
import { makeMoment, type Moment, NOW_MS, UNSEEN_MS } from "./moment.ts";
import { type RankStanding, type RankStandings, STANDINGS } from "./rank_standing.ts";
import type { WaitChoice } from "./wait_choice.ts";

/**
 * What decided a choice:
 *
 * - `"least"`: no other rank costs less.
 * - `"spread"`: others choose unseen, so it was drawn among the ranks that will fill up.
 * - `"preferred"`, `"prefix"`: it holds the prefix, and its load permitted it.
 * - `"fallback"`: no rank could be chosen, and it was its turn.
 * - `"turn"`: round robin.
 */
export type DispatchReason = "least" | "spread" | "preferred" | "prefix" | "fallback" | "turn";

/** What one rank counted for. */
export interface RankExplanation {
  /** The rank, from 0. */
  readonly dpRank: number;
  /** How it stood. */
  readonly standing: RankStanding;
  /** Requests that it should have had, those included that no report held yet. */
  readonly requests: number;
  /** Tokens that it should have had, in its pool and waiting. */
  readonly tokens: number;
  /** Requests that were sent to it and that no report held yet. */
  readonly pending: number;
  /**
   * How long the request was expected to wait there, in milliseconds; `null` for a rank that was not
   * looked at, and with SGLang's methods.
   */
  readonly waitMs: number | null;
  /** What ranks were compared by, in milliseconds; `null` where the wait is. */
  readonly costMs: number | null;
  /** How old its report was, in milliseconds; `null` without one. */
  readonly ageMs: number | null;
}

/** Why a rank was chosen. */
export interface DispatchExplanation {
  /** The method. */
  readonly method: DispatchMethod;
  /** The rank that was chosen. */
  readonly dpRank: number;
  /** What decided. */
  readonly reason: DispatchReason;
  /** The time of the choice, in milliseconds. */
  readonly atMs: number;
  /** What the request was taken to bring, in tokens. */
  readonly estimatedTokens: number;
  /** Work that other routers were taken to have sent unseen, in milliseconds of prefill. */
  readonly unseenMs: number;
  /** What each rank counted for, in order. */
  readonly ranks: readonly RankExplanation[];
}

/** Up to so many numbers, a loop is faster than calls of `set`. */
const FEW = 32;

/**
 * Says why the last choice was made. Waits stay where they are until the next choice; counts go on
 * at once, so they are kept here, in arrays that are there already.
 */
export class Explainer {
  readonly #wait: ExpectedWait;
  readonly #standings: RankStandings;
  readonly #choice: WaitChoice;
  readonly #requests: Float64Array;
  readonly #tokens: Float64Array;
  readonly #pending: Float64Array;
  readonly #heardAtMs: Float64Array;
  /** The shared numbers as they were at the choice. */
  readonly #moment: Moment = makeMoment();
  #method: DispatchMethod | null = null;
  #reason: DispatchReason = "least";
  #dpRank = 0;
  #tokensOfRequest = 0;

  /**
   * @param dpSize How many ranks.
   * @param wait Where the waits stand.
   * @param standings Where it stands how ranks are.
   * @param choice Who chose by wait.
   */
  constructor(dpSize: number, wait: ExpectedWait, standings: RankStandings, choice: WaitChoice) {
    this.#wait = wait;
    this.#standings = standings;
    this.#choice = choice;
    this.#requests = new Float64Array(dpSize);
    this.#tokens = new Float64Array(dpSize);
    this.#pending = new Float64Array(dpSize);
    this.#heardAtMs = new Float64Array(dpSize);
  }

  /** Keeps the counts that a choice went by. */
  keepCounts(requests: Float64Array, tokens: Float64Array, ledger: DispatchLedger): void {
    const { pending } = ledger;
    const { heardAtMs } = this.#standings;
    if (requests.length > FEW) {
      this.#requests.set(requests);
      this.#tokens.set(tokens);
      this.#pending.set(pending);
      this.#heardAtMs.set(heardAtMs);
      return;
    }
    const toRequests = this.#requests;
    const toTokens = this.#tokens;
    const toPending = this.#pending;
    const toHeardAtMs = this.#heardAtMs;
    for (let rank = 0; rank < requests.length; rank++) {
      toRequests[rank] = requests[rank]!;
      toTokens[rank] = tokens[rank]!;
      toPending[rank] = pending[rank]!;
      toHeardAtMs[rank] = heardAtMs[rank]!;
    }
  }

  /** Keeps what the choice was. */
  keepChoice(method: DispatchMethod, dpRank: number, tokens: number, moment: Moment): void {
    this.#method = method;
    this.#reason = this.#choice.reason;
    this.#dpRank = dpRank;
    this.#tokensOfRequest = tokens;
    this.#moment[NOW_MS] = moment[NOW_MS]!;
    this.#moment[UNSEEN_MS] = moment[UNSEEN_MS]!;
  }

  /** Forgets the last choice: there was none this time. */
  keepNone(): void {
    this.#method = null;
  }

  /** Says it in objects. */
  explain(): DispatchExplanation | null {
    const method = this.#method;
    if (method === null) return null;
    const isByWait = method === "expected_wait";
    return {
      method,
      dpRank: this.#dpRank,
      reason: this.#reason,
      atMs: this.#moment[NOW_MS]!,
      estimatedTokens: this.#tokensOfRequest,
      unseenMs: isByWait ? this.#moment[UNSEEN_MS]! : 0,
      ranks: Array.from(this.#requests, (_, dpRank) => this.#explainRank(dpRank, isByWait)),
    };
  }

  #explainRank(dpRank: number, isByWait: boolean): RankExplanation {
    const standing = STANDINGS[this.#standings.standings[dpRank]!]!;
    const isLooked = standing === "candidate" && isByWait && this.#choice.isCandidate(dpRank);
    const heardAtMs = this.#heardAtMs[dpRank]!;
    return {
      dpRank,
      standing: standing === "candidate" && isByWait && !isLooked ? "not_sampled" : standing,
      requests: this.#requests[dpRank]!,
      tokens: this.#tokens[dpRank]!,
      pending: this.#pending[dpRank]!,
      waitMs: isLooked ? this.#wait.waitMs[dpRank]! : null,
      costMs: isLooked ? this.#wait.costMs[dpRank]! : null,
      ageMs: heardAtMs === -Infinity ? null : Math.max(0, this.#moment[NOW_MS]! - heardAtMs),
    };
  }
}
