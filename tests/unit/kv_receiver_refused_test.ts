/** What a receiver refuses, and under which name it counts it; the others are heard all the same. */

import assert from "node:assert/strict";
import { encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { encodeKvMetricsPickle } from "../../src/kv_metrics/pickle_writer.ts";
import { REFUSAL_KINDS } from "../../src/kv_metrics/refusals.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { PartsSocket } from "../support/collector.ts";
import { messageOf, metricsOf, TestReceiver } from "../support/kv_receiver.ts";
import { KvMutations } from "../support/kv_mutations.ts";
import * as p from "../support/pickle.ts";
import { until } from "../support/wait.ts";

type Refused = ReturnType<TestReceiver["refused"]>;

/** Sends messages that are all refused, and then a good one, on one connection. */
async function assertRefused(
  messages: readonly Uint8Array<ArrayBuffer>[],
  expected: Refused,
): Promise<void> {
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  for (const message of messages) push.send(message);
  push.send(messageOf(1, 7));
  await opened.shows(1, 7);
  assert.deepEqual(opened.refused(), expected);
  const { received, accepted } = opened.receiver.stats();
  assert.deepEqual([received, accepted], [messages.length + 1, 1]);
  assert.equal(opened.receiver.latest(0), null);
  assert.deepEqual(opened.receiver.health()[0]!.state, "unreported");
}

/** The message with another value in one field. */
function withValue(field: string, value: number | null): Uint8Array<ArrayBuffer> {
  return encodeKvMetricsPickle({ ...metricsOf(0, 1), [field]: value });
}

Deno.test("a fresh receiver has counted nothing, of no kind", async () => {
  await using opened = await TestReceiver.open();
  const { refused, ...counts } = opened.receiver.stats();
  assert.deepEqual(counts, { received: 0, accepted: 0, overtaken: 0, refusedPeers: 0 });
  assert.deepEqual(refused, Object.fromEntries(REFUSAL_KINDS.map((kind) => [kind, 0])));
});

Deno.test("garbage, and what is too long, is refused", async () => {
  const whole = messageOf(0, 1);
  await assertRefused([
    new Uint8Array(0),
    Uint8Array.of(0),
    new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"),
    new Uint8Array(8193).fill(0x80),
    new Uint8Array(16_384).fill(0x91),
    whole.subarray(0, -1),
    Uint8Array.of(...whole, 0x4e),
    encodeKvMetricsMsgpack(metricsOf(0, 1)).subarray(0, -1),
    Uint8Array.of(...encodeKvMetricsMsgpack(metricsOf(0, 1)), 0xc0),
    Uint8Array.of(0x92, 0xa3, 0x46, 0x6f, 0x6f, 0x01),
  ], { size: 2, encoding: 3, frame: 2, truncated: 1, trailing: 1, class: 1 });
});

Deno.test("what would run a command when Python reads it is refused by its name", async () => {
  const command = p.text("touch /tmp/loadslots_was_here");
  await assertRefused([
    p.pickle(2, p.reduce(p.global("os", "system"), command)),
    p.pickle(4, p.reduce(p.stackGlobal("posix", "system"), command)),
    p.pickle(4, p.reduce(p.stackGlobal("builtins", "eval"), p.text("1"))),
    p.pickle(4, p.reduce(p.stackGlobal("subprocess", "Popen"), command)),
    p.pickle(2, p.raw("i", ...new TextEncoder().encode("os\nsystem\n"))),
    p.pickle(2, p.join(p.OP.MARK, p.CLASS, p.OP.OBJ)),
    p.pickle(2, p.raw(0x82, 1)),
    p.pickle(2, p.raw("P", ...new TextEncoder().encode("id\n"))),
  ], { global: 4, opcode: 4 });
});

Deno.test("values that cannot be are refused by what is wrong with them", async () => {
  await assertRefused([
    withValue("kvActiveBlocks", null),
    withValue("gpuCacheUsagePerc", NaN),
    withValue("gpuCacheUsagePerc", Infinity),
    withValue("gpuCacheUsagePerc", 62.5),
    withValue("numRequestsWaiting", -1),
    p.pickle(
      4,
      p.kvMetrics([p.text("request_active_slots"), p.float(1.5)]),
    ),
  ], { missing: 1, "not-finite": 2, "out-of-range": 1, negative: 1, "not-integer": 1 });
});

Deno.test("ranks that there are not are refused, and nothing is kept of them", async () => {
  const ranks = [2, 3, 1023, 65_535, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER];
  await assertRefused(ranks.map((rank) => messageOf(rank, 1)), { rank: ranks.length });
  await assertRefused([messageOf(-1, 1)], { negative: 1 });
});

Deno.test("messages of several parts are refused whole, however good their parts are", async () => {
  await using opened = await TestReceiver.open();
  using parts = new PartsSocket(opened.endpoint);
  const good = messageOf(0, 1);
  parts.send(good, good);
  parts.send(new Uint8Array(0), good);
  parts.send(messageOf(1, 7));
  await opened.shows(1, 7);
  assert.deepEqual([opened.refused(), opened.receiver.latest(0)], [{ multipart: 2 }, null]);
});

Deno.test("a longer message costs its sender the connection, and nobody else", async () => {
  await using opened = await TestReceiver.open();
  using good = new PushSocket(opened.endpoint);
  good.send(messageOf(1, 1));
  await opened.shows(1, 1);
  using bad = new PushSocket(opened.endpoint);
  for (const byteLength of [16_385, 10_000_000]) {
    // A bomb of as many elements: it is refused before it is held.
    bad.send(new Uint8Array(byteLength).fill(0x4e));
    good.send(messageOf(1, byteLength));
    await opened.shows(1, byteLength);
    // It comes back, and what it then sends counts.
    await until("the sender is heard again", () => {
      bad.send(messageOf(0, byteLength));
      return opened.numberOf(0) === byteLength;
    }, 20);
  }
  assert.deepEqual(opened.refused(), {});
});

Deno.test("10,000 mutations of good pickles are taken or counted, each of them", async () => {
  await using opened = await TestReceiver.open({ maxRanks: 65_535 });
  using push = new PushSocket(opened.endpoint, { sendHighWaterMark: 0 });
  const mutations = new KvMutations(20_250_601);
  for (let n = 0; n < 10_000; n++) push.send(mutations.next());
  push.send(messageOf(0, 7));
  await opened.counts("received", 10_001);
  const { accepted, refused, received } = opened.receiver.stats();
  const refusals = Object.values(refused).reduce((sum, count) => sum + count, 0);
  assert.deepEqual([received, accepted + refusals, refused.internal], [10_001, 10_001, 0]);
  assert(Object.values(refused).filter((count) => count > 0).length >= 10);
  await opened.shows(0, 7);
});
