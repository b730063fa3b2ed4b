/** A million random updates and dispatches: whatever comes, a rank comes out, and nothing grows. */

import assert from "node:assert/strict";
import { Random } from "../../examples/engine/random.ts";
import { DpBudget } from "../../src/balance/dp_budget.ts";
import type { DispatchMethod } from "../../src/balance/dispatch_options.ts";
import { NoRankAvailableError } from "../../src/errors.ts";
import type { RankHealth } from "../../src/slotfile/rank_health.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import { START_MS } from "../support/loads.ts";

const STEPS = 1_000_000;

/** Steps that one budget lives for. */
const LIFE = 10_000;

const ODD = [NaN, Infinity, -Infinity, -1, -0, 0.5, 1e300, 2 ** 53, -(2 ** 53), 5e-324] as const;

const METHODS: readonly DispatchMethod[] = ["round_robin", "total_requests", "total_tokens"];

const STATES = ["unreported", "live", "live", "live", "stale", "corrupt"] as const;

const SEQUENCES = [0, 3, 1e9, -1, "x", null, [1], 2n ** 60n].map(RawMsgpack.from);

/** Chances, and one of a list. */
class Picks extends Random {
  pick<Value>(list: readonly Value[]): Value {
    return list[this.index(list.length)]!;
  }
}

/** One life of one budget. */
class Life {
  nowMs = START_MS;
  dispatches = 0;
  refusals = 0;
  readonly #random: Picks;
  readonly #dpSize: number;
  readonly #ledgerSize: number;
  readonly #budget: DpBudget;

  constructor(seed: number) {
    const random = this.#random = new Picks(seed, 0);
    this.#dpSize = random.pick([1, 2, 3, 8, 17, 70]);
    this.#ledgerSize = random.pick([1, 2, 7, 64, 1_000]);
    this.#budget = new DpBudget(this.#dpSize, {
      now: () => this.nowMs,
      random: () => random.chance(0.001) ? random.pick(ODD) : random.uniform(),
      ledgerSize: this.#ledgerSize,
      acknowledgement: random.pick(["timestamp", "dispatch_seq"]),
      whenNone: random.pick(["throw", "round_robin"]),
      staleAfterMs: random.pick([0, 100, 10_000, Infinity]),
      rampMs: random.pick([0, 5_000]),
      reportLagMs: random.pick([0, 20, 1e6]),
      ...random.chance(0.3) ? { choices: random.pick([1, 2, 1_000]) } : {},
      ...random.chance(0.3) ? { routers: random.pick([1, 8]) } : {},
    });
  }

  step(): void {
    const random = this.#random;
    this.nowMs += random.exponential(5);
    if (random.chance(0.002)) this.nowMs += random.pick([-3.6e6, 3.6e6, -500, 1e4, -START_MS]);
    if (random.chance(0.0005)) this.nowMs = random.pick([START_MS, ...ODD]);
    if (!Number.isFinite(this.nowMs)) this.nowMs = START_MS;
    const kind = random.uniform();
    if (kind < 0.4) this.#update();
    else if (kind < 0.85) this.#dispatch();
    else if (kind < 0.99) this.#budget.complete(this.#ticket(), this.#maybe(this.nowMs));
    else if (random.chance(0.4)) this.#budget.drain(random.index(this.#dpSize));
    else this.#budget.undrain(random.index(this.#dpSize));
  }

  check(): void {
    const stats = this.#budget.stats();
    assert(stats.outstanding >= 0 && stats.outstanding <= this.#ledgerSize);
    assert.equal(stats.dispatches, stats.outstanding + stats.completed + stats.forgotten);
    const explained = this.#budget.explain();
    if (explained === null) return;
    assert.equal(explained.ranks.length, this.#dpSize);
    if (explained.method !== "expected_wait") return;
    for (const { waitMs, costMs, pending } of explained.ranks) {
      // Those that were not looked at have none.
      assert((waitMs === null) === (costMs === null));
      if (waitMs !== null) assert(waitMs >= 0 && Number.isFinite(costMs), `${waitMs} ${costMs}`);
      assert(pending >= 0 && pending <= this.#ledgerSize);
    }
  }

  #dispatch(): void {
    const random = this.#random;
    try {
      const method = random.chance(0.7) ? undefined : random.pick(METHODS);
      const dpRank = this.#budget.dispatch(method, {
        estimatedTokens: this.#maybe(random.index(40_000)),
        preferredRank: random.chance(0.1) ? this.#rank() : undefined,
        prefixKey: random.chance(0.1) ? `key ${random.index(5)}` : undefined,
        nowMs: this.#maybe(this.nowMs),
      });
      if (!(Number.isInteger(dpRank) && dpRank >= 0 && dpRank < this.#dpSize)) {
        assert.fail(`rank ${dpRank} of ${this.#dpSize}`);
      }
      this.dispatches++;
    } catch (error) {
      if (!(error instanceof NoRankAvailableError)) throw error;
      this.refusals++;
    }
  }

  #update(): void {
    const random = this.#random;
    const count = random.index(4);
    const loads = Array.from({ length: count }, () => this.#load());
    const health = random.chance(0.3)
      ? Array.from({ length: random.index(4) }, (): RankHealth => ({
        dpRank: this.#rank(),
        state: random.pick(STATES),
        ageMs: random.chance(0.1) ? null : this.#odd(random.index(2_000)),
      }))
      : undefined;
    this.#budget.update(loads, { health, nowMs: this.#maybe(this.nowMs) });
  }

  #load(): LoadSnapshot {
    const random = this.#random;
    return createLoadSnapshot({
      dpRank: this.#rank(),
      timestamp: this.#odd((this.nowMs - random.index(300)) / 1000),
      numRunningReqs: this.#odd(random.index(100)),
      numWaitingReqs: this.#odd(random.index(20)),
      numWaitingUncachedTokens: this.#odd(random.index(20_000)),
      numUsedTokens: this.#odd(random.index(100_000)),
      numTotalTokens: this.#odd(random.index(100_000)),
      maxTotalNumTokens: this.#odd(100_000),
      maxRunningRequests: this.#odd(64),
      totalPrefillUncachedTokens: this.#odd(random.index(1e6)),
      totalPrefillBusyUs: this.#odd(random.index(1e8)),
      extra: random.chance(0.2) ? { last_accepted_dispatch_seq: random.pick(SEQUENCES) } : null,
    });
  }

  #rank(): number {
    return this.#random.chance(0.05)
      ? this.#random.pick([-1, 70, 0.5, NaN, 65_536])
      : this.#random.index(this.#dpSize);
  }

  #ticket(): number {
    return this.#odd(this.#budget.lastTicket - this.#random.index(30));
  }

  #odd(value: number): number {
    return this.#random.chance(0.02) ? this.#random.pick(ODD) : value;
  }

  #maybe(value: number): number | undefined {
    return this.#random.chance(0.2) ? undefined : this.#odd(value);
  }
}

Deno.test(`${STEPS} random steps: a rank of the group each time, and a ledger that is bounded`, () => {
  let dispatches = 0;
  let refusals = 0;
  for (let seed = 0; seed < STEPS / LIFE; seed++) {
    const life = new Life(seed);
    for (let step = 0; step < LIFE; step++) {
      life.step();
      if (step % 100 === 0) life.check();
    }
    dispatches += life.dispatches;
    refusals += life.refusals;
  }
  // Both must have been tried, or nothing was.
  assert(dispatches > STEPS / 5 && refusals > 1_000, `${dispatches} ${refusals}`);
});
