/** The newest message of each rank, and how far it can be trusted. */

import assert from "node:assert/strict";
import { encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { encodeKvMetricsPickle, KV_METRICS_MODULES } from "../../src/kv_metrics/pickle_writer.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { messageOf, metricsOf, TestReceiver } from "../support/kv_receiver.ts";
import { KV_VECTORS } from "../support/kv_vectors.ts";
import { sleep, until } from "../support/wait.ts";

/** Slack for the time that a test takes; no test depends on being fast. */
const SLOW_MS = 60_000;

function statesOf({ receiver }: TestReceiver): string[] {
  return receiver.health().map(({ state }) => state);
}

Deno.test("each rank shows what it told last", async () => {
  await using opened = await TestReceiver.open({ dpSize: 3 });
  using push = new PushSocket(opened.endpoint);
  for (let number = 1; number <= 100; number++) {
    push.send(messageOf(0, number));
    push.send(messageOf(2, number * 2));
  }
  await opened.shows(0, 100);
  await opened.shows(2, 200);
  assert.deepEqual(opened.receiver.latest(2)?.metrics, metricsOf(2, 200));
});

Deno.test("a rank that was never heard is null and unreported, however idle others are", async () => {
  await using opened = await TestReceiver.open();
  const unreported = { state: "unreported", ageMs: null };
  assert.deepEqual(opened.receiver.health(), [0, 1].map((dpRank) => ({ dpRank, ...unreported })));
  using push = new PushSocket(opened.endpoint);
  // All zeros: an idle engine, and a message all the same.
  push.send(encodeKvMetricsPickle({ ...metricsOf(0, 0), kvActiveBlocks: 0 }));
  await opened.shows(0, 0);
  assert.equal(opened.receiver.latest(1), null);
  assert.deepEqual(statesOf(opened), ["live", "unreported"]);
});

Deno.test("without a number of ranks, health names those up to the highest that was heard", async () => {
  await using opened = await TestReceiver.open({ maxRanks: 8 });
  assert.deepEqual(opened.receiver.health(), []);
  using push = new PushSocket(opened.endpoint);
  push.send(messageOf(3, 1));
  await opened.shows(3, 1);
  assert.deepEqual(statesOf(opened), ["unreported", "unreported", "unreported", "live"]);
  push.send(messageOf(8, 1));
  await until("rank 8 is refused", () => opened.refused().rank === 1);
  assert.equal(statesOf(opened).length, 4);
});

Deno.test("a message is stamped with its arrival, by the clock of people and one that only runs", async () => {
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  const before = Date.now();
  push.send(messageOf(0, 1));
  await opened.shows(0, 1);
  const first = opened.receiver.latest(0)!;
  assert(first.arrivedAtMs >= before && first.arrivedAtMs <= Date.now());
  assert(first.ageMs >= 0 && first.ageMs < SLOW_MS);
  await sleep(30);
  const later = opened.receiver.latest(0)!;
  assert(later.ageMs >= first.ageMs + 20, `${first.ageMs}, then ${later.ageMs}`);
  assert.deepEqual({ ...later, ageMs: 0 }, { ...first, ageMs: 0 });
});

Deno.test("the metrics are the same object until the rank reports again", async () => {
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  push.send(messageOf(0, 1));
  await opened.shows(0, 1);
  const { metrics } = opened.receiver.latest(0)!;
  push.send(messageOf(1, 1));
  await opened.shows(1, 1);
  assert.equal(opened.receiver.latest(0)!.metrics, metrics);
  push.send(messageOf(0, 1));
  await until("it is another message", () => opened.receiver.latest(0)!.metrics !== metrics);
  assert.deepEqual(opened.receiver.latest(0)!.metrics, metrics);
});

Deno.test("a rank that falls silent is stale, keeps its value, and comes back", async () => {
  await using opened = await TestReceiver.open({ staleAfterMs: 50 });
  using push = new PushSocket(opened.endpoint);
  push.send(messageOf(0, 1));
  await opened.shows(0, 1);
  await until("it is stale", () => statesOf(opened)[0] === "stale");
  assert(opened.receiver.health()[0]!.ageMs! > 50);
  assert.equal(opened.numberOf(0), 1);
  await until("it is live again", () => {
    push.send(messageOf(0, 2));
    return statesOf(opened)[0] === "live";
  });
  assert.equal(opened.numberOf(0), 2);
});

Deno.test("ranks that there are not are a RangeError", async () => {
  await using opened = await TestReceiver.open();
  for (const dpRank of [-1, 2, 0.5, NaN]) {
    assert.throws(() => opened.receiver.latest(dpRank), RangeError);
  }
});

Deno.test("pickles of each module and form, and MessagePack, are told apart by their bytes", async () => {
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  let number = 0;
  const send = async (encode: (number: number) => Uint8Array<ArrayBuffer>) => {
    push.send(encode(++number));
    await opened.shows(1, number);
    assert.deepEqual(opened.receiver.latest(1)!.metrics, metricsOf(1, number));
  };
  for (const module of KV_METRICS_MODULES) {
    for (const form of ["plain", "slots", "struct"] as const) {
      for (const protocol of [4, 5] as const) {
        await send((n) => encodeKvMetricsPickle(metricsOf(1, n), { module, form, protocol }));
      }
    }
  }
  await send((n) => encodeKvMetricsMsgpack(metricsOf(1, n)));
  assert.equal(opened.receiver.stats().accepted, number);
});

Deno.test("what Python wrote arrives, and what is missing in it is refused", async () => {
  const whole = KV_VECTORS.filter(({ values }) =>
    !values.includes(null) && values.every((value) => value !== null && value >= 0)
  );
  const partial = KV_VECTORS.filter(({ values }) => values.includes(null));
  assert(whole.length >= 8 && partial.length >= 4);
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  for (const { pickle } of [...whole, ...partial]) push.send(pickle);
  await opened.counts("received", whole.length + partial.length);
  const { accepted, refused } = opened.receiver.stats();
  assert.deepEqual([accepted, refused.missing], [whole.length, partial.length]);
});

Deno.test("a sender that counts pages is understood if the page size is told", async () => {
  await using opened = await TestReceiver.open({ tokensPerBlock: 16 });
  using push = new PushSocket(opened.endpoint);
  push.send(messageOf(0, 1));
  await opened.shows(0, 1);
  const expected = { ...metricsOf(0, 1), kvActiveBlocks: 512 * 16, kvTotalBlocks: 8192 * 16 };
  assert.deepEqual(opened.receiver.latest(0)!.metrics, expected);
  push.send(encodeKvMetricsPickle({ ...metricsOf(0, 2), kvTotalBlocks: 2 ** 50 }));
  await until("it is refused", () => opened.refused()["out-of-range"] === 1);
  assert.equal(opened.numberOf(0), 1);
});
