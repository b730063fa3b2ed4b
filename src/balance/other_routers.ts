/** How much other routers send to the same ranks, seen from what the ranks report. */

import type { DispatchLedger } from "./dispatch_ledger.ts";
import { type Moment, PER_OWN } from "./moment.ts";
import type { RankReports } from "./rank_reports.ts";

/** The newest comparison counts for more; one is made per update that brought a report. */
const NEW_SHARE = 0.1;

/** Of the sums of what came and what was sent, so much is let go with each comparison. */
const LOST_SUM = 0.002;

/** Below this, what the ranks have more than was sent is taken for requests just under way. */
const LEAST_SHARE = 0.15;

/** What came is seen later than what was sent, and by bursts: it has to differ by more. */
const LEAST_ARRIVED_SHARE = 0.4;

/** No more than this: beyond, choices are as good as random anyway. */
const MOST_SHARE = 1_000;

/**
 * Compares what the ranks have with what was sent to them from here. Where completions are known,
 * requests are compared; else the tokens that came, where the engine counts those.
 */
export class OtherRouters {
  readonly #given: number | null;
  readonly #moment: Moment;
  #ownRequests = 0;
  #allRequests = 0;
  #ownTokens = 0;
  #allTokens = 0;
  #sentTokens = 0;
  #arrivedTokens = 0;
  #hasCompletions = false;

  /**
   * @param routers How many there are, this one included; `null` to find out.
   * @param moment Is told how many requests others send for each one that is sent from here.
   */
  constructor(routers: number | null, moment: Moment) {
    this.#given = routers;
    this.#moment = moment;
    if (routers !== null) moment[PER_OWN] = routers - 1;
  }

  /** Completions are reported: what was sent can be told from what is there. */
  onComplete(): void {
    this.#hasCompletions = true;
  }

  /**
   * Compares anew, after reports.
   *
   * @param done By rank, what was complete since its report.
   */
  look(reports: RankReports, ledger: DispatchLedger, done: Float64Array): void {
    let own = 0;
    let all = 0;
    for (let rank = 0; rank < ledger.reported.length; rank++) {
      const there = reports.requests[rank]!;
      all += there;
      // What is pending may be in the report already; and more than there is cannot be ours.
      const sent = ledger.reported[rank]! + ledger.pending[rank]! + done[rank]!;
      own += Math.min(there, sent);
    }
    this.#ownRequests += (own - this.#ownRequests) * NEW_SHARE;
    this.#allRequests += (all - this.#allRequests) * NEW_SHARE;
    const sent = ledger.sentTokens - this.#sentTokens;
    const arrived = reports.arrivedTokens - this.#arrivedTokens;
    this.#sentTokens = ledger.sentTokens;
    this.#arrivedTokens = reports.arrivedTokens;
    this.#ownTokens += sent - this.#ownTokens * LOST_SUM;
    this.#allTokens += arrived - this.#allTokens * LOST_SUM;
    if (this.#given === null) this.#moment[PER_OWN] = this.#perOwn();
  }

  #perOwn(): number {
    const share = this.#hasCompletions
      ? (this.#allRequests - this.#ownRequests) / Math.max(0.5, this.#ownRequests)
      : (this.#allTokens - this.#ownTokens) / Math.max(1, this.#ownTokens);
    const least = this.#hasCompletions ? LEAST_SHARE : LEAST_ARRIVED_SHARE;
    return share > least ? Math.min(share, MOST_SHARE) : 0;
  }
}
