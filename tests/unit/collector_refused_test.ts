/** What a collector refuses, and under which name it counts it; the others are heard all the same. */

import assert from "node:assert/strict";
import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Collector, loadOf, PartsSocket, payloadOf } from "../support/collector.ts";
import * as msgpack from "../support/msgpack.ts";
import { until } from "../support/wait.ts";

const NO_COUNTS = {
  received: 0,
  published: 0,
  superseded: 0,
  refusedSize: 0,
  refusedMultipart: 0,
  refusedSchema: 0,
  refusedRank: 0,
  refusedPeers: 0,
  batches: 0,
  lockMisses: 0,
  fileFaults: 0,
  restores: 0,
};

function countsOf({ reader }: Collector) {
  const { slotFile: _, ...counts } = reader.stats();
  return counts;
}

/** Sends messages that are all refused, and then a good one, on one connection. */
async function assertRefused(
  messages: readonly Uint8Array<ArrayBuffer>[],
  count: "refusedSize" | "refusedSchema" | "refusedRank",
): Promise<void> {
  await using collector = await Collector.open();
  using push = new PushSocket(collector.reader.endpoint);
  for (const message of messages) push.send(message);
  push.send(payloadOf(1, 7));
  await collector.shows(1, 7);
  assert.deepEqual(countsOf(collector), {
    ...NO_COUNTS,
    received: messages.length + 1,
    [count]: messages.length,
    published: 1,
    batches: 1,
  });
  assert.equal(collector.reader.read(0), null);
}

/** A snapshot of a payload of that many bytes. */
function payloadOfSize(byteLength: number): Uint8Array<ArrayBuffer> {
  const load = loadOf(0, 7);
  const padded = (bytes: number) =>
    encodeLoadSnapshot({ ...load, extra: { pad: RawMsgpack.from("x".repeat(bytes)) } }).slice();
  const some = byteLength >> 1;
  const payload = padded(byteLength - (padded(some).length - some));
  assert.equal(payload.length, byteLength);
  return payload;
}

Deno.test("a fresh collector has counted nothing", async () => {
  await using collector = await Collector.open();
  assert.deepEqual(countsOf(collector), NO_COUNTS);
});

Deno.test("empty messages are refused by their size", async () => {
  await assertRefused(Array(10).fill(new Uint8Array(0)), "refusedSize");
});

Deno.test("garbage is refused by the schema", async () => {
  const whole = payloadOf(0, 1);
  await assertRefused([
    Uint8Array.of(0),
    new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"),
    new Uint8Array(16_380).fill(0x91),
    crypto.getRandomValues(new Uint8Array(1000)),
    whole.subarray(0, -1),
    Uint8Array.of(...whole, 0xc0),
    msgpack.payload({ dp_rank: msgpack.float(0) }).slice(),
    msgpack.payload({ num_running_reqs: msgpack.int(1) }).subarray(1),
  ], "refusedSchema");
});

Deno.test("ranks that the group does not have are refused", async () => {
  const ranks = [2, 3, 64, 65_535, 2 ** 31, 2 ** 32, -1, -2];
  await assertRefused(
    ranks.map((rank) => msgpack.payload({ dp_rank: msgpack.int(rank) }).slice()),
    "refusedRank",
  );
});

Deno.test("messages of several parts are refused whole, however good their parts are", async () => {
  await using collector = await Collector.open();
  using parts = new PartsSocket(collector.reader.endpoint);
  const good = payloadOf(0, 1);
  parts.send(good, good);
  parts.send(new Uint8Array(0), good);
  parts.send(...Array(1000).fill(good));
  parts.send(payloadOf(1, 7));
  await collector.shows(1, 7);
  assert.deepEqual(countsOf(collector), {
    ...NO_COUNTS,
    received: 4,
    refusedMultipart: 3,
    published: 1,
    batches: 1,
  });
  assert.equal(collector.reader.read(0), null);
});

Deno.test("a slot is filled to its last byte", async () => {
  for (const slotSize of [1024, 16_384, 262_144]) {
    await using collector = await Collector.open({ slotSize });
    using push = new PushSocket(collector.reader.endpoint);
    const payload = payloadOfSize(slotSize - 4);
    push.send(payload);
    await collector.shows(0, 7);
    const slot = collector.file.bytes().subarray(12, 12 + slotSize);
    assert.deepEqual(slot.subarray(4), payload);
  }
});

Deno.test("a longer message costs its sender the connection, and nobody else", async () => {
  await using collector = await Collector.open();
  const { reader } = collector;
  using good = new PushSocket(reader.endpoint);
  good.send(payloadOf(1, 1));
  await collector.shows(1, 1);
  for (const byteLength of [16_381, 20_000, 10_000_000]) {
    using bad = new PushSocket(reader.endpoint);
    bad.send(payloadOf(0, 1));
    await collector.shows(0, 1);
    bad.send(new Uint8Array(byteLength));
    good.send(payloadOf(1, byteLength));
    await collector.shows(1, byteLength);
    // It comes back, and what it then sends counts; what was on its way with the long one is lost.
    await until(`the sender of ${byteLength} bytes is heard again`, () => {
      bad.send(payloadOf(0, byteLength));
      return collector.numberOf(0) === byteLength;
    });
    await until("what it sent again has come", () => {
      bad.send(payloadOf(0, 1));
      return collector.numberOf(0) === 1;
    });
  }
  await reader.poll();
  const { received, published, superseded, refusedSize } = countsOf(collector);
  assert(received >= 13);
  assert.deepEqual([published + superseded, refusedSize], [received, 0], "no long one came in");
});
