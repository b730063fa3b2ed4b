/** Publishing over ZeroMQ: what goes out, what is refused, and that nothing waits. */

import assert from "node:assert/strict";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { generateCurveKeys } from "../../src/zmq/curve.ts";
import { PullSocket } from "../../src/zmq/socket.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { assertNothingMore, holdings, receive } from "../support/zmq.ts";

const LIMITS = { maxMessageSize: 16384 };
const LOOPBACK = "tcp://127.0.0.1:*";
const NOBODY = "tcp://127.0.0.1:9";
const RANK = { dpSize: 4, dpRank: 2 };

function loadOf(numRunningReqs: number) {
  return createLoadSnapshot({ timestamp: 1700000000.5, dpRank: 2, numRunningReqs });
}

function receivedLoad(pull: PullSocket): number | null {
  const received = receive(pull);
  return received instanceof Uint8Array ? decodeLoadSnapshot(received).numRunningReqs : null;
}

Deno.test("the payload goes out as it is encoded, also when only values change", () => {
  using pull = new PullSocket(LOOPBACK, LIMITS);
  using writer = new ZmqLoadSnapshotWriter(pull.endpoint, RANK);
  for (const count of [1, 2, 100, 70_000, 0]) {
    const load = loadOf(count);
    assert.equal(writer.write(load), "sent");
    assert.deepEqual(receive(pull), encodeLoadSnapshot(load));
  }
  assert.deepEqual(writer.stats(), { sent: 5, dropped: 0, skipped: 0 });
});

Deno.test("a collector that comes later gets the newest, and only that", () => {
  const early = new PullSocket(LOOPBACK, LIMITS);
  const { endpoint } = early;
  early.close();
  using writer = new ZmqLoadSnapshotWriter(endpoint, RANK);
  for (let count = 1; count <= 100; count++) assert.equal(writer.write(loadOf(count)), "sent");
  using late = new PullSocket(endpoint, LIMITS);
  assert.equal(receivedLoad(late), 100);
  writer.write(loadOf(101));
  assert.equal(receivedLoad(late), 101);
});

Deno.test("a collector that starts again is found again", () => {
  let pull = new PullSocket(LOOPBACK, LIMITS);
  const { endpoint } = pull;
  using writer = new ZmqLoadSnapshotWriter(endpoint, RANK);
  writer.write(loadOf(1));
  assert.equal(receivedLoad(pull), 1);
  for (let round = 2; round < 5; round++) {
    pull.close();
    pull = new PullSocket(endpoint, LIMITS);
    // The first ones may be lost in a connection whose end is not noticed yet.
    let seen: unknown = null;
    for (let attempt = 0; seen === null && attempt < 100; attempt++) {
      writer.write(loadOf(round));
      seen = receive(pull, 100);
    }
    assert.notEqual(seen, null);
  }
  pull.close();
});

Deno.test("publish writes every so many calls, or when forced", () => {
  using writer = new ZmqLoadSnapshotWriter(NOBODY, { ...RANK, publishInterval: 3 });
  const made: number[] = [];
  const publish = (count: number, force = false) =>
    writer.publish(() => {
      made.push(count);
      return loadOf(count);
    }, { force });
  const outcomes = [1, 2, 3, 4].map((count) => publish(count));
  assert.deepEqual(outcomes, [false, false, true, false]);
  assert.equal(publish(5, true), true);
  assert.deepEqual([6, 7, 8].map((count) => publish(count)), [false, false, true]);
  assert.deepEqual(made, [3, 5, 8]);
  assert.deepEqual(writer.stats(), { sent: 3, dropped: 0, skipped: 5 });
});

Deno.test("a load that nobody could store is refused, and nothing is sent", () => {
  using pull = new PullSocket(LOOPBACK, { maxMessageSize: 1 << 20 });
  using writer = new ZmqLoadSnapshotWriter(pull.endpoint, RANK);
  assert.throws(() => writer.write(createLoadSnapshot({ dpRank: 3 })), {
    name: "RangeError",
    message: "Cannot write load of dp rank 3: the writer is for rank 2",
  });
  const decodeMoments = new Array(4000).fill(1);
  const large = createLoadSnapshot({ dpRank: 2, decodeMoments });
  assert.throws(() => writer.write(large), {
    name: "RangeError",
    message: /^Cannot write load of 36\d{3} bytes: a slot holds 16380$/,
  });
  assert.deepEqual(writer.stats(), { sent: 0, dropped: 0, skipped: 0 });
  assert.equal(receive(pull, 50), null);
  using roomy = new ZmqLoadSnapshotWriter(pull.endpoint, { ...RANK, slotSize: 524288 });
  assert.equal(roomy.write(large), "sent");
  assert.deepEqual(receive(pull), encodeLoadSnapshot(large));
});

Deno.test("options and endpoints that cannot be are refused", () => {
  const before = holdings();
  for (
    const [endpoint, options] of [
      [NOBODY, { dpSize: 0, dpRank: 0 }],
      [NOBODY, { dpSize: 2, dpRank: 2 }],
      [NOBODY, { dpSize: 2, dpRank: -1 }],
      [NOBODY, { ...RANK, publishInterval: NaN }],
      [NOBODY, { ...RANK, slotSize: 3 }],
      ["tcp://127.0.0.1:*", RANK],
      ["inproc://x", RANK],
    ] as const
  ) {
    assert.throws(() => new ZmqLoadSnapshotWriter(endpoint, options), RangeError);
  }
  assert.throws(() => new ZmqLoadSnapshotWriter(NOBODY, { ...RANK, libzmqPath: "/nowhere" }), {
    name: "LibzmqError",
  });
  assertNothingMore(before);
});

Deno.test("a writer with keys gets in where they are asked for", () => {
  const [keys, mine] = [generateCurveKeys(), generateCurveKeys()];
  const allowedClients = [mine.publicKey];
  using pull = new PullSocket(LOOPBACK, { ...LIMITS, curve: { keys, allowedClients } });
  const curve = { serverKey: keys.publicKey, keys: mine };
  using writer = new ZmqLoadSnapshotWriter(pull.endpoint, { ...RANK, curve });
  writer.write(loadOf(7));
  assert.equal(receivedLoad(pull), 7);
});

Deno.test("a closed writer refuses, closing twice is fine, and nothing is left", () => {
  new ZmqLoadSnapshotWriter(NOBODY, RANK).close();
  const before = holdings();
  const writer = new ZmqLoadSnapshotWriter("tcp://192.0.2.1:9", RANK);
  writer.write(loadOf(1));
  writer.close();
  writer.close();
  writer[Symbol.dispose]();
  assert.throws(() => writer.write(loadOf(2)), { name: "TypeError" });
  assertNothingMore(before);
});
