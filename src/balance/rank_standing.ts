/** Which ranks may be chosen now: who is live, who was drained, who has just come back. */

import { type Chance, CHANCES } from "./chance.ts";
import { type Moment, NOW_MS } from "./moment.ts";
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
export const RETURNING = 2;
const DRAINED = 3;
const UNREPORTED = 4;
const STALE = 5;
const CORRUPT = 6;

/** Besides, a live rank turns stale without a word: that is judged when it is asked. */
const CODES: Readonly<Record<RankState, number>> = {
  unreported: UNREPORTED,
  live: CANDIDATE,
  stale: STALE,
  corrupt: CORRUPT,
};

/** Dated later than this after now, in ms, the clock was set back. */
const CLOCK_SLACK_MS = 1_000;

/** The share that a rank begins with when it is back. */
const LEAST_SHARE = 0.05;

/** The standing of each rank. */
export class RankStandings {
  /** 1 for a rank that the caller has drained. */
  readonly drained: Uint8Array;
  /** When each rank's last good report was made, in ms. */
  readonly heardAtMs: Float64Array;
  /** How each rank stood at the last choice, as a place in {@linkcode STANDINGS}. */
  readonly standings: Uint8Array;
  readonly #moment: Moment;
  readonly #codes: Uint8Array;
  readonly #backAtMs: Float64Array;
  readonly #wasOut: Uint8Array;
  readonly #staleAfterMs: number;
  readonly #rampMs: number;
  #lastBackAtMs = -Infinity;
  #hadAny = false;
  #isJudged = false;
  #judgedAtMs = 0;
  #untilMs = 0;

  /**
   * @param dpSize How many ranks.
   * @param staleAfterMs From which age on a report is not worth anything.
   * @param rampMs How long a rank that was away takes until it gets its full share.
   * @param moment Tells the time.
   */
  constructor(dpSize: number, staleAfterMs: number, rampMs: number, moment: Moment) {
    this.#moment = moment;
    this.drained = new Uint8Array(dpSize);
    this.heardAtMs = new Float64Array(dpSize).fill(-Infinity);
    this.standings = new Uint8Array(dpSize).fill(UNREPORTED);
    this.#codes = new Uint8Array(dpSize).fill(UNREPORTED);
    this.#backAtMs = new Float64Array(dpSize).fill(-Infinity);
    this.#wasOut = new Uint8Array(dpSize);
    this.#staleAfterMs = staleAfterMs;
    this.#rampMs = rampMs;
  }

  /** Leaves a rank out, or takes it in again. */
  drain(dpRank: number, isDrained: boolean): void {
    this.drained[dpRank] = isDrained ? 1 : 0;
    this.#isJudged = false;
  }

  /** Notes what a rank's health is. */
  note(dpRank: number, state: RankState, heardAtMs: number): void {
    this.#codes[dpRank] = CODES[state];
    this.heardAtMs[dpRank] = heardAtMs;
    this.#isJudged = false;
  }

  /** Whether {@linkcode standings} are as they were judged last: nothing has happened or run out. */
  isSettled(): boolean {
    const nowMs = this.#moment[NOW_MS]!;
    return this.#isJudged && nowMs >= this.#judgedAtMs && nowMs <= this.#untilMs;
  }

  /** Sets {@linkcode standings} for now; returns how many ranks could be chosen. */
  judge(): number {
    const { drained, heardAtMs, standings } = this;
    const codes = this.#codes;
    const wasOut = this.#wasOut;
    const nowMs = this.#moment[NOW_MS]!;
    const oldestMs = nowMs - this.#staleAfterMs;
    const newestMs = nowMs + CLOCK_SLACK_MS;
    let usable = 0;
    let eldestMs = Infinity;
    for (let rank = 0; rank < standings.length; rank++) {
      let standing = codes[rank]!;
      const heardMs = heardAtMs[rank]!;
      if (standing === CANDIDATE && heardMs < oldestMs) standing = STALE;
      // A clock that was set back must not make a report young for ever.
      if (heardMs > newestMs) heardAtMs[rank] = nowMs;
      if (standing !== CANDIDATE) wasOut[rank] = 1;
      else {
        eldestMs = Math.min(eldestMs, heardMs);
        if (wasOut[rank] === 1) this.#comeBack(rank, nowMs);
        if (drained[rank] === 1) standing = DRAINED;
        else usable++;
      }
      standings[rank] = standing;
    }
    if (usable > 0) this.#hadAny = true;
    this.#isJudged = true;
    this.#judgedAtMs = nowMs;
    this.#untilMs = eldestMs + this.#staleAfterMs;
    return usable;
  }

  /**
   * Has those that have just come back pass over this time, unless their chance has come. It grows
   * until they have their full share.
   */
  holdBack(chance: Chance): void {
    const { standings } = this;
    const nowMs = this.#moment[NOW_MS]!;
    if (nowMs - this.#lastBackAtMs >= this.#rampMs) return;
    this.#isJudged = false; // the next choice may fall out otherwise
    for (let rank = 0; rank < standings.length; rank++) {
      const sinceMs = nowMs - this.#backAtMs[rank]!;
      if (standings[rank] !== CANDIDATE || !(sinceMs >= 0 && sinceMs < this.#rampMs)) continue;
      const share = Math.max(LEAST_SHARE, sinceMs / this.#rampMs);
      if (chance.next() >= share * CHANCES) standings[rank] = RETURNING;
    }
  }

  #comeBack(dpRank: number, nowMs: number): void {
    this.#wasOut[dpRank] = 0;
    // At the very start all ranks come at once or one after the other: nobody was away.
    if (!this.#hadAny) return;
    this.#backAtMs[dpRank] = nowMs;
    this.#lastBackAtMs = nowMs;
  }
}
