/** Why a rank was chosen: what each one counted for. */

import type { DispatchLedger } from "./dispatch_ledger.ts";
import type { DispatchMethod } from "./dispatch_options.ts";
import type { ExpectedWait } from "./expected_wait.ts";
import { type RankStanding, type RankStandings, STANDINGS } from "./rank_standing.ts";
import type { SglangCounts } from "./sglang_counts.ts";
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
  /** How long the request was expected to wait there, in milliseconds; `null` with SGLang's methods. */
  readonly waitMs: number | null;
  /** What ranks were compared by, in milliseconds; `null` with SGLang's methods. */
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

/** Keeps the last choice's numbers in arrays that are there already: nothing is made for it. */
export class Explainer {
  readonly #requests: Float64Array;
  readonly #tokens: Float64Array;
  readonly #pending: Float64Array;
  readonly #waitMs: Float64Array;
  readonly #costMs: Float64Array;
  readonly #heardAtMs: Float64Array;
  readonly #standings: Uint8Array;
  #method: DispatchMethod | null = null;
  #reason: DispatchReason = "least";
  #dpRank = 0;
  #atMs = 0;
  #tokensOfRequest = 0;
  #unseenMs = 0;

  /** @param dpSize How many ranks. */
  constructor(dpSize: number) {
    this.#requests = new Float64Array(dpSize);
    this.#tokens = new Float64Array(dpSize);
    this.#pending = new Float64Array(dpSize);
    this.#waitMs = new Float64Array(dpSize);
    this.#costMs = new Float64Array(dpSize);
    this.#heardAtMs = new Float64Array(dpSize);
    this.#standings = new Uint8Array(dpSize);
  }

  /** Keeps what a choice by expected wait went by. */
  keepWaits(wait: ExpectedWait, choice: WaitChoice): void {
    this.#method = "expected_wait";
    this.#reason = choice.reason;
    this.#unseenMs = choice.unseenMs;
    this.#requests.set(wait.requests);
    this.#tokens.set(wait.tokens);
    this.#waitMs.set(wait.waitMs);
    this.#costMs.set(wait.costMs);
  }

  /** Keeps what a choice by SGLang's counts went by. */
  keepCounts(method: DispatchMethod, counts: SglangCounts): void {
    this.#method = method;
    this.#reason = method === "round_robin" ? "turn" : "least";
    this.#unseenMs = 0;
    this.#requests.set(counts.requests);
    this.#tokens.set(counts.tokens);
  }

  /** Keeps what is the same for both. */
  keepChoice(
    dpRank: number,
    nowMs: number,
    tokens: number,
    ledger: DispatchLedger,
    standings: RankStandings,
  ): void {
    this.#dpRank = dpRank;
    this.#atMs = nowMs;
    this.#tokensOfRequest = tokens;
    this.#pending.set(ledger.pending);
    this.#heardAtMs.set(standings.heardAtMs);
    this.#standings.set(standings.standings);
  }

  /** Says it in objects. */
  explain(): DispatchExplanation | null {
    const method = this.#method;
    if (method === null) return null;
    const byWait = method === "expected_wait";
    return {
      method,
      dpRank: this.#dpRank,
      reason: this.#reason,
      atMs: this.#atMs,
      estimatedTokens: this.#tokensOfRequest,
      unseenMs: this.#unseenMs,
      ranks: Array.from(this.#standings, (code, dpRank): RankExplanation => {
        const heardAtMs = this.#heardAtMs[dpRank]!;
        return {
          dpRank,
          standing: STANDINGS[code]!,
          requests: this.#requests[dpRank]!,
          tokens: this.#tokens[dpRank]!,
          pending: this.#pending[dpRank]!,
          waitMs: byWait ? this.#waitMs[dpRank]! : null,
          costMs: byWait ? this.#costMs[dpRank]! : null,
          ageMs: heardAtMs === -Infinity ? null : Math.max(0, this.#atMs - heardAtMs),
        };
      }),
    };
  }
}
