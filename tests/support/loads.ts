/** Loads and clocks for tests of dispatching. */

import { Random } from "../../examples/engine/random.ts";
import type { DpBudgetOptions } from "../../src/balance/dispatch_options.ts";
import { DpBudget } from "../../src/balance/dp_budget.ts";
import {
  createLoadSnapshot,
  type LoadSnapshot,
  type LoadSnapshotInit,
} from "../../src/snapshot/load_snapshot.ts";

/** A time in Unix ms, as good as any. */
export const START_MS = 1_700_000_000_000;

/** A report of a rank with room for 32 requests, measured at a time. */
export function loadAt(atMs: number, init: LoadSnapshotInit): LoadSnapshot {
  return createLoadSnapshot({
    timestamp: atMs / 1000,
    maxRunningRequests: 32,
    maxTotalNumTokens: 100_000,
    ...init,
  });
}

/** A budget on a clock that the test moves, with chances that are the same in each run. */
export class TestBudget {
  nowMs = START_MS;
  readonly budget: DpBudget;

  constructor(dpSize: number, options: DpBudgetOptions = {}, seed = 1) {
    const random = new Random(seed, 0);
    this.budget = new DpBudget(dpSize, {
      now: () => this.nowMs,
      random: () => random.uniform(),
      ...options,
    });
  }

  /** All ranks report now; what they have besides is given for each, in order. */
  report(...inits: readonly LoadSnapshotInit[]): void {
    this.budget.update(inits.map((init, dpRank) => loadAt(this.nowMs, { dpRank, ...init })));
  }

  /** Sends so many requests of that many tokens; how many each rank got. */
  send(count: number, estimatedTokens: number | undefined = 500): number[] {
    const got = Array.from({ length: this.budget.dpSize }, () => 0);
    for (let n = 0; n < count; n++) {
      got[this.budget.dispatch("expected_wait", { estimatedTokens })]! += 1;
    }
    return got;
  }
}
