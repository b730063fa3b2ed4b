/** What the page knows of the group, out of the stream's events. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { Group } from "../../src/http/page/client/group.js";
import { ageNow, shownState, UNHEARD_MS, usageOf } from "../../src/http/page/client/rank.js";

const health = (...states: readonly string[]) => ({
  dp_size: states.length,
  ranks: states.map((state, dp_rank) => ({
    dp_rank,
    state,
    age_ms: state === "unreported" ? null : 100,
  })),
});

const load = (dp_rank: number, values: Readonly<Record<string, unknown>> = {}) => ({
  dp_rank,
  num_running_reqs: 1,
  num_waiting_reqs: 2,
  num_used_tokens: 30,
  num_total_tokens: 40,
  max_total_num_tokens: 100,
  token_usage: 0.3,
  gen_throughput: 5,
  state: "live",
  age_ms: 50,
  ...values,
});

Deno.test("before anything is told there is no group, and no zero", () => {
  const group = new Group();
  assert.equal(group.isTold, false);
  assert.equal(group.totals(), null);
  assert.deepEqual(group.ranks, []);
});

Deno.test("ranks that never reported are there, without a load, and count as no zero", () => {
  const group = new Group();
  group.applyHealth(health("live", "unreported"), 0);
  group.applyLoads({ loads: [load(0)] }, 0);
  assert.equal(group.ranks[1]?.load, null);
  assert.deepEqual(group.stateCounts(0, true), { live: 1, stale: 0, corrupt: 0, unreported: 1 });
  assert.equal(group.totals()?.reported, 1);
  assert.equal(group.totals()?.maxTokens, 100);
});

Deno.test("loads of changed ranks leave the others as they are", () => {
  const group = new Group();
  group.applyLoads({ loads: [load(0), load(1), load(2)] }, 0);
  group.applyLoads({ loads: [load(1, { num_running_reqs: 7 })] }, 10);
  assert.deepEqual(group.ranks.map((rank) => rank.load?.num_running_reqs), [1, 7, 1]);
  assert.equal(group.totals()?.running, 9);
  assert.equal(group.totals()?.usage, 0.3);
});

Deno.test("changes of state are told once, and the first states are no change", () => {
  const group = new Group();
  assert.equal(group.applyHealth(health("live", "live"), 0).size, 0);
  assert.deepEqual([...group.applyHealth(health("stale", "live"), 0)], [["stale", [0]]]);
  assert.equal(group.applyHealth(health("stale", "live"), 0).size, 0);
  assert.deepEqual([...group.applyHealth(health("live", "corrupt"), 0)], [
    ["live", [0]],
    ["corrupt", [1]],
  ]);
});

Deno.test("a smaller group forgets the ranks that are gone, and a load that was taken back", () => {
  const group = new Group();
  group.applyHealth(health("live", "live"), 0);
  group.applyLoads({ loads: [load(0), load(1)] }, 0);
  group.applyHealth(health("unreported"), 0);
  assert.equal(group.ranks.length, 1);
  assert.equal(group.totals(), null);
});

Deno.test("ages go on between events, and what never reported has none", () => {
  const group = new Group();
  group.applyHealth(health("live", "unreported"), 1000);
  const [first, second] = group.ranks;
  assert.ok(first !== undefined && second !== undefined);
  assert.equal(ageNow(first, 3500), 2600);
  assert.equal(ageNow(second, 3500), null);
});

Deno.test("without a connection nothing stays live, and the other states stay", () => {
  const group = new Group();
  group.applyHealth(health("live", "stale", "corrupt", "unreported"), 0);
  const states = (now: number, connected: boolean) =>
    group.ranks.map((rank) => shownState(rank, now, connected));
  const told = ["live", "stale", "corrupt", "unreported"];
  assert.deepEqual(states(UNHEARD_MS + 1, true), told);
  assert.deepEqual(states(UNHEARD_MS, false), told);
  assert.deepEqual(states(UNHEARD_MS + 1, false), ["stale", "stale", "corrupt", "unreported"]);
});

Deno.test("a value that is not a number, as JSON has no NaN, is not known and breaks no sum", () => {
  const group = new Group();
  group.applyLoads({ loads: [load(0, { token_usage: null, gen_throughput: null }), load(1)] }, 0);
  assert.equal(usageOf(group.ranks[0]?.load ?? null), null);
  assert.equal(group.totals()?.throughput, 5);
});

Deno.test("whatever JSON a server sends, the group stays one", () => {
  fc.assert(fc.property(fc.array(fc.jsonValue(), { maxLength: 5 }), (values) => {
    const group = new Group();
    for (const value of values) {
      group.applyLoads(value, 0);
      group.applyHealth(value, 0);
      group.applyLoads({ loads: [value] }, 0);
      group.applyHealth({ dp_size: value, ranks: value }, 0);
    }
    group.ranks.forEach((rank, index) => assert.equal(rank.dpRank, index));
    assert.ok(group.ranks.length <= 8192);
    group.totals();
  }));
  const group = new Group();
  for (let n = 0; n < 2; n++) group.applyHealth({ dp_size: 2.5, ranks: [] }, 0);
  group.applyHealth({ dp_size: 1e9, ranks: [{ dp_rank: 1e9, state: "live" }] }, 0);
  assert.equal(group.ranks.length, 0);
});
