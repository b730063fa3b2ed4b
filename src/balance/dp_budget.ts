/** Which data-parallel rank gets the next request, by loads that come late, wrong or not at all. */

import { type DispatchFault, NoRankAvailableError } from "../errors.ts";
import { type RankHealth, rankHealth } from "../slotfile/rank_health.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { acceptedSeq } from "./accepted_seq.ts";
import { DispatchLedger } from "./dispatch_ledger.ts";
import {
  type CheckedOptions,
  checkOptions,
  type DispatchMethod,
  type DispatchOptions,
  type DpBudgetOptions,
  type UpdateOptions,
} from "./dispatch_options.ts";
import { ExpectedWait } from "./expected_wait.ts";
import { type DispatchExplanation, Explainer } from "./explanation.ts";
import { makeMoment, type Moment, NOW_MS } from "./moment.ts";
import { OtherRouters } from "./other_routers.ts";
import { amount, RankReports } from "./rank_reports.ts";
import { RankStandings, STANDINGS } from "./rank_standing.ts";
import { SglangCounts } from "./sglang_counts.ts";
import { WaitChoice } from "./wait_choice.ts";

/** One request does not bring more; what is estimated beyond is not believed. */
const MOST_TOKENS = 1e9;

/** What a request brings until the first estimates are known, in tokens. */
const USUAL_TOKENS = 512;

/** The newest estimates count for more. */
const NEW_TOKENS = 0.02;

const NO_OPTIONS: DispatchOptions & UpdateOptions = {};

/** What a budget has done so far. Counts start at 0 and only grow, but for `outstanding`. */
export interface DpBudgetStats {
  /** Requests that were given a rank. */
  readonly dispatches: number;
  /** Requests that were reported as complete. */
  readonly completed: number;
  /** Requests that are remembered: sent, and neither complete nor forgotten. */
  readonly outstanding: number;
  /** Requests that were forgotten because newer ones took their place. */
  readonly forgotten: number;
  /** Reports that held something new. */
  readonly reports: number;
  /** Reports of no known rank, or without usable numbers. */
  readonly refused: number;
  /** Choices that were made in turn because no rank was live. */
  readonly fallbacks: number;
}

/**
 * Chooses a rank for each request.
 *
 * The reports of the ranks are late, and between two of them a burst of requests can come. So a
 * budget keeps a ledger of what it sent: a report does not wipe out what it cannot hold yet. From
 * report and ledger it follows how long a request would wait at each rank; it takes the least, or
 * draws among the low ones where other routers choose unseen. Ranks that are stale, corrupt or
 * unreported get nothing, and those that come back get their share by and by.
 *
 * It does nothing by itself: no timer, no I/O; the time comes with each call, or from
 * `options.now`. All its memory is taken at the start.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot, DpBudget } from "./mod.ts";
 *
 * const budget = new DpBudget(2);
 * const timestamp = Date.now() / 1000;
 * budget.update([
 *   createLoadSnapshot({ timestamp, dpRank: 0, numRunningReqs: 9, maxRunningRequests: 32 }),
 *   createLoadSnapshot({ timestamp, dpRank: 1, numRunningReqs: 2, maxRunningRequests: 32 }),
 * ]);
 * console.log(budget.dispatch("expected_wait", { estimatedTokens: 800 })); // 1
 * budget.complete(budget.lastTicket); // when the answer is through
 * ```
 */
export class DpBudget {
  /** How many ranks the group has. */
  readonly dpSize: number;
  readonly #options: CheckedOptions;
  readonly #moment: Moment = makeMoment();
  readonly #counts: SglangCounts;
  readonly #reports: RankReports;
  readonly #ledger: DispatchLedger;
  readonly #standings: RankStandings;
  readonly #wait: ExpectedWait;
  readonly #others: OtherRouters;
  readonly #choice: WaitChoice;
  readonly #explainer: Explainer;
  /** 1 for ranks with a new report, and 2 for those whose report was refused, during an update. */
  readonly #news: Uint8Array;
  /** By rank, during an update: what the engine says that it has accepted, or NaN. */
  readonly #accepted: Float64Array;
  #usualTokens = USUAL_TOKENS;
  #completed = 0;
  #taken = 0;
  #refused = 0;
  #fallbacks = 0;

