/** Ranks that are silent, broken, drained or just back, and numbers that cannot be. */

import assert from "node:assert/strict";
import { NoRankAvailableError } from "../../src/errors.ts";
import type { RankHealth } from "../../src/slotfile/rank_health.ts";
import { loadAt, TestBudget } from "../support/loads.ts";

Deno.test("nobody has reported: a typed error says so", () => {
  const test = new TestBudget(3);
  assert.throws(() => test.budget.dispatch(), (error) => {
    assert(error instanceof NoRankAvailableError);
    assert.deepEqual(error.faults, ["unreported", "unreported", "unreported"]);
    assert.equal(error.message, "Cannot choose a rank: 3 unreported");
    return true;
  });
  assert.equal(test.budget.lastTicket, 0);
  assert.equal(test.budget.explain(), null);
});

Deno.test("nobody is live: taken in turn, if that was asked for", () => {
  const test = new TestBudget(3, { whenNone: "round_robin" });
  test.budget.drain(1);
  assert.deepEqual([1, 2, 3, 4].map(() => test.budget.dispatch()), [0, 2, 0, 2]);
  assert.equal(test.budget.explain()!.reason, "fallback");
  assert.equal(test.budget.stats().fallbacks, 4);
  test.budget.drain(0);
  test.budget.drain(2);
  assert.throws(() => test.budget.dispatch(), NoRankAvailableError);
});

Deno.test("a rank that falls silent with a low load gets nothing once its report is too old", () => {
  const test = new TestBudget(2, { staleAfterMs: 2_000 });
  test.report({}, { numRunningReqs: 20 });
  for (let n = 0; n < 30; n++) {
    test.nowMs += 100;
    test.budget.update([loadAt(test.nowMs, { dpRank: 1, numRunningReqs: 20 })]);
    const [silent] = test.send(1);
    if (n >= 20) assert.equal(silent, 0, `${(n + 1) * 100} ms`);
  }
  const standings = test.budget.explain()!.ranks.map(({ standing }) => standing);
  assert.deepEqual(standings, ["stale", "candidate"]);
});

Deno.test("reports that are seen again do not keep a rank alive", () => {
  for (const timestamp of [0, NaN]) {
    const test = new TestBudget(1, { staleAfterMs: 1_000 });
    const load = loadAt(0, { timestamp, numRunningReqs: 1 });
    for (let n = 0; n < 10; n++) {
      test.budget.update([load]);
      test.send(1);
      test.nowMs += 100;
    }
    test.nowMs += 1_000;
    test.budget.update([load]);
    assert.throws(() => test.budget.dispatch(), NoRankAvailableError);
  }
});

Deno.test("what the reader says of health decides", () => {
  const states: readonly [RankHealth["state"], number | null, string][] = [
    ["live", 0, "candidate"],
    ["live", 5_000, "candidate"],
    ["live", 11_000, "stale"],
    ["stale", 60_000, "stale"],
    ["stale", 3_000, "stale"],
    ["corrupt", 5, "corrupt"],
    ["corrupt", null, "corrupt"],
    ["unreported", null, "unreported"],
  ];
  for (const [state, ageMs, standing] of states) {
    const test = new TestBudget(2);
    const loads = [0, 1].map((dpRank) => loadAt(test.nowMs, { dpRank }));
    const good: RankHealth = { dpRank: 0, state: "live", ageMs: 0 };
    test.budget.update(loads, { health: [good, { dpRank: 1, state, ageMs }] });
    test.send(1);
    assert.equal(test.budget.explain()!.ranks[1]!.standing, standing, state);
  }
});

Deno.test("a rank is live by its health only if it has a report", () => {
  const test = new TestBudget(2);
  test.budget.update([loadAt(test.nowMs, { dpRank: 0 })], {
    health: [0, 1].map((dpRank) => ({ dpRank, state: "live", ageMs: 0 })),
  });
  assert.deepEqual(test.send(10), [10, 0]);
});

