/** A collector's life: it opens, tells where it is bound, and leaves nothing when it is closed. */

import assert from "node:assert/strict";
import { ZmqShmLoadSnapshotReader } from "../../src/zmq/reader.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { Collector, holdings, loadOf, LOOPBACK, returnTo } from "../support/collector.ts";
import { SlotPath } from "../support/slot_path.ts";
import { matches } from "../support/raw_libc.ts";
import { TempIpc } from "../support/zmq.ts";

const RANK_1 = { dpSize: 2, dpRank: 1 } as const;

Deno.test("a wildcard port is told, and writers reach it there", async () => {
  await using collector = await Collector.open();
  const { reader, file } = collector;
  assert.match(reader.endpoint, /^tcp:\/\/127\.0\.0\.1:[1-9][0-9]{3,4}$/);
  assert.deepEqual([reader.path, reader.dpSize], [file.path, 2]);
  using writer = new ZmqLoadSnapshotWriter(reader.endpoint, RANK_1);
  writer.write(loadOf(1, 7));
  await collector.shows(1, 7);
  assert.equal(reader.read(0), null);
  assert.deepEqual(reader.readAll().map(({ dpRank }) => dpRank), [1]);
});

Deno.test("an ipc endpoint is told as it is, and its files go with the collector", async () => {
  using ipc = new TempIpc();
  {
    await using collector = await Collector.open({ endpoint: ipc.endpoint });
    assert.equal(collector.reader.endpoint, ipc.endpoint);
    using writer = new ZmqLoadSnapshotWriter(ipc.endpoint, RANK_1);
    writer.write(loadOf(1, 7));
    await collector.shows(1, 7);
    assert.deepEqual(matches(`${ipc.path}*`), [ipc.path, ipc.lockPath]);
  }
  assert.deepEqual(matches(`${ipc.path}*`), []);
});

Deno.test("closing lets go of every thread and descriptor", async () => {
  const before = await holdings();
  for (let round = 0; round < 5; round++) {
    await using collector = await Collector.open();
    using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_1);
    writer.write(loadOf(1, round));
    await collector.shows(1, round);
  }
  await returnTo(before);
});

Deno.test("closing keeps the slot file with what it holds", async () => {
  using file = new SlotPath();
  {
    await using collector = await Collector.open({ path: file.path });
    using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, RANK_1);
    writer.write(loadOf(1, 7));
    await collector.shows(1, 7);
  }
  await using collector = await Collector.open({ path: file.path });
  assert.equal(collector.numberOf(1), 7);
  assert.deepEqual(file.all(), [file.path]);
});

Deno.test("the end of an await using scope closes, and closed tells so", async () => {
  using file = new SlotPath();
  let kept: ZmqShmLoadSnapshotReader;
  {
    await using reader = await ZmqShmLoadSnapshotReader.open(LOOPBACK, file.path, { dpSize: 1 });
    kept = reader;
  }
  assert.equal(await kept.closed, null);
  assert.throws(() => kept.readAll(), TypeError);
});

Deno.test("an error in the scope closes as well, and comes through", async () => {
  const before = await holdings();
  await assert.rejects(async () => {
    await using _collector = await Collector.open();
    throw new Error("on purpose");
  }, /on purpose/);
  await returnTo(before);
});

Deno.test("closing twice, at once or later, is fine", async () => {
  await using collector = await Collector.open();
  const { reader } = collector;
  const first = reader.close();
  await Promise.all([first, reader.close(), reader[Symbol.asyncDispose]()]);
  await reader.close();
  assert.equal(await reader.closed, null);
});

Deno.test("a closed reader refuses to read, and still tells its counts", async () => {
  await using collector = await Collector.open();
  const { reader } = collector;
  using writer = new ZmqLoadSnapshotWriter(reader.endpoint, RANK_1);
  writer.write(loadOf(1, 7));
  await collector.shows(1, 7);
  const closing = reader.close();
  // At once, not only when the worker has ended.
  assert.throws(() => reader.read(1), { name: "TypeError", message: /the reader is closed$/ });
  await closing;
  assert.throws(() => reader.readAll(), { name: "TypeError", message: /the reader is closed$/ });
  assert.throws(() => reader.health(), { name: "TypeError", message: /the reader is closed$/ });
  await assert.rejects(reader.poll(), { name: "TypeError", message: /the reader is closed$/ });
  assert.equal(reader.stats().published, 1);
});

Deno.test("of two collectors in one process each has its own ranks", async () => {
  await using one = await Collector.open();
  await using other = await Collector.open();
  using toOne = new ZmqLoadSnapshotWriter(one.reader.endpoint, RANK_1);
  using toOther = new ZmqLoadSnapshotWriter(other.reader.endpoint, RANK_1);
  toOne.write(loadOf(1, 1));
  toOther.write(loadOf(1, 2));
  await one.shows(1, 1);
  await other.shows(1, 2);
  await one.reader.close();
  toOther.write(loadOf(1, 3));
  await other.shows(1, 3);
});
