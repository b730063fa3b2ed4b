/** Which of the live ranks gets the next request, and what is said about it. */

import assert from "node:assert/strict";
import { Random } from "../../examples/engine/random.ts";
import { Chance, CHANCES } from "../../src/balance/chance.ts";
import { Candidates } from "../../src/balance/choice.ts";
import { makeMoment, REQUEST_MS, UNSEEN_MS } from "../../src/balance/moment.ts";
import { hashKey, rendezvousRank } from "../../src/balance/prefix_affinity.ts";
import { TestBudget } from "../support/loads.ts";

function chanceOf(seed: number): Chance {
  const random = new Random(seed, 0);
  return new Chance(() => random.uniform());
}

Deno.test("chances are even, and begin differently with each seed", () => {
  const chance = chanceOf(1);
  const got = new Uint32Array(10);
  for (let n = 0; n < 100_000; n++) got[chance.index(10)]! += 1;
  assert(got.every((count) => Math.abs(count - 10_000) < 400), `${got}`);
  const first = new Set(Array.from({ length: 1_000 }, (_, seed) => chanceOf(seed).next()));
  assert(first.size > 990 && [...first].every((value) => value >= 0 && value < CHANCES));
});

Deno.test("a request goes where the least prefill work waits", () => {
  const test = new TestBudget(3);
  const waiting = (tokens: number) => ({ numWaitingReqs: 1, numWaitingUncachedTokens: tokens });
  test.report(waiting(20_000), waiting(4_000), waiting(9_000));
  assert.deepEqual(test.send(1), [0, 1, 0]);
  // The next long one counts too: after it, the third rank waits less.
  test.send(1, 8_000);
  assert.deepEqual(test.send(1), [0, 0, 1]);
});

Deno.test("older engines, which do not count uncached tokens, are judged by those that wait", () => {
  const test = new TestBudget(2);
  test.report(
    { numWaitingReqs: 2, numUsedTokens: 1_000, numTotalTokens: 30_000 },
    { numWaitingReqs: 2, numUsedTokens: 20_000, numTotalTokens: 22_000 },
  );
  assert.deepEqual(test.send(1), [0, 1]);
});

Deno.test("with nothing waiting, running requests are spread evenly", () => {
  const test = new TestBudget(4);
  test.report({ numRunningReqs: 8 }, { numRunningReqs: 4 }, { numRunningReqs: 6 }, {});
  // Nearly no prefill, so that only the number counts.
  const got = test.send(30, 1);
  assert.deepEqual([8, 4, 6, 0].map((had, rank) => had + got[rank]!), [12, 12, 12, 12]);
});

Deno.test("where no place or no room in the pool is free, the wait for it counts", () => {
  const test = new TestBudget(2);
  test.report({ numRunningReqs: 32 }, { numRunningReqs: 3, numTotalTokens: 90_000 });
  assert.deepEqual(test.send(3, 1_000), [0, 3]);
  const full = new TestBudget(2);
  full.report({ numTotalTokens: 100_000 }, { numRunningReqs: 20 });
  assert.deepEqual(full.send(2, 2_000), [0, 2]);
  assert.equal(full.budget.explain()!.ranks[0]!.waitMs, 100);
});

Deno.test("a rank that prefills slowly, by its own count, gets less", () => {
  const test = new TestBudget(2);
  let busyUs = 0;
  let tokens = 0;
  const prefilled = (slowness: number) => ({
    totalPrefillUncachedTokens: tokens,
    totalPrefillBusyUs: busyUs * slowness,
  });
  let got = [0, 0];
  for (let n = 0; n < 400; n++) {
    busyUs += 20_000;
    tokens += 500;
    test.nowMs += 100;
    test.report(prefilled(1), prefilled(4));
    got = test.send(2).map((count, rank) => got[rank]! + count);
  }
  assert(got[0]! > got[1]! * 2 && got[1]! > 0, `${got}`);
});

Deno.test("weights say how much each rank is to get", () => {
  const test = new TestBudget(3, { weights: [1, 2, 1] });
  test.report({}, {}, {});
  const got = test.send(60);
  assert(Math.abs(got[1]! - 30) <= 2, `${got}`);
  assert(Math.abs(got[0]! - got[2]!) <= 2, `${got}`);
});

Deno.test("two choices keep a large group even, and look at no more than two", () => {
  const test = new TestBudget(512, { choices: 2 });
  test.report(...Array.from({ length: 512 }, () => ({})));
  const got = test.send(5_120);
  assert(
    Math.max(...got) <= 14 && Math.min(...got) >= 4,
    `${Math.min(...got)} ${Math.max(...got)}`,
  );
  const looked = test.budget.explain()!.ranks.filter(({ standing }) => standing === "candidate");
  assert.equal(looked.length, 2);
});

Deno.test("a sample prefers ranks with more weight", () => {
  const chance = chanceOf(3);
  const weights = Float64Array.of(1, 1, 1, 9);
  let heavy = 0;
  for (let n = 0; n < 2_000; n++) {
    const candidates = new Candidates(weights);
    candidates.ranks.set([0, 1, 2, 3]);
    candidates.count = 4;
    candidates.sample(1, chance);
    if (candidates.ranks[0] === 3) heavy++;
  }
  assert(heavy > 1_400 && heavy < 1_600, `${heavy}`);
});

