/** The choice by expected wait: who takes part, whose hint is followed, and who gets it. */

import { Candidates } from "./choice.ts";
import type { CheckedOptions, DispatchOptions } from "./dispatch_options.ts";
import type { ExpectedWait } from "./expected_wait.ts";
import type { DispatchReason } from "./explanation.ts";
import { hashKey, rendezvousRank } from "./prefix_affinity.ts";
import { CANDIDATE, NOT_SAMPLED, type RankStandings, RETURNING } from "./rank_standing.ts";

/** Of what others send while our own is pending, about so much is still there. */
const UNSEEN_SHARE = 0.5;

/** Where others choose unseen among more ranks than this, the same few must not look best to all. */
const LARGE_GROUP = 16;

/** So many of a large group are compared. */
const FEW = 4;

/** Makes choices, and remembers what the last one went by. */
export class WaitChoice {
  /** What decided the last choice. */
  reason: DispatchReason = "least";
  /** Work that others were taken to have sent unseen, at the last choice, in ms. */
  unseenMs = 0;
  readonly #options: CheckedOptions;
  readonly #standings: RankStandings;
  readonly #wait: ExpectedWait;
  readonly #candidates: Candidates;

  constructor(options: CheckedOptions, standings: RankStandings, wait: ExpectedWait) {
    this.#options = options;
    this.#standings = standings;
    this.#wait = wait;
    this.#candidates = new Candidates(Float64Array.from(options.weights));
  }

  /**
   * Chooses by the waits that were estimated last.
   *
   * @param options What is known of the request.
   * @param othersPerOwn How many requests others send for each one that is sent from here.
   * @param nowMs The time.
   * @returns The rank, or -1 if none can be chosen.
   */
  choose(options: DispatchOptions, othersPerOwn: number, nowMs: number): number {
    const { choices, random } = this.#options;
    const candidates = this.#candidates;
    const { costMs, pendingMs, requestMs } = this.#wait;
    this.unseenMs = 0;
    if (this.#standings.judge(nowMs) === 0) return -1;
    this.#gather(nowMs);
    const hinted = this.#hinted(options);
    if (hinted >= 0) return hinted;
    // Ranks that one unseen request would make equal are taken as equal.
    let unseenMs = UNSEEN_SHARE * othersPerOwn * (pendingMs + requestMs) +
      Math.min(1, othersPerOwn) * requestMs * candidates.count;
    const few = choices ?? (othersPerOwn > 0 && candidates.count > LARGE_GROUP ? FEW : Infinity);
    if (few < candidates.count) {
      unseenMs *= few / candidates.count;
      this.#sample(few);
    }
    this.unseenMs = unseenMs;
    this.reason = unseenMs > 0 && candidates.count > 1 ? "spread" : "least";
    return candidates.fill(costMs, unseenMs, requestMs, random);
  }

  /** Takes in all ranks that are live; one that was away takes part only as often as its share. */
  #gather(nowMs: number): void {
    const { standings } = this.#standings;
    const candidates = this.#candidates;
    candidates.count = 0;
    for (let rank = 0; rank < standings.length; rank++) {
      if (standings[rank] !== CANDIDATE) continue;
      const share = this.#standings.share(rank, nowMs);
      if (share < 1 && this.#options.random() >= share) standings[rank] = RETURNING;
      else candidates.ranks[candidates.count++] = rank;
    }
    if (candidates.count > 0) return;
    for (let rank = 0; rank < standings.length; rank++) {
      if (standings[rank] !== RETURNING) continue;
      standings[rank] = CANDIDATE;
      candidates.ranks[candidates.count++] = rank;
    }
  }

  /** The rank that a hint names, if it takes part and its load permits; else -1. */
  #hinted({ preferredRank, prefixKey }: DispatchOptions): number {
    if (preferredRank === undefined && prefixKey === undefined) return -1;
    const { ranks, count } = this.#candidates;
    const { standings } = this.#standings;
    let found = -1;
    if (preferredRank !== undefined && standings[preferredRank] === CANDIDATE) {
      found = preferredRank;
      this.reason = "preferred";
    } else if (prefixKey !== undefined) {
      found = rendezvousRank(hashKey(prefixKey), ranks, count);
      this.reason = "prefix";
    }
    if (found < 0) return -1;
    const { waitMs } = this.#wait;
    let least = Infinity;
    for (let n = 0; n < count; n++) least = Math.min(least, waitMs[ranks[n]!]!);
    return waitMs[found]! <= least + this.#options.affinitySlackMs ? found : -1;
  }

  #sample(choices: number): void {
    const { standings } = this.#standings;
    const candidates = this.#candidates;
    for (let n = 0; n < candidates.count; n++) standings[candidates.ranks[n]!] = NOT_SAMPLED;
    candidates.sample(choices, this.#options.random);
    for (let n = 0; n < candidates.count; n++) standings[candidates.ranks[n]!] = CANDIDATE;
  }
}
