/** What choosing by expected wait has to reach in the simulation; virtual time, fixed seeds. */

import assert from "node:assert/strict";
import { POLICIES } from "../bench/dispatch/policies.ts";
import {
  BY_DELAY,
  BY_FAULT,
  BY_LOAD,
  BY_ROUTERS,
  type Case,
  p99Of,
  runCase,
} from "../bench/dispatch/scenarios.ts";
import { percentile } from "../bench/dispatch/simulation.ts";

const LATE = BY_DELAY.filter(({ delayMs }) => delayMs >= 20 && delayMs <= 200);
const LOADS = BY_LOAD.filter(({ bursts }) => bursts !== null);

/** Compares with both of SGLang's methods, and with the oracle. */
function compare(
  cases: readonly Case[],
  isEnough: (ours: number, theirs: number, oracle: number) => boolean,
) {
  assert(cases.length > 0);
  for (const which of cases) {
    const ours = p99Of(which, "loadslots");
    const oracle = p99Of(which, "oracle");
    assert(ours <= oracle * 1.3, `${which.name}: ${ours} ms, oracle ${oracle} ms`);
    for (const name of ["SGLang total_requests", "SGLang total_tokens"] as const) {
      const theirs = p99Of(which, name);
      assert(isEnough(ours, theirs, oracle), `${which.name}: ${ours} ms, ${name} ${theirs} ms`);
    }
  }
}

Deno.test("in bursts, with loads 20 to 200 ms late: half of SGLang's p99 wait, near the oracle's", () => {
  assert.deepEqual(LATE.map(({ delayMs }) => delayMs), [20, 50, 100, 200]);
  compare(LATE, (ours, theirs) => ours <= theirs / 2);
});

Deno.test("so too in shorter and longer bursts, and in small and large groups", () => {
  // A burst of 50 ms is over before much can be known: there, knowing all gives little more than half.
  compare(LOADS, (ours, theirs, oracle) => ours <= theirs / 2 || ours <= oracle * 1.05);
});

Deno.test("several routers that do not see each other wait no longer than if they chose at random", () => {
  for (const which of BY_ROUTERS) {
    const ours = runCase(which, POLICIES.loadslots);
    const random = runCase(which, POLICIES.random);
    for (const share of [0.9, 0.99]) {
      const [own, other] = [ours, random].map(({ queueingMs }) => percentile(queueingMs, share));
      assert(own! <= other!, `${which.name}, p${share * 100}: ${own} ms, random ${other} ms`);
    }
  }
});

Deno.test("a dead rank gets no request after its deadline, and its share when it is back", () => {
  const cases = BY_FAULT.filter(({ death }) => death !== undefined);
  assert.equal(cases.length, 2);
  for (const which of cases) {
    const { deadAfter, lost, leastShare } = runCase(which, POLICIES.loadslots);
    const turns = runCase(which, POLICIES["round robin"]);
    assert.equal(deadAfter, 0, which.name);
    // Round robin shows that requests came in that time.
    assert(turns.deadAfter > 50 && lost < turns.lost / 5, `${which.name}: ${lost} ${turns.lost}`);
    // It is away for a third of the time.
    assert(leastShare > 0.4, `${which.name}: ${leastShare}`);
  }
});

Deno.test("no rank starves, also not a slow one", () => {
  for (const which of [...BY_DELAY, ...BY_LOAD, ...BY_ROUTERS]) {
    const { leastShare } = runCase(which, POLICIES.loadslots);
    assert(leastShare > 0.5, `${which.name}: ${leastShare}`);
  }
  const [slow] = BY_FAULT;
  const { leastShare } = runCase(there(slow), POLICIES.loadslots);
  // A third as fast as the others.
  assert(leastShare > 0.25 && leastShare < 0.8, `${leastShare}`);
});

Deno.test("the same seeds give the same figures", () => {
  const [which] = BY_ROUTERS;
  const [one, other] = [1, 2].map(() => runCase(there(which), POLICIES.loadslots, [7]));
  assert.deepEqual(one, other);
});

function there(which: Case | undefined): Case {
  assert(which !== undefined);
  return which;
}
