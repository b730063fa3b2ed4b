/** `poll`: what was sent before it is readable after it; and what it says when that cannot be. */

import assert from "node:assert/strict";
import { PushSocket } from "../../src/zmq/socket.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { Collector, loadOf, payloadOf } from "../support/collector.ts";
import { sleep } from "../support/wait.ts";

const RANK_0 = { dpSize: 2, dpRank: 0 } as const;
const LONG_MS = 60_000;

Deno.test("what was sent over a connection that stands is readable after one poll", async () => {
  await using collector = await Collector.open();
  using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_0);
  writer.write(loadOf(0, 0));
  await collector.shows(0, 0);
  let late = 0;
  for (let number = 1; number <= 100; number++) {
    writer.write(loadOf(0, number));
    assert.equal(await collector.reader.poll(), true);
    // Two threads of libzmq's are in between, and a busy machine may run neither in time.
    if (collector.numberOf(0) !== number) late++;
  }
  assert(late <= 20, `${late} of 100 were late`);
});

Deno.test("many messages of many ranks are readable after one poll", async () => {
  const dpSize = 64;
  await using collector = await Collector.open({ dpSize });
  using push = new PushSocket(collector.reader.endpoint, { sendHighWaterMark: 0 });
  push.send(payloadOf(0, 0));
  await collector.shows(0, 0);
  for (let n = 1; n <= 100; n++) {
    for (let rank = 0; rank < dpSize; rank++) push.send(payloadOf(rank, n));
  }
  await collector.counts("received", 1 + 100 * dpSize);
  assert.equal(await collector.reader.poll(), true);
  const { published, superseded, received } = collector.reader.stats();
  assert.equal(published + superseded, received);
  assert.deepEqual(
    collector.reader.readAll().map(({ dpRank, numRunningReqs }) => [dpRank, numRunningReqs]),
    Array.from({ length: dpSize }, (_, rank) => [rank, 100]),
  );
});

Deno.test("with nothing to wait for a poll comes to an end", async () => {
  await using collector = await Collector.open();
  for (let round = 0; round < 20; round++) assert.equal(await collector.reader.poll(), true);
  assert.deepEqual(collector.reader.readAll(), []);
});

Deno.test("many polls at once all come to an end", async () => {
  await using collector = await Collector.open();
  const polls = Array.from({ length: 100 }, () => collector.reader.poll({ timeoutMs: LONG_MS }));
  assert.deepEqual(await Promise.all(polls), Array(100).fill(true));
});

Deno.test("a poll that comes while another one is answered is not forgotten", async () => {
  await using collector = await Collector.open();
  let late = 0;
  for (let round = 0; round < 40; round++) {
    const first = collector.reader.poll();
    if (round % 2 === 1) await sleep(1);
    // Forgotten, it would be found at the worker's next heartbeat, after 500 ms.
    if (!await collector.reader.poll({ timeoutMs: 150 })) late++;
    assert.equal(await first, true);
    await sleep(10);
  }
  assert(late <= 2, `${late} of 40 were late`);
});

Deno.test("while the slot file is locked a poll says no, each in its own time", async () => {
  await using collector = await Collector.open();
  using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_0);
  {
    using _lock = collector.file.hold("exclusive");
    writer.write(loadOf(0, 1));
    await collector.counts("lockMisses", 1);
    const order: number[] = [];
    const polls = [300, 10, 0].map(async (timeoutMs) => {
      assert.equal(await collector.reader.poll({ timeoutMs }), false);
      order.push(timeoutMs);
    });
    await Promise.all(polls);
    assert.deepEqual(order, [0, 10, 300]);
    assert.equal(collector.numberOf(0), null);
  }
  assert.equal(await collector.reader.poll({ timeoutMs: LONG_MS }), true);
  assert.equal(collector.numberOf(0), 1);
});

Deno.test("a poll that waits for the lock says yes when it is free", async () => {
  await using collector = await Collector.open();
  using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_0);
  const lock = collector.file.hold("exclusive");
  let poll: Promise<boolean>;
  try {
    writer.write(loadOf(0, 1));
    await collector.counts("lockMisses", 1);
    poll = collector.reader.poll({ timeoutMs: LONG_MS });
    await collector.counts("lockMisses", collector.reader.stats().lockMisses + 5);
  } finally {
    lock[Symbol.dispose]();
  }
  assert.equal(await poll, true);
  assert.equal(collector.numberOf(0), 1);
});

Deno.test("a poll that waits says no when the collector is closed", async () => {
  await using collector = await Collector.open();
  using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_0);
  using _lock = collector.file.hold("exclusive");
  writer.write(loadOf(0, 1));
  await collector.counts("lockMisses", 1);
  const poll = collector.reader.poll({ timeoutMs: LONG_MS });
  await collector.reader.close();
  assert.equal(await poll, false);
});

Deno.test("a poll for a time that is none is refused", async () => {
  await using collector = await Collector.open();
  await assert.rejects(collector.reader.poll({ timeoutMs: NaN }), RangeError);
});
