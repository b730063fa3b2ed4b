/** What a collector says of each rank: by when it was heard, whatever the sender's clock says. */

import assert from "node:assert/strict";
import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { Collector, loadOf, payloadOf } from "../support/collector.ts";
import { loadSlot } from "../support/slot_bytes.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep, until } from "../support/wait.ts";

const RANK_0 = { dpSize: 2, dpRank: 0 } as const;
const HOUR_S = 3600;

/** Slack for the time that a test takes; no test depends on being fast. */
const SLOW_MS = 60_000;

function statesOf({ reader }: Collector): string[] {
  return reader.health().map(({ state }) => state);
}

Deno.test("ranks are unreported until they are heard", async () => {
  await using collector = await Collector.open();
  const unreported = { state: "unreported", ageMs: null };
  assert.deepEqual(
    collector.reader.health(),
    [0, 1].map((dpRank) => ({ dpRank, ...unreported })),
  );
  using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_0);
  writer.write(loadOf(0, 1));
  await collector.shows(0, 1);
  assert.deepEqual(statesOf(collector), ["live", "unreported"]);
});

Deno.test("a rank with nothing measured yet stays unreported although it was heard", async () => {
  await using collector = await Collector.open();
  using push = new PushSocket(collector.reader.endpoint);
  push.send(encodeLoadSnapshot(createLoadSnapshot()).slice());
  await collector.counts("published", 1);
  assert.deepEqual(statesOf(collector), ["unreported", "unreported"]);
});

for (
  const [clock, offsetS] of [["an hour late", -HOUR_S], ["an hour early", HOUR_S], [
    "0",
    0,
  ]] as const
) {
  Deno.test(`a sender whose clock is ${clock} is live, for its age counts from arrival`, async () => {
    await using collector = await Collector.open();
    const timestamp = offsetS === 0 ? 0 : Date.now() / 1000 + offsetS;
    using push = new PushSocket(collector.reader.endpoint);
    push.send(encodeLoadSnapshot(createLoadSnapshot({ timestamp, numRunningReqs: 1 })).slice());
    await collector.shows(0, 1);
    const [health] = collector.reader.health();
    assert.equal(health?.state, "live");
    assert(health.ageMs !== null && health.ageMs < SLOW_MS, `${health.ageMs}`);
  });
}

Deno.test("a rank that falls silent is stale, keeps its value, and comes back", async () => {
  await using collector = await Collector.open({ staleAfterMs: 50 });
  using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_0);
  writer.write(loadOf(0, 1));
  await collector.shows(0, 1);
  await until("it is stale", () => statesOf(collector)[0] === "stale");
  const [health] = collector.reader.health();
  assert(health!.ageMs! > 50);
  assert.equal(collector.numberOf(0), 1);
  await until("it is live again", () => {
    writer.write(loadOf(0, 2));
    return statesOf(collector)[0] === "live";
  });
  assert.equal(collector.numberOf(0), 2);
});

Deno.test("what an earlier collector left is stale until the rank is heard again", async () => {
  using file = new SlotPath();
  {
    await using collector = await Collector.open({ path: file.path });
    using push = new PushSocket(collector.reader.endpoint);
    push.send(payloadOf(0, 1));
    push.send(payloadOf(1, 2));
    // A snapshot is readable a moment before its arrival is noted.
    await until("both are live", () => statesOf(collector).every((state) => state === "live"));
  }
  await using collector = await Collector.open({ path: file.path });
  assert.deepEqual([collector.numberOf(0), collector.numberOf(1)], [1, 2]);
  assert.deepEqual(statesOf(collector), ["stale", "stale"]);
  using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_0);
  writer.write(loadOf(0, 3));
  await until("the rank is live", () => statesOf(collector)[0] === "live");
  assert.deepEqual([collector.numberOf(0), statesOf(collector)[1]], [3, "stale"]);
});

Deno.test("a slot that somebody garbled is corrupt until its rank is heard again", async () => {
  await using collector = await Collector.open();
  const { reader, file } = collector;
  using writer = new ZmqLoadSnapshotWriter(reader.endpoint, RANK_0);
  writer.write(loadOf(0, 1));
  await collector.shows(0, 1);
  {
    using _lock = file.hold("exclusive");
    file.patch(12, loadSlot({ numRunningReqs: 9 }).fill(0xc1, 4));
  }
  assert.deepEqual(statesOf(collector), ["corrupt", "unreported"]);
  assert.equal(collector.numberOf(0), 1, "the last good one stays");
  writer.write(loadOf(0, 2));
  await collector.shows(0, 2);
  assert.deepEqual(statesOf(collector), ["live", "unreported"]);
});

Deno.test("a limit that is none is refused, and nothing is left open", async () => {
  for (const staleAfterMs of [-1, NaN]) {
    await assert.rejects(Collector.open({ staleAfterMs }), {
      name: "RangeError",
      message: /staleAfterMs/,
    });
  }
});

Deno.test("an age is the age of what is read, not of what arrived since and was missed", async () => {
  await using collector = await Collector.open();
  const { reader, file } = collector;
  using push = new PushSocket(reader.endpoint);
  push.send(payloadOf(0, 1));
  await collector.shows(0, 1);
  const seenAtMs = performance.now();
  await sleep(100);
  push.send(payloadOf(0, 2));
  await collector.counts("published", 2);
  // The write of the next one has begun before anybody has read this one.
  file.patch(12, new Uint8Array(4));
  const [health] = reader.health();
  const leastMs = performance.now() - seenAtMs - 10;
  assert.equal(collector.numberOf(0), 1);
  assert(health!.ageMs! >= leastMs, `${health!.ageMs} ms, and seen ${leastMs} ms ago`);
  push.send(payloadOf(0, 3));
  await collector.shows(0, 3);
  assert(reader.health()[0]!.ageMs! < leastMs);
});

Deno.test("a rank that sends the same bytes again is as fresh as the last of them", async () => {
  await using collector = await Collector.open();
  const { reader } = collector;
  using push = new PushSocket(reader.endpoint);
  const same = payloadOf(0, 1);
  push.send(same);
  await collector.shows(0, 1);
  const seenAtMs = performance.now();
  await sleep(200);
  push.send(same);
  await collector.counts("published", 2);
  const { ageMs } = reader.health()[0]!;
  assert(ageMs! < performance.now() - seenAtMs - 150, `${ageMs}`);
});

Deno.test("an age is not that of a message that arrives while it is being told", async () => {
  await using collector = await Collector.open();
  const { reader } = collector;
  using push = new PushSocket(reader.endpoint);
  push.send(payloadOf(0, 1));
  await collector.shows(0, 1);
  const seenAtMs = performance.now();
  await sleep(100);
  // The reader's isolate is held up between its look and its answer, until the worker has published.
  const { health } = ShmLoadSnapshotReader.prototype;
  ShmLoadSnapshotReader.prototype.health = function () {
    const found = health.call(this);
    push.send(payloadOf(0, 2));
    while (reader.stats().batches < 2) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
    return found;
  };
  try {
    const leastMs = performance.now() - seenAtMs - 10;
    const [found] = reader.health();
    assert(found!.ageMs! >= leastMs, `${found!.ageMs} ms, and seen ${leastMs} ms ago`);
  } finally {
    ShmLoadSnapshotReader.prototype.health = health;
  }
  assert.equal(collector.numberOf(0), 2);
});