Deno.test("unseen work spreads requests over the ranks that it will fill, and over no others", () => {
  const chance = chanceOf(4);
  const candidates = new Candidates(new Float64Array(4).fill(1));
  candidates.ranks.set([0, 1, 2, 3]);
  candidates.count = 4;
  const costs = Float64Array.of(0, 10, 20, 100);
  const got = [0, 0, 0, 0];
  // 60 ms of work bring the lowest three to 30: their parts are 30, 20 and 10 of 60.
  const moment = makeMoment();
  moment[UNSEEN_MS] = 60;
  moment[REQUEST_MS] = 5;
  for (let n = 0; n < 6_000; n++) {
    got[candidates.fill(costs, moment, chance)]! += 1;
  }
  [3_000, 2_000, 1_000, 0].forEach((wanted, rank) =>
    assert(Math.abs(got[rank]! - wanted) < 30, `${got}`)
  );
});

Deno.test("ties are broken by chance, evenly", () => {
  const chance = chanceOf(5);
  const candidates = new Candidates(new Float64Array(4).fill(1));
  candidates.ranks.set([0, 1, 2, 3]);
  candidates.count = 4;
  const got = [0, 0, 0, 0];
  const costs = Float64Array.of(7, 5, 5, 5);
  for (let n = 0; n < 3_000; n++) got[candidates.least(costs, chance)]! += 1;
  assert.equal(got[0], 0);
  assert(got.slice(1).every((count) => Math.abs(count - 1_000) < 150), `${got}`);
});

Deno.test("a source of chance that gives what it must not does no harm", () => {
  for (const value of [1, -1, NaN, Infinity, 1e300]) {
    for (const options of [{}, { choices: 2 }, { routers: 8 }]) {
      const test = new TestBudget(5, { ...options, random: () => value });
      test.report({}, {}, {}, {}, {});
      assert.equal(test.send(50).reduce((sum, count) => sum + count), 50);
    }
  }
});

Deno.test("requests with one prefix go to one rank while its load permits", () => {
  const test = new TestBudget(8, { affinitySlackMs: 100 });
  test.report(...Array.from({ length: 8 }, () => ({})));
  const send = () =>
    test.budget.dispatch("expected_wait", { prefixKey: "a", estimatedTokens: 400 });
  const home = send();
  assert.equal(test.budget.explain()!.reason, "prefix");
  const chosen = Array.from({ length: 12 }, send);
  // 400 tokens are 20 ms: after some, it waits 100 ms longer than elsewhere.
  const stayed = chosen.findIndex((rank) => rank !== home);
  assert(stayed >= 3 && stayed <= 6, `${home}: ${chosen}`);
  assert.equal(new Set(chosen).size > 1, true);
});

Deno.test("a rank that is said to hold the prefix is taken while its load permits", () => {
  const test = new TestBudget(3);
  test.report({ numRunningReqs: 5 }, {}, {});
  const prefer = (preferredRank: number) =>
    test.budget.dispatch("expected_wait", { preferredRank, estimatedTokens: 100 });
  assert.equal(prefer(0), 0);
  assert.equal(test.budget.explain()!.reason, "preferred");
  test.budget.drain(0);
  assert.notEqual(prefer(0), 0);
  for (const none of [-1, 3, 1.5, NaN]) assert(prefer(none) > 0);
});

Deno.test("keys spread evenly, and only those of a rank that goes move", () => {
  const all = Uint16Array.from({ length: 16 }, (_, rank) => rank);
  const without5 = all.filter((rank) => rank !== 5);
  const got = Array.from({ length: 16 }, () => 0);
  for (let n = 0; n < 16_000; n++) {
    const hash = hashKey(`session-${n}`);
    const rank = rendezvousRank(hash, all, 16);
    got[rank]! += 1;
    const other = rendezvousRank(hash, without5, 15);
    if (rank !== 5) assert.equal(other, rank);
    else assert.notEqual(other, 5);
  }
  assert(got.every((count) => Math.abs(count - 1_000) < 130), `${got}`);
});

Deno.test("an explanation says what each rank counted for", () => {
  const test = new TestBudget(3);
  test.report({ numRunningReqs: 4 }, { numRunningReqs: 2 }, {});
  test.budget.drain(2);
  test.nowMs += 7;
  const dpRank = test.budget.dispatch("expected_wait", { estimatedTokens: 800 });
  const explained = test.budget.explain()!;
  assert.equal(dpRank, 1);
  assert.deepEqual(
    { ...explained, ranks: [] },
    {
      method: "expected_wait",
      dpRank: 1,
      reason: "least",
      atMs: test.nowMs,
      estimatedTokens: 800,
      unseenMs: 0,
      ranks: [],
    },
  );
  assert.deepEqual(explained.ranks.map(({ standing }) => standing), [
    "candidate",
    "candidate",
    "drained",
  ]);
  assert.deepEqual(explained.ranks.map(({ requests }) => requests), [4, 2, 0]);
  assert.deepEqual(explained.ranks.map(({ ageMs }) => ageMs), [7, 7, 7]);
  assert(explained.ranks[1]!.costMs! < explained.ranks[0]!.costMs!);
  // What comes later does not change what was explained.
  test.report({ numRunningReqs: 9 }, { numRunningReqs: 9 }, {});
  assert.deepEqual(test.budget.explain(), explained);
});

Deno.test("where others send as much again, requests are spread and not all to the lowest", () => {
  const test = new TestBudget(4, { routers: 8 });
  test.report({ numRunningReqs: 4 }, { numRunningReqs: 4 }, { numRunningReqs: 4 }, {});
  const got = test.send(40);
  assert.equal(test.budget.explain()!.reason, "spread");
  assert(test.budget.explain()!.unseenMs > 0);
  assert(got.every((count) => count >= 6), `${got}`);
});
