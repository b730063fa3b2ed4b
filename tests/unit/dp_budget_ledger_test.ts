/** What a budget sent stays counted until a rank can have reported it. */

import assert from "node:assert/strict";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import { loadAt, TestBudget } from "../support/loads.ts";

Deno.test("a burst spreads over idle ranks although old reports come in between", () => {
  const test = new TestBudget(8);
  const idle = Array.from({ length: 8 }, () => ({}));
  test.report(...idle);
  let got = Array.from({ length: 8 }, () => 0);
  for (let n = 0; n < 20; n++) {
    test.nowMs += 10;
    // All ranks say that they were idle 300 ms ago: true, and worth nothing.
    test.budget.update(idle.map((_, dpRank) => loadAt(test.nowMs - 300, { dpRank })));
    got = test.send(4).map((count, rank) => count + got[rank]!);
  }
  assert.deepEqual(got, Array.from({ length: 8 }, () => 10));
});

Deno.test("SGLang's own method piles the same burst on the first ranks", () => {
  const test = new TestBudget(8);
  const got = Array.from({ length: 8 }, () => 0);
  for (let n = 0; n < 20; n++) {
    test.nowMs += 10;
    test.budget.update(got.map((_, dpRank) => loadAt(test.nowMs - 300, { dpRank })));
    for (let m = 0; m < 4; m++) got[test.budget.dispatch("total_requests")]! += 1;
  }
  assert.deepEqual(got, [20, 20, 20, 20, 0, 0, 0, 0]);
});

Deno.test("a report that is later by more than the lag takes the place of what was sent", () => {
  const test = new TestBudget(1, { reportLagMs: 20 });
  // An engine that counts its prefills: none was under way.
  const counts = { totalPrefillBusyUs: 1_000 };
  test.report(counts);
  test.send(3);
  const pending = () => {
    test.send(1);
    const [rank] = test.budget.explain()!.ranks;
    test.budget.complete(test.budget.lastTicket);
    return { pending: rank!.pending, requests: rank!.requests };
  };
  assert.deepEqual(pending(), { pending: 3, requests: 3 });
  test.nowMs += 19;
  test.report({ ...counts, numRunningReqs: 2 });
  assert.deepEqual(pending(), { pending: 3, requests: 5 });
  test.nowMs += 40;
  test.report({ ...counts, numRunningReqs: 3 });
  assert.deepEqual(pending(), { pending: 0, requests: 3 });
});

Deno.test("what was sent while a long prefill ran is not in the report at its end", () => {
  const test = new TestBudget(1, { reportLagMs: 20 });
  test.report({ totalPrefillBusyUs: 1_000_000, totalPrefillUncachedTokens: 30_000 });
  test.nowMs += 100;
  test.send(2);
  test.nowMs += 300;
  // One batch of 380 ms: it began before the requests were sent.
  test.report({ totalPrefillBusyUs: 1_380_000, totalPrefillUncachedTokens: 38_000 });
  test.send(1);
  assert.equal(test.budget.explain()!.ranks[0]!.pending, 2);
});

Deno.test("where an engine does not count its prefills, what was sent counts for one report longer", () => {
  const test = new TestBudget(1, { reportLagMs: 20 });
  const pending = [];
  test.report({});
  test.nowMs += 10;
  test.send(1);
  for (let n = 0; n < 2; n++) {
    test.nowMs += 200;
    test.report({ numRunningReqs: 1 });
    test.budget.dispatch();
    pending.push(test.budget.explain()!.ranks[0]!.pending);
    test.budget.complete(test.budget.lastTicket);
  }
  assert.deepEqual(pending, [1, 0]);
});

Deno.test("with dispatch sequences, a report holds exactly what it says", () => {
  const test = new TestBudget(1, { acknowledgement: "dispatch_seq" });
  const extra = (seq: unknown) => ({ last_accepted_dispatch_seq: RawMsgpack.from(seq) });
  test.report({});
  test.send(5);
  const pending = () => {
    test.send(1);
    const [rank] = test.budget.explain()!.ranks;
    test.budget.complete(test.budget.lastTicket);
    return rank!.pending;
  };
  test.nowMs += 1;
  test.report({ numRunningReqs: 2, extra: extra(2) });
  assert.equal(pending(), 3);
  test.nowMs += 5_000;
  test.report({ numRunningReqs: 4, extra: extra(4) });
  assert.equal(pending(), 1);
  // Nonsense, and numbers of somebody else, are no acknowledgement: the time decides.
  for (const seq of [-1, 1.5, "7", null, 1e6]) {
    test.send(1);
    test.nowMs += 5_000;
    test.report({ numRunningReqs: 1, extra: extra(seq) });
    assert.equal(pending(), 0, `${seq}`);
  }
});

Deno.test("a request counts until it is complete, once", () => {
  const test = new TestBudget(2);
  test.report({ totalPrefillBusyUs: 1_000 }, { totalPrefillBusyUs: 1_000 });
  const rank = test.budget.dispatch("expected_wait", { estimatedTokens: 500 });
  const ticket = test.budget.lastTicket;
  assert.equal(test.budget.stats().outstanding, 1);
  assert.equal(test.budget.complete(ticket), true);
  assert.equal(test.budget.complete(ticket), false);
  assert.equal(test.budget.stats().outstanding, 0);
  // Reported and complete since: it is taken off the report.
  test.budget.dispatch("expected_wait", { estimatedTokens: 500 });
  const second = test.budget.lastTicket;
  test.nowMs += 1_000;
  const counted = { numRunningReqs: 1, totalPrefillBusyUs: 1_000 };
  test.report(counted, counted);
  assert.equal(test.budget.complete(second), true);
  test.send(1);
  const counts = test.budget.explain()!.ranks.map(({ requests }) => requests).toSorted();
  assert.deepEqual(counts, [0, 1]);
  assert.equal(rank >= 0 && rank < 2, true);
});

Deno.test("tickets that never were are not known", () => {
  const test = new TestBudget(1, { ledgerSize: 4 });
  test.report({});
  test.send(2);
  for (const ticket of [0, -1, 3, 7, 1.5, NaN, Infinity, 2 ** 53]) {
    assert.equal(test.budget.complete(ticket), false, `${ticket}`);
  }
});

Deno.test("a full ledger forgets the oldest, and keeps no more than its size", () => {
  const test = new TestBudget(2, { ledgerSize: 8 });
  test.report({}, {});
  test.send(20);
  const { dispatches, outstanding, forgotten } = test.budget.stats();
  assert.deepEqual({ dispatches, outstanding, forgotten }, {
    dispatches: 20,
    outstanding: 8,
    forgotten: 12,
  });
  assert.equal(test.budget.complete(12), false);
  assert.equal(test.budget.complete(13), true);
});
