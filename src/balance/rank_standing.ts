/** Which ranks may be chosen now: who is live, who was drained, who has just come back. */

import type { RankState } from "../slotfile/rank_health.ts";

/**
 * How a rank stands when a choice is made. Besides what its health says: `"drained"` by the caller;
 * `"returning"`, live again for a short time and passed over this once; `"not_sampled"`, one of
 * a large group that was not looked at this time; `"candidate"`, looked at.
 */
export type RankStanding =
  | "candidate"
  | "not_sampled"
  | "returning"
  | "drained"
  | Exclude<RankState, "live">;

const UNREPORTED = 0;
const LIVE = 1;
const CORRUPT = 2;

const CODES: Readonly<Record<RankState, number>> = {
  unreported: UNREPORTED,
  live: LIVE,
  // Whether a rank is stale is judged when it is asked, for it turns so without a word.
  stale: LIVE,
  corrupt: CORRUPT,
};

/** The states by their code in {@linkcode RankStandings.standings}. */
export const STANDINGS = [
  "candidate",
  "not_sampled",
  "returning",
  "drained",
  "unreported",
  "stale",
  "corrupt",
] as const satisfies readonly RankStanding[];

/** The codes of {@linkcode STANDINGS}. */
export const CANDIDATE = 0;
export const NOT_SAMPLED = 1;
export const RETURNING = 2;
const DRAINED = 3;
const NOT_REPORTED = 4;
const STALE = 5;
const IS_CORRUPT = 6;

/** Dated later than this after now, in ms, the clock was set back. */
const CLOCK_SLACK_MS = 1_000;

/** The standing of each rank. */
export class RankStandings {
  /** 1 for a rank that the caller has drained. */
  readonly drained: Uint8Array;
  /** When each rank's last good report was made, in ms. */
  readonly heardAtMs: Float64Array;
  /** How each rank stood at the last choice, as a place in {@linkcode STANDINGS}. */
  readonly standings: Uint8Array;
  readonly #codes: Uint8Array;
  readonly #backAtMs: Float64Array;
  readonly #wasOut: Uint8Array;
  readonly #staleAfterMs: number;
  readonly #rampMs: number;
  #hadAny = false;

  /**
   * @param dpSize How many ranks.
   * @param staleAfterMs From which age on a report is not worth anything.
   * @param rampMs How long a rank that was away takes until it gets its full share.
   */
  constructor(dpSize: number, staleAfterMs: number, rampMs: number) {
    this.drained = new Uint8Array(dpSize);
    this.heardAtMs = new Float64Array(dpSize).fill(-Infinity);
    this.standings = new Uint8Array(dpSize).fill(NOT_REPORTED);
    this.#codes = new Uint8Array(dpSize);
    this.#backAtMs = new Float64Array(dpSize).fill(-Infinity);
    this.#wasOut = new Uint8Array(dpSize);
    this.#staleAfterMs = staleAfterMs;
    this.#rampMs = rampMs;
  }

  /** Notes what a rank's health is. */
  note(dpRank: number, state: RankState, heardAtMs: number): void {
    this.#codes[dpRank] = CODES[state];
    this.heardAtMs[dpRank] = heardAtMs;
  }

  /** The share that a rank may have of what it would get: below 1 while it is returning. */
  share(dpRank: number, nowMs: number): number {
    const sinceMs = nowMs - this.#backAtMs[dpRank]!;
    if (!(sinceMs >= 0 && sinceMs < this.#rampMs)) return 1;
    return Math.max(0.05, sinceMs / this.#rampMs);
  }

  /** Sets {@linkcode standings} for now; returns how many ranks could be chosen. */
  judge(nowMs: number): number {
    const { standings, heardAtMs } = this;
    let usable = 0;
    for (let rank = 0; rank < standings.length; rank++) {
      // A clock that was set back must not make a report young for ever.
      if (heardAtMs[rank]! > nowMs + CLOCK_SLACK_MS) heardAtMs[rank] = nowMs;
      const code = this.#codes[rank]!;
      const fault = code === UNREPORTED
        ? NOT_REPORTED
        : code === CORRUPT
        ? IS_CORRUPT
        : nowMs - heardAtMs[rank]! > this.#staleAfterMs
        ? STALE
        : CANDIDATE;
      if (fault !== CANDIDATE) this.#wasOut[rank] = 1;
      else if (this.#wasOut[rank] === 1) {
        this.#wasOut[rank] = 0;
        // At the very start all ranks come at once or one after the other: nobody was away.
        if (this.#hadAny) this.#backAtMs[rank] = nowMs;
      }
      const standing = fault === CANDIDATE && this.drained[rank] === 1 ? DRAINED : fault;
      standings[rank] = standing;
      if (standing === CANDIDATE) usable++;
    }
    if (usable > 0) this.#hadAny = true;
    return usable;
  }
}