Deno.test("a snapshot of nothing, as writers publish it first, is no report", () => {
  const test = new TestBudget(2);
  test.budget.update([
    loadAt(test.nowMs, { dpRank: 0, numRunningReqs: 30 }),
    loadAt(0, { dpRank: 1, maxTotalNumTokens: 0 }),
  ]);
  assert.deepEqual(test.send(4), [4, 0]);
});

Deno.test("numbers that cannot be are no information", () => {
  for (const value of [NaN, -1, -Infinity, Infinity, 1e300]) {
    for (const name of ["numRunningReqs", "numWaitingReqs", "numTotalTokens"]) {
      const test = new TestBudget(2, { staleAfterMs: 1_000 });
      test.report({ numRunningReqs: 9 }, { numRunningReqs: 3 });
      test.nowMs += 500;
      const health = [0, 1].map((dpRank): RankHealth => ({ dpRank, state: "live", ageMs: 0 }));
      const broken = () => loadAt(test.nowMs, { dpRank: 0, [name]: value });
      test.budget.update([broken(), loadAt(test.nowMs, { dpRank: 1, numRunningReqs: 3 })], {
        health,
      });
      test.send(1);
      // What it said before stands, and grows old.
      assert.equal(test.budget.explain()!.ranks[0]!.requests, 9, `${name} ${value}`);
      test.nowMs += 600;
      test.budget.update([broken(), loadAt(test.nowMs, { dpRank: 1, numRunningReqs: 3 })], {
        health,
      });
      assert.deepEqual(test.send(40), [0, 40], `${name} ${value}`);
      assert.equal(test.budget.stats().refused, 2);
    }
  }
});

Deno.test("other numbers that cannot be are left out", () => {
  for (const value of [NaN, -1, Infinity]) {
    const test = new TestBudget(2);
    const broken = {
      maxRunningRequests: value,
      maxTotalNumTokens: value,
      numUsedTokens: value,
      numWaitingUncachedTokens: value,
      totalPrefillBusyUs: value,
      totalPrefillUncachedTokens: value,
    };
    test.report({ ...broken, numWaitingReqs: 2 }, broken);
    assert.equal(test.send(10).reduce((sum, count) => sum + count), 10);
    for (const { waitMs, costMs } of test.budget.explain()!.ranks) {
      assert(Number.isFinite(waitMs) && Number.isFinite(costMs));
    }
  }
});

Deno.test("reports of ranks that are none are counted, and left", () => {
  const test = new TestBudget(2);
  test.report({}, {});
  test.budget.update([-1, 2, 1.5, NaN, 65_536].map((dpRank) => loadAt(test.nowMs, { dpRank })));
  assert.equal(test.budget.stats().refused, 5);
  assert.deepEqual(test.send(2), [1, 1]);
});

Deno.test("a rank that comes back gets its share by and by", () => {
  const test = new TestBudget(4, { staleAfterMs: 1_000, rampMs: 4_000 });
  test.report({}, {}, {}, {});
  test.send(1);
  const inSecond: number[] = [];
  for (let second = 0; second < 10; second++) {
    let first = 0;
    for (let n = 0; n < 100; n++) {
      test.nowMs += 10;
      // The first rank is silent for three seconds; it comes back empty, the others are not.
      const ranks = second < 3 ? [1, 2, 3] : [0, 1, 2, 3];
      test.budget.update(
        ranks.map((dpRank) =>
          loadAt(test.nowMs, { dpRank, numRunningReqs: dpRank === 0 ? 0 : 10 })
        ),
      );
      first += test.send(1, 10)[0]!;
    }
    inSecond.push(first);
  }
  assert.deepEqual(inSecond.slice(1, 3), [0, 0]);
  const [, , , one, two, three, four, full] = inSecond;
  assert(one! < 25 && one! > 0, `${inSecond}`);
  assert(one! < two! && two! < three! && three! < four!, `${inSecond}`);
  assert.equal(full, 100, `${inSecond}`);
});

