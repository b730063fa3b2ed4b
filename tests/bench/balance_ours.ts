// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Our side of one case of dispatching, in a process of its own; see ours.ts.
 *
 * Usage: balance_ours.ts METHOD RANKS ROUND-MS WARM-UP-MS
 */

import type { DispatchMethod } from "../../src/balance/dispatch_options.ts";
import { DpBudget } from "../../src/balance/dp_budget.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { backToBack, warmUp } from "./timing.ts";

const [method = "", rankCount, roundMs, warmMs] = Deno.args;
const ranks = Number(rankCount);
const options = { estimatedTokens: 0, nowMs: 1_700_000_000_000 };
const budget = new DpBudget(ranks, { staleAfterMs: Infinity });
budget.update(
  Array.from({ length: ranks }, (_, dpRank) =>
    createLoadSnapshot({
      dpRank,
      timestamp: options.nowMs / 1000,
      numRunningReqs: (dpRank * 7) % 32,
      numTotalTokens: (dpRank * 7919) % 100_000,
      maxRunningRequests: 256,
      maxTotalNumTokens: 400_000,
    })),
  { nowMs: options.nowMs },
);

/** Keeps results from being optimised away. */
let sink = 0;

const timed = backToBack((step) => {
  options.nowMs += 1;
  options.estimatedTokens = 100 + step % 997;
  sink += budget.dispatch(method as DispatchMethod, options);
});
const calls = warmUp(timed, Number(roundMs), Number(warmMs));
console.log(JSON.stringify({ calls }));

// Blocking reads: nothing else goes on in this process, not even an event loop.
while ((Deno.stdin.readSync(new Uint8Array(64)) ?? 0) > 0) {
  console.log(JSON.stringify({ ns: timed(calls) / calls }));
}
Deno.exit(sink < 0 ? 1 : 0);
