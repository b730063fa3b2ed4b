/** Choosing among ranks by their cost: the least one, or at random among those that will fill up. */

import { type Chance, CHANCES } from "./chance.ts";
import { type Moment, REQUEST_MS, UNSEEN_MS } from "./moment.ts";

/** With every choice per rank, so much of what ranks are owed is let go: what was sent is done. */
const LOST_CREDIT = 0.5;

/** The ranks that a choice is made among. Its arrays are made once. */
export class Candidates {
  /** The ranks; the first {@linkcode count} are valid. */
  readonly ranks: Uint16Array;
  /** How many there are. */
  count = 0;
  readonly #credits: Float64Array;
  #hasCredits = false;
  readonly #weights: Float64Array;
  readonly #inverse: Float64Array;
  readonly #most: number;

  /** @param weights How much each rank is to get beside the others. */
  constructor(weights: Float64Array) {
    this.ranks = new Uint16Array(weights.length);
    this.#credits = new Float64Array(weights.length);
    this.#weights = weights;
    this.#inverse = weights.map((weight) => 1 / weight);
    this.#most = weights.reduce((most, weight) => Math.max(most, weight), 0);
  }

  /** Keeps a few at random, those with more weight sooner. */
  sample(few: number, chance: Chance): void {
    const { ranks } = this;
    const all = this.count;
    let kept = 0;
    // A weight far below the largest is drawn rarely, so draws are bounded; then any will do.
    for (let draws = 0; kept < few && draws < few * 16; draws++) {
      const at = kept + chance.index(all - kept);
      const rank = ranks[at]!;
      if (draws < few * 15 && chance.next() * this.#most > this.#weights[rank]! * CHANCES) continue;
      ranks[at] = ranks[kept]!;
      ranks[kept++] = rank;
    }
    this.count = Math.max(1, kept);
  }

  /** The one with the least cost for its weight; one of them at random where several are equal. */
  least(costs: Float64Array, chance: Chance): number {
    const { ranks, count } = this;
    const inverse = this.#inverse;
    let found = ranks[0]!;
    let least = costs[found]! * inverse[found]!;
    let equal = 1;
    for (let n = 1; n < count; n++) {
      const rank = ranks[n]!;
      const cost = costs[rank]! * inverse[rank]!;
      if (cost > least) continue;
      if (cost < least) {
        least = cost;
        found = rank;
        equal = 1;
      } else equal++;
    }
    return equal === 1 ? found : this.#oneOf(chance.index(equal), least, costs);
  }

  /** The n-th of those with that cost for their weight. */
  #oneOf(n: number, least: number, costs: Float64Array): number {
    const { ranks, count } = this;
    const inverse = this.#inverse;
    let left = n;
    for (let at = 0; at < count; at++) {
      const rank = ranks[at]!;
      if (costs[rank]! * inverse[rank]! === least && left-- === 0) return rank;
    }
    return ranks[0]!;
  }

  /**
   * Chooses when others choose too, unseen. Taken together they bring work that fills the lowest
   * ranks up to one level, and each rank is to get its part of that. Drawing lots would be uneven by
   * chance: instead each rank is owed its part of every request's work, and the one that is owed
   * most gets the request. Routers begin with different debts, so they do not go in step. Without
   * unseen work it is the least.
   *
   * @param costs What ranks are compared by, in ms, by rank.
   * @param moment Holds the work that others bring, and that of this request.
   */
  fill(costs: Float64Array, moment: Moment, chance: Chance): number {
    const unseenMs = moment[UNSEEN_MS]!;
    const workMs = moment[REQUEST_MS]!;
    if (!(unseenMs > 0)) return this.least(costs, chance);
    const { ranks, count } = this;
    const weights = this.#weights;
    let level = Infinity;
    // The level sinks as ranks that stand above it are left out, until it leaves out none.
    for (let before = -1, below = 0; below !== before;) {
      before = below;
      below = 0;
      let sumCosts = unseenMs;
      let sumWeights = 0;
      for (let n = 0; n < count; n++) {
        const rank = ranks[n]!;
        if (costs[rank]! >= level * weights[rank]!) continue;
        sumCosts += costs[rank]!;
        sumWeights += weights[rank]!;
        below++;
      }
      if (below > 0) level = sumCosts / sumWeights;
    }
    const credits = this.#credits;
    const kept = 1 - LOST_CREDIT / count;
    if (!this.#hasCredits) {
      this.#hasCredits = true;
      for (let rank = 0; rank < credits.length; rank++) {
        credits[rank] = chance.next() / CHANCES * workMs;
      }
    }
    let found = -1;
    for (let n = 0; n < count; n++) {
      const rank = ranks[n]!;
      const room = level * weights[rank]! - costs[rank]!;
      if (!(room > 0)) continue;
      credits[rank] = credits[rank]! * kept + room / unseenMs * workMs;
      if (found < 0 || credits[rank]! > credits[found]!) found = rank;
    }
    if (found >= 0) credits[found]! -= workMs;
    return found >= 0 ? found : this.least(costs, chance);
  }
}
