/** The choice by expected wait: who takes part, whose hint is followed, and who gets it. */

import { Chance } from "./chance.ts";
import { Candidates } from "./choice.ts";
import type { CheckedOptions, DispatchOptions } from "./dispatch_options.ts";
import type { ExpectedWait } from "./expected_wait.ts";
import type { DispatchReason } from "./explanation.ts";
import { type Moment, PENDING_MS, PER_OWN, REQUEST_MS, UNSEEN_MS } from "./moment.ts";
import { hashKey, rendezvousRank } from "./prefix_affinity.ts";
import { CANDIDATE, type RankStandings, RETURNING } from "./rank_standing.ts";

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
  readonly #options: CheckedOptions;
  readonly #standings: RankStandings;
  readonly #wait: ExpectedWait;
  readonly #candidates: Candidates;
  readonly #chance: Chance;
  readonly #moment: Moment;
  #live = 0;

  constructor(
    options: CheckedOptions,
    standings: RankStandings,
    wait: ExpectedWait,
    moment: Moment,
  ) {
    this.#moment = moment;
    this.#options = options;
    this.#chance = new Chance(options.random);
    this.#standings = standings;
    this.#wait = wait;
    this.#candidates = new Candidates(Float64Array.from(options.weights));
  }

  /**
   * Chooses.
   *
   * @param tokens What the request brings.
   * @param options What else is known of it.
   * @returns The rank, or -1 if none can be chosen.
   */
  choose(tokens: number, options: DispatchOptions): number {
    const candidates = this.#candidates;
    const moment = this.#moment;
    const wait = this.#wait;
    moment[UNSEEN_MS] = 0;
    if (!this.#standings.isSettled()) this.gather();
    // The last choice may have taken a sample.
    candidates.count = this.#live;
    if (this.#live === 0) return -1;
    if (options.preferredRank !== undefined || options.prefixKey !== undefined) {
      wait.estimate(tokens, candidates.ranks, candidates.count);
      const hinted = this.#hinted(options);
      if (hinted >= 0) return hinted;
    }
    const othersPerOwn = moment[PER_OWN]!;
    const live = candidates.count;
    const isLarge = othersPerOwn > 0 && live > LARGE_GROUP;
    const few = this.#options.choices ?? (isLarge ? FEW : live);
    if (few < live) candidates.sample(few, this.#chance);
    wait.estimate(tokens, candidates.ranks, candidates.count);
    this.reason = "least";
    if (othersPerOwn > 0 && candidates.count > 1) {
      this.reason = "spread";
      wait.weigh(tokens);
      // Ranks that one unseen request would make equal are taken as equal.
      const perRankMs = Math.min(1, othersPerOwn) * moment[REQUEST_MS]! +
        UNSEEN_SHARE * othersPerOwn * (moment[PENDING_MS]! + moment[REQUEST_MS]!) / live;
      moment[UNSEEN_MS] = perRankMs * candidates.count;
    }
    return candidates.fill(wait.costMs, moment, this.#chance);
  }

  /** Whether a rank was looked at for the last choice. */
  isCandidate(dpRank: number): boolean {
    const { ranks, count } = this.#candidates;
    return ranks.subarray(0, count).includes(dpRank);
  }

  /** Takes in all ranks that are live, and those that are held back only where there is no other. */
  gather(): void {
    this.#standings.judge();
    this.#standings.holdBack(this.#chance);
    const { standings } = this.#standings;
    const { ranks } = this.#candidates;
    let count = 0;
    for (let rank = 0; rank < standings.length; rank++) {
      if (standings[rank] === CANDIDATE) ranks[count++] = rank;
    }
    for (let rank = 0; count === 0 && rank < standings.length; rank++) {
      if (standings[rank] !== RETURNING) continue;
      standings[rank] = CANDIDATE;
      ranks[count++] = rank;
    }
    this.#live = count;
  }

  /** The rank that a hint names, if it takes part and its load permits; else -1. */
  #hinted({ preferredRank, prefixKey }: DispatchOptions): number {
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
}