Deno.test("the only rank that is left gets everything, returning or not", () => {
  const test = new TestBudget(2, { staleAfterMs: 1_000 });
  test.report({}, {});
  test.send(1);
  test.nowMs += 2_000;
  test.budget.update([loadAt(test.nowMs, { dpRank: 0 })]);
  test.send(1);
  test.nowMs += 2_000;
  test.budget.update([loadAt(test.nowMs, { dpRank: 1 })]);
  assert.deepEqual(test.send(20), [0, 20]);
});

Deno.test("a drained rank gets nothing, whatever the method, until it is taken in again", () => {
  for (
    const method of ["expected_wait", "round_robin", "total_requests", "total_tokens"] as const
  ) {
    const test = new TestBudget(3);
    test.report({}, { numRunningReqs: 9, numTotalTokens: 900 }, { numRunningReqs: 9 });
    test.budget.drain(0);
    const chosen = Array.from({ length: 12 }, () => test.budget.dispatch(method));
    assert(!chosen.includes(0), method);
    assert.equal(test.budget.isDrained(0), true);
    assert.equal(test.budget.explain()!.ranks[0]!.standing, "drained");
    test.budget.undrain(0);
    const again = Array.from({ length: 12 }, () => test.budget.dispatch(method));
    assert(again.includes(0), method);
    for (const rank of [0, 1, 2]) test.budget.drain(rank);
    assert.throws(() => test.budget.dispatch(method), /3 drained/);
  }
});

Deno.test("a clock that is set back or forward neither revives a dead rank nor loses a live one", () => {
  const test = new TestBudget(2, { staleAfterMs: 2_000 });
  test.report({}, {});
  test.send(10);
  test.nowMs -= 3_600_000;
  test.send(10);
  for (let n = 0; n < 50; n++) {
    test.nowMs += 100;
    test.budget.update([loadAt(test.nowMs, { dpRank: 1 })]);
    test.send(1);
  }
  // The dead rank's report was an hour ahead; it counts from the set-back clock, and not longer.
  assert.deepEqual(test.send(10), [0, 10]);
  test.nowMs += 3_600_000;
  test.budget.update([loadAt(test.nowMs, { dpRank: 1 })]);
  assert.deepEqual(test.send(10), [0, 10]);
});

Deno.test("a time that cannot be is taken for the last one", () => {
  const test = new TestBudget(1);
  test.report({});
  for (const nowMs of [NaN, -1, Infinity, -Infinity]) {
    assert.equal(test.budget.dispatch("expected_wait", { nowMs }), 0);
    assert.equal(test.budget.explain()!.atMs, test.nowMs);
  }
});

Deno.test("options and ranks that cannot be are refused", () => {
  for (const dpSize of [0, -1, 1.5, NaN, 65_536]) {
    assert.throws(() => new TestBudget(dpSize), RangeError, `${dpSize}`);
  }
  for (
    const options of [
      { ledgerSize: 0 },
      { ledgerSize: 2 ** 25 },
      { choices: 0 },
      { choices: 1.5 },
      { routers: 0 },
      { staleAfterMs: -1 },
      { reportLagMs: NaN },
      { rampMs: -1 },
      { affinitySlackMs: -1 },
      { prefillMsPerToken: 0 },
      { weights: [1] },
      { weights: [1, 0] },
      { weights: [1, NaN] },
    ]
  ) {
    assert.throws(() => new TestBudget(2, options), RangeError, JSON.stringify(options));
  }
  const { budget } = new TestBudget(2);
  for (const rank of [-1, 2, 0.5, NaN]) {
    assert.throws(() => budget.drain(rank), RangeError);
    assert.throws(() => budget.undrain(rank), RangeError);
    assert.throws(() => budget.isDrained(rank), RangeError);
  }
});