  /**
   * Makes a budget for a group of ranks.
   *
   * @param dpSize How many ranks, 1..65535.
   * @param options What else it can be told.
   * @throws {RangeError} If a number is out of range.
   */
  constructor(dpSize: number, options: DpBudgetOptions = {}) {
    this.#options = checkOptions(dpSize, options);
    this.dpSize = dpSize;
    this.#counts = new SglangCounts(dpSize);
    this.#reports = new RankReports(dpSize, this.#options.prefillMsPerToken);
    this.#ledger = new DispatchLedger(dpSize, this.#options.ledgerSize, this.#moment);
    this.#standings = new RankStandings(
      dpSize,
      this.#options.staleAfterMs,
      this.#options.rampMs,
      this.#moment,
    );
    this.#wait = new ExpectedWait(dpSize, this.#reports, this.#ledger, this.#moment);
    this.#others = new OtherRouters(this.#options.routers, this.#moment);
    this.#choice = new WaitChoice(this.#options, this.#standings, this.#wait, this.#moment);
    this.#explainer = new Explainer(dpSize, this.#wait, this.#standings, this.#choice);
    this.#news = new Uint8Array(dpSize);
    this.#accepted = new Float64Array(dpSize);
  }

  /** The ticket of the last dispatch, from 1, for {@linkcode complete}; 0 before the first. */
  get lastTicket(): number {
    return this.#ledger.lastTicket;
  }

  /**
   * Takes what the ranks report. A report that was taken before changes nothing.
   *
   * @param loads The newest report of any number of ranks, in any order. Those of ranks that the
   *   group does not have, and those with numbers that cannot be (NaN, negative, beyond all
   *   measure), are no information: they are counted and left.
   * @param options What the reader says of the ranks' health, and the time.
   */
  update(loads: readonly LoadSnapshot[], options: UpdateOptions = NO_OPTIONS): void {
    this.#setTime(options.nowMs);
    const nowMs = this.#moment[NOW_MS]!;
    const { health } = options;
    let hasNews = false;
    for (let n = 0; n < loads.length; n++) {
      if (this.#take(loads[n]!, health !== undefined, nowMs)) hasNews = true;
    }
    if (health !== undefined) {
      for (let n = 0; n < health.length; n++) this.#note(health[n]!, nowMs);
    }
    for (let rank = 0; rank < this.dpSize; rank++) {
      const isNew = this.#news[rank] === 1;
      this.#news[rank] = 0;
      if (isNew) this.#settle(rank, nowMs);
    }
    if (hasNews) this.#others.look(this.#reports, this.#ledger, this.#wait.doneRequests);
  }

  /**
   * Chooses the rank for a request, and enters it there. Its ticket is {@linkcode lastTicket}.
   *
   * @param method How to choose.
   * @param options What is known of the request, and the time.
   * @returns The rank.
   * @throws {NoRankAvailableError} If none can be chosen; with `whenNone: "round_robin"`, and with
   *   SGLang's methods, only if all are drained.
   */
  dispatch(
    method: DispatchMethod = "expected_wait",
    options: DispatchOptions = NO_OPTIONS,
  ): number {
    this.#setTime(options.nowMs);
    const given = amount(options.estimatedTokens ?? NaN, MOST_TOKENS);
    // Without an estimate SGLang counts no tokens; here, a request that says nothing is a usual one.
    const isKnown = !Number.isNaN(given);
    if (isKnown) this.#usualTokens += (given - this.#usualTokens) * NEW_TOKENS;
    const tokens = isKnown ? Math.round(given) : Math.round(this.#usualTokens);
    const dpRank = method === "expected_wait"
      ? this.#leastWait(tokens, options)
      : this.#asSglang(method);
    if (dpRank < 0) {
      this.#explainer.keepNone();
      throw new NoRankAvailableError(this.#faults());
    }
    this.#explainer.keepChoice(method, dpRank, tokens, this.#moment);
    if (method !== "round_robin") this.#counts.add(dpRank, isKnown ? given : 0);
    this.#ledger.add(dpRank, tokens);
    this.#wait.onDispatch(dpRank, tokens);
    return dpRank;
  }

  /**
   * Says that a request is complete, failed or given up: it is not on its rank any more. Where
   * completions are known, waits are estimated better; without, the reports tell in their time.
   *
   * @param ticket The {@linkcode lastTicket} of its dispatch.
   * @param nowMs The time, in milliseconds since 1970.
   * @returns Whether it was known: `false` the second time, or when it was forgotten meanwhile.
   */
  complete(ticket: number, nowMs?: number): boolean {
    this.#setTime(nowMs);
    const wasReported = this.#ledger.isReported(ticket);
    const place = this.#ledger.complete(ticket);
    if (place < 0) return false;
    this.#completed++;
    const { sentAtMs, tokens } = this.#ledger;
    const dpRank = this.#ledger.rankAt(place);
    this.#wait.onComplete(
      dpRank,
      tokens[place]!,
      sentAtMs[place]!,
      wasReported,
    );
    this.#others.onComplete();
    return true;
  }

  /**
   * Gives a rank no more requests, whatever the method. Those that it has are not touched.
   *
   * @throws {RangeError} If the group has no such rank.
   */
  drain(dpRank: number): void {
    this.#standings.drain(this.#checkRank(dpRank), true);
  }

  /**
   * Takes a rank in again.
   *
   * @throws {RangeError} If the group has no such rank.
   */
  undrain(dpRank: number): void {
    this.#standings.drain(this.#checkRank(dpRank), false);
  }

  /** Whether a rank is drained. */
  isDrained(dpRank: number): boolean {
    return this.#standings.drained[this.#checkRank(dpRank)] === 1;
  }

  /**
   * Tells for the last dispatch what each rank counted for; `null` before the first, and after one
   * that found no rank: its error tells why.
   */
  explain(): DispatchExplanation | null {
    return this.#explainer.explain();
  }

  /** Tells what was done so far. */
  stats(): DpBudgetStats {
    const { pending, reported, lastTicket, forgotten } = this.#ledger;
    let outstanding = 0;
    for (let rank = 0; rank < this.dpSize; rank++) outstanding += pending[rank]! + reported[rank]!;
    return {
      dispatches: lastTicket,
      completed: this.#completed,
      outstanding,
      forgotten,
      reports: this.#taken,
      refused: this.#refused,
      fallbacks: this.#fallbacks,
    };
  }

  #take(load: LoadSnapshot, hasHealth: boolean, nowMs: number): boolean {
    const { dpRank } = load;
    if (!(Number.isInteger(dpRank) && dpRank >= 0 && dpRank < this.dpSize)) {
      this.#refused++;
      return false;
    }
    this.#counts.update(load);
    const outcome = this.#reports.take(load);
    if (outcome === "known") return false;
    if (outcome === "refused") {
      this.#refused++;
      this.#news[dpRank] = 2;
      return false;
    }
    this.#taken++;
    this.#news[dpRank] = 1;
    const isExact = this.#options.acknowledgement === "dispatch_seq";
    this.#accepted[dpRank] = isExact ? acceptedSeq(load, this.#ledger.lastTicket) : NaN;
    if (!hasHealth) {
      const { staleAfterMs } = this.#options;
      this.#note(
        rankHealth({
          dpRank,
          snapshot: load,
          seenForMs: 0,
          fault: null,
          wallMs: nowMs,
          staleAfterMs,
        }),
        nowMs,
      );
    }
    return true;
  }

  #note({ dpRank, state, ageMs }: RankHealth, nowMs: number): void {
    if (!(Number.isInteger(dpRank) && dpRank >= 0 && dpRank < this.dpSize)) return;
    // What its report says is worth nothing, so that it came says nothing either.
    if (this.#news[dpRank] === 2 && state !== "corrupt") return;
    const isUsable = ageMs !== null && !Number.isNaN(ageMs) && this.#reports.has(dpRank);
    if (isUsable) this.#standings.note(dpRank, state, nowMs - Math.max(0, ageMs));
    else this.#standings.note(dpRank, state === "corrupt" ? state : "unreported", -Infinity);
  }

  /** Takes what a new report can hold out of the pending, and the rest for the way there. */
  #settle(dpRank: number, nowMs: number): void {
    const reportAtMs = Math.min(nowMs, this.#standings.heardAtMs[dpRank]!);
    const accepted = this.#accepted[dpRank]!;
    const isExact = !Number.isNaN(accepted);
    this.#ledger.settle(
      dpRank,
      isExact ? -Infinity : reportAtMs - this.#options.reportLagMs - this.#reports.turnMs[dpRank]!,
      isExact ? accepted : 0,
      nowMs,
    );
    this.#wait.onReport(dpRank, reportAtMs === -Infinity ? nowMs : reportAtMs);
  }

  #leastWait(tokens: number, options: DispatchOptions): number {
    let found = this.#choice.choose(tokens, options);
    if (found < 0 && this.#options.whenNone === "round_robin") {
      found = this.#counts.next(this.#standings.drained);
      if (found >= 0) this.#fallbacks++;
      this.#choice.reason = "fallback";
    }
    this.#explainer.keepCounts(this.#wait.requests, this.#wait.tokens, this.#ledger);
    return found;
  }

  #asSglang(method: Exclude<DispatchMethod, "expected_wait">): number {
    const { drained } = this.#standings;
    const counts = this.#counts;
    if (!this.#standings.isSettled()) this.#choice.gather(); // told, and not gone by
    const found = method === "round_robin"
      ? counts.next(drained)
      : method === "total_requests"
      ? counts.leastRequests(drained)
      : counts.leastTokens(drained);
    this.#choice.reason = method === "round_robin" ? "turn" : "least";
    this.#explainer.keepCounts(counts.requests, counts.tokens, this.#ledger);
    return found;
  }

  #faults(): DispatchFault[] {
    this.#choice.gather();
    return Array.from(this.#standings.standings, (code, rank) => {
      const standing = STANDINGS[code]!;
      if (this.#standings.drained[rank] === 1) return "drained";
      return standing === "unreported" || standing === "corrupt" ? standing : "stale";
    });
  }

  /** Takes the time of a call; one that cannot be is taken for the last one. */
  #setTime(nowMs: number | undefined): void {
    const given = nowMs ?? this.#options.now();
    if (given >= 0 && given <= Number.MAX_SAFE_INTEGER) this.#moment[NOW_MS] = given;
  }

  #checkRank(dpRank: number): number {
    if (Number.isInteger(dpRank) && dpRank >= 0 && dpRank < this.dpSize) return dpRank;
    throw new RangeError(`Cannot use dpRank ${dpRank}: not in 0..${this.dpSize - 1}`);
  }
}
