/** Requests that are submitted to a simulated rank from outside. */

import assert from "node:assert/strict";
import { SimulatedEngine } from "../../examples/engine.ts";
import { Completion } from "../../examples/engine/completion.ts";
import { NO_ARRIVALS } from "../../examples/engine/workload.ts";
import type { LoadSnapshot } from "../../mod.ts";

/** An engine of one rank that has nothing else to do, and all that it published. */
function idleEngine() {
  const published: LoadSnapshot[] = [];
  const publisher = { publish: (make: () => LoadSnapshot) => published.push(make()) };
  const engine = new SimulatedEngine([publisher], { arrivals: NO_ARRIVALS });
  engine.step(0);
  return { engine, published, scheduler: engine.schedulers[0]! };
}

const NEVER = new AbortController().signal;

Deno.test("a completion gives each token, and is published while it runs", async () => {
  const { engine, published, scheduler } = idleEngine();
  const completion = new Completion(scheduler, { promptTokens: 100, outputTokens: 50 }, NEVER);
  assert.equal(scheduler.measure().numWaitingReqs, 1);
  engine.step(30);
  assert.equal(scheduler.measure().numRunningReqs, 1);
  engine.step(5_000);

  let tokens = 0;
  for await (const more of completion) tokens += more;
  assert.equal(tokens, 50);
  assert.ok(published.some((load) => load.numRunningReqs === 1 && load.numUsedTokens > 100));
  assert.deepEqual(state(published.at(-1)!), { running: 0, waiting: 0, tokens: 0 });
});

Deno.test("a completion that is aborted leaves no trace, wherever it was", async () => {
  const { engine, scheduler } = idleEngine();
  // Submitted, prefilled in one batch, prefilled in chunks, decoding.
  for (const [promptTokens, afterMs] of [[100, 0], [100, 4], [60_000, 400], [100, 200]] as const) {
    const abort = new AbortController();
    const completion = new Completion(
      scheduler,
      { promptTokens, outputTokens: 8_000 },
      abort.signal,
    );
    engine.step(afterMs);
    abort.abort(new Error("left"));
    await assert.rejects(async () => {
      for await (const _ of completion);
    }, /left/);
    engine.step(2_000);
    assert.deepEqual(state(scheduler.measure()), { running: 0, waiting: 0, tokens: 0 });
    assert.equal(scheduler.pool.used, 0);
  }
});

Deno.test("leaving the iteration gives the request up", async () => {
  const { engine, scheduler } = idleEngine();
  const completion = new Completion(scheduler, { promptTokens: 9, outputTokens: 8_000 }, NEVER);
  engine.step(500);
  for await (const tokens of completion) {
    assert.ok(tokens > 0);
    break;
  }
  engine.step(500);
  assert.deepEqual(state(scheduler.measure()), { running: 0, waiting: 0, tokens: 0 });
});

Deno.test("a signal that is aborted already admits nothing", async () => {
  const { engine, scheduler } = idleEngine();
  const asked = { promptTokens: 9, outputTokens: 9 };
  const completion = new Completion(scheduler, asked, AbortSignal.abort(new Error("left")));
  engine.step(500);
  await assert.rejects(completion[Symbol.asyncIterator]().next(), /left/);
  assert.equal(scheduler.prefill.uncachedTokens, 0);
});

function state(load: LoadSnapshot) {
  return {
    running: load.numRunningReqs,
    waiting: load.numWaitingReqs,
    tokens: load.numUsedTokens,
  };
}
