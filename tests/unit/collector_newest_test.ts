/** Of what arrives together the newest of each rank counts, whoever sent it. */

import assert from "node:assert/strict";
import { PushSocket } from "../../src/zmq/socket.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { Collector, loadOf, payloadOf } from "../support/collector.ts";

Deno.test("while nothing can be published the newest of each rank is kept", async () => {
  await using collector = await Collector.open({ dpSize: 3 });
  const { reader } = collector;
  using push = new PushSocket(reader.endpoint);
  {
    using _lock = collector.file.hold("exclusive");
    for (let n = 1; n <= 100; n++) push.send(payloadOf(0, n));
    for (let n = 1; n <= 3; n++) push.send(payloadOf(2, n));
    await collector.counts("received", 103);
    assert.deepEqual(reader.readAll(), []);
    const { published, superseded, batches } = reader.stats();
    assert.deepEqual([published, superseded, batches], [0, 101, 0]);
  }
  await collector.counts("published", 2);
  assert.deepEqual([0, 1, 2].map((rank) => collector.numberOf(rank)), [100, null, 3]);
  const { published, superseded, batches } = reader.stats();
  assert.deepEqual([published, superseded, batches], [2, 101, 1], "one lock for both");
});

Deno.test("a refused message does not take the place of a good one", async () => {
  await using collector = await Collector.open();
  using push = new PushSocket(collector.reader.endpoint);
  {
    using _lock = collector.file.hold("exclusive");
    push.send(payloadOf(0, 1));
    push.send(payloadOf(0, 2).subarray(0, -1));
    push.send(payloadOf(9, 3));
    push.send(new Uint8Array(0));
    await collector.counts("received", 4);
  }
  await collector.shows(0, 1);
  assert.equal(collector.reader.stats().superseded, 0);
});

Deno.test("each snapshot is published, superseded or refused", async () => {
  const dpSize = 8;
  await using collector = await Collector.open({ dpSize });
  const { reader } = collector;
  using push = new PushSocket(reader.endpoint, { sendHighWaterMark: 0 });
  const total = 20_000;
  for (let n = 0; n < total; n++) push.send(payloadOf(n % (dpSize + 1), n));
  await collector.counts("received", total);
  assert.equal(await reader.poll(), true);
  const { received, published, superseded, refusedRank } = reader.stats();
  assert.equal(received, total);
  assert.equal(refusedRank, Math.floor(total / (dpSize + 1)));
  assert.equal(published + superseded + refusedRank, total);
  const last = Array.from({ length: dpSize }, (_, rank) => {
    const n = total - 1 - (total - 1) % (dpSize + 1) + rank;
    return n < total ? n : n - (dpSize + 1);
  });
  assert.deepEqual(reader.readAll().map((load) => load.numRunningReqs), last);
});

Deno.test("of two writers of one rank the one that was heard last counts", async () => {
  await using collector = await Collector.open();
  const rank = { dpSize: 2, dpRank: 0 };
  using one = new ZmqLoadSnapshotWriter(collector.reader.endpoint, rank);
  using other = new ZmqLoadSnapshotWriter(collector.reader.endpoint, rank);
  for (let n = 0; n < 20; n += 2) {
    one.write(loadOf(0, n));
    await collector.shows(0, n);
    other.write(loadOf(0, n + 1));
    await collector.shows(0, n + 1);
  }
  assert.deepEqual(collector.reader.health().map(({ state }) => state), ["live", "unreported"]);
});

Deno.test("two writers of one rank at full speed never garble it", async () => {
  await using collector = await Collector.open();
  using one = new PushSocket(collector.reader.endpoint);
  using other = new PushSocket(collector.reader.endpoint);
  const seen = new Set<number>();
  for (let n = 0; n < 5000; n++) {
    // Equal but for the sender's mark, in a field beside the number.
    one.send(payloadOf(0, n));
    other.send(payloadOf(0, 1_000_000 + n));
    if (n % 100 === 0) await collector.reader.poll();
    const number = collector.numberOf(0);
    if (number !== null) seen.add(number);
  }
  await collector.reader.poll();
  assert(seen.size > 10);
  assert([...seen].every((n) => n % 1_000_000 < 5000));
  assert.equal(collector.reader.health()[0]?.state, "live");
  assert.equal(collector.reader.stats().refusedSchema, 0);
});
