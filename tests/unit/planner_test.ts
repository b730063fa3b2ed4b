/** The planner's rules: which load calls for which advice, and what keeps it from swinging. */

import assert from "node:assert/strict";
import {
  type Advice,
  decide,
  type Interval,
  type MeanLoad,
  type PlannerRules,
  type PlannerState,
  RULES_OF_2025,
  START,
  sumUp,
  type WorkerLoad,
} from "../../examples/planner_rules.ts";

const INTERVAL_MS = 30_000;
/** Rules without memory. */
const AT_ONCE: PlannerRules = { ...RULES_OF_2025, intervalsUp: 1, intervalsDown: 1, graceMs: 0 };

function live(usage: number, waiting: number): WorkerLoad {
  return { state: "live", usage, waiting };
}

function intervalOf(load: MeanLoad | null, nowMs = 0, isComplete = true): Interval {
  return { nowMs, load, isComplete };
}

function adviceFor(load: MeanLoad | null, isComplete = true): Advice {
  return decide(START, intervalOf(load, 0, isComplete), AT_ONCE).advice;
}

/** Decides over intervals of 30 seconds, one for each load. */
function actionsOver(loads: readonly MeanLoad[], rules: PlannerRules): Advice["action"][] {
  let state: PlannerState = START;
  return loads.map((load, n) => {
    const decision = decide(state, intervalOf(load, n * INTERVAL_MS), rules);
    state = decision.state;
    return decision.advice.action;
  });
}

const HIGH = { usage: 0.95, waiting: 0 };
const LOW = { usage: 0.1, waiting: 0 };
const MIDDLE = { usage: 0.7, waiting: 0.3 };

Deno.test("a full cache or a queue calls for a worker, whatever the other says", () => {
  assert.equal(adviceFor({ usage: 0.91, waiting: 0 }).action, "up");
  assert.equal(adviceFor({ usage: 0, waiting: 0.6 }).action, "up");
  assert.equal(adviceFor({ usage: 0.95, waiting: 7 }).action, "up");
});

Deno.test("only an empty cache and no queue together allow for one less", () => {
  assert.equal(adviceFor({ usage: 0.49, waiting: 0.19 }).action, "down");
  assert.equal(adviceFor({ usage: 0.49, waiting: 0.3 }).action, "hold");
  assert.equal(adviceFor({ usage: 0.6, waiting: 0 }).action, "hold");
});

Deno.test("on a threshold, and between the two of a kind, nothing changes", () => {
  for (const load of [{ usage: 0.9, waiting: 0.5 }, { usage: 0.5, waiting: 0.2 }, MIDDLE]) {
    assert.equal(adviceFor(load).action, "hold");
  }
});

Deno.test("no worker is taken away while one of them says nothing", () => {
  assert.equal(adviceFor(LOW, false).action, "hold");
  assert.match(adviceFor(LOW, false).reason, /not every worker reports$/);
  assert.equal(
    adviceFor(HIGH, false).action,
    "up",
    "those that report may be too few all the same",
  );
});

Deno.test("without any report there is no advice", () => {
  assert.deepEqual(adviceFor(null), { action: "hold", reason: "no worker reports" });
  assert.deepEqual(adviceFor(null, false).action, "hold");
});

Deno.test("a worker more is advised at once, a worker less after three intervals in a row", () => {
  const rules = { ...RULES_OF_2025, graceMs: 0 };
  assert.deepEqual(actionsOver([HIGH], rules), ["up"]);
  assert.deepEqual(actionsOver([LOW, LOW, LOW], rules), ["hold", "hold", "down"]);
  assert.deepEqual(
    actionsOver([LOW, LOW, MIDDLE, LOW, LOW, HIGH, LOW, LOW, LOW], rules),
    ["hold", "hold", "hold", "hold", "hold", "up", "hold", "hold", "down"],
  );
});

Deno.test("a load that swings around one threshold gives no advice to and fro", () => {
  const swinging = Array.from(
    { length: 20 },
    (_, n) => ({ usage: n % 2 ? 0.48 : 0.52, waiting: 0 }),
  );
  assert.deepEqual(new Set(actionsOver(swinging, RULES_OF_2025)), new Set(["hold"]));
});

Deno.test("after a change nothing is advised until it can have shown its effect", () => {
  const loads = [HIGH, HIGH, HIGH, HIGH, HIGH];
  assert.deepEqual(actionsOver(loads, RULES_OF_2025), ["up", "hold", "hold", "up", "hold"]);
  // What pointed down meanwhile counts when the time is over.
  const then = [HIGH, LOW, LOW, LOW, LOW];
  assert.deepEqual(actionsOver(then, RULES_OF_2025), ["up", "hold", "hold", "down", "hold"]);
});

Deno.test("the advice says why, and how long it holds back", () => {
  const first = decide(START, intervalOf(HIGH, 0));
  assert.equal(first.advice.reason, "95 % of the KV cache is used");
  const second = decide(first.state, intervalOf({ usage: 0, waiting: 2 }, INTERVAL_MS));
  assert.deepEqual(second.advice, {
    action: "hold",
    reason: "2.0 requests wait per worker, but the last change has 60 s more to show its effect",
  });
  assert.equal(
    decide(START, intervalOf(LOW)).advice.reason,
    "10 % of the KV cache is used, 0.0 requests wait per worker, in 1 of 3 intervals",
  );
});

Deno.test("deciding changes nothing that it is given", () => {
  const state = Object.freeze({ ...START });
  const interval = Object.freeze(intervalOf(Object.freeze({ ...HIGH })));
  assert.deepEqual(decide(state, interval), decide(state, interval));
});

Deno.test("an interval is the mean over its samples and its live workers", () => {
  const samples = [[live(0.2, 0), live(0.4, 4)], [live(0.6, 2), live(0.8, 2)]];
  assert.deepEqual(sumUp(samples, 7, { silentIsIdle: false }), {
    nowMs: 7,
    load: { usage: 0.5, waiting: 2 },
    isComplete: true,
  });
});

Deno.test("a silent worker is unknown, or idle where that was said; one never heard is unknown", () => {
  const half = [[live(0.5, 1), { state: "silent" }]] as const;
  const { load, isComplete } = sumUp(half, 0, { silentIsIdle: false });
  assert.deepEqual([load, isComplete], [{ usage: 0.5, waiting: 1 }, false]);
  const idle = sumUp(half, 0, { silentIsIdle: true });
  assert.deepEqual([idle.load, idle.isComplete], [{ usage: 0.25, waiting: 0.5 }, true]);
  const never = sumUp([[live(0.5, 1), { state: "unreported" }]], 0, { silentIsIdle: true });
  assert.deepEqual([never.load, never.isComplete], [{ usage: 0.5, waiting: 1 }, false]);
});

Deno.test("nothing seen is nothing known", () => {
  for (const samples of [[], [[]]]) {
    const { load, isComplete } = sumUp(samples, 0, { silentIsIdle: true });
    assert.deepEqual([load, isComplete], [null, false]);
  }
});
