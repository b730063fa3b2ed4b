/** A slot file that others hold, remove or shorten: the collector goes on draining and catches up. */

import assert from "node:assert/strict";
import { LockTimeoutError } from "../../src/errors.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Collector, holdings, payloadOf, returnTo } from "../support/collector.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep } from "../support/wait.ts";
import { headerBytes, slotFileBytes } from "../support/slot_bytes.ts";

/** The collector looks after its file once in each tick of the kernel's coarse clock. */
const TICK_MS = 20;

for (const mode of ["exclusive", "shared"] as const) {
  Deno.test(`while another process holds the file's ${mode} lock, draining goes on`, async () => {
    await using collector = await Collector.open();
    const { reader } = collector;
    using push = new PushSocket(reader.endpoint, { sendHighWaterMark: 0 });
    push.send(payloadOf(0, 0));
    await collector.shows(0, 0);
    {
      using _lock = collector.file.hold(mode);
      // More than all queues on the way can hold, so that it must have been taken.
      for (let n = 1; n <= 20_000; n++) push.send(payloadOf(n % 2, n));
      await collector.counts("received", 20_001);
      await collector.counts("lockMisses", 3);
      assert.equal(collector.numberOf(0), 0, "what is there stays readable");
      assert.equal(reader.health()[0]?.state, "live");
      assert.equal(await reader.poll({ timeoutMs: 50 }), false);
      assert.equal(reader.stats().published, 1);
    }
    await collector.shows(0, 20_000);
    await collector.shows(1, 19_999);
    assert.equal(reader.stats().published, 3);
    assert.equal(reader.stats().superseded, 19_998);
    const { lockMisses } = reader.stats();
    push.send(payloadOf(0, 1));
    await collector.shows(0, 1);
    assert.equal(reader.stats().lockMisses, lockMisses);
  });
}

Deno.test("closing does not wait for a lock that another process holds", async () => {
  const before = await holdings();
  {
    await using collector = await Collector.open();
    using push = new PushSocket(collector.reader.endpoint);
    using _lock = collector.file.hold("exclusive");
    push.send(payloadOf(0, 1));
    await collector.counts("lockMisses", 1);
    await collector.reader.close();
    assert.equal(await collector.reader.closed, null);
  }
  await returnTo(before);
});

Deno.test("a lock that is held when a collector opens is told, and nothing is left", async () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [null, null] }));
  const before = await holdings();
  {
    using _lock = file.hold("exclusive");
    await assert.rejects(Collector.open({ path: file.path }), (error) => {
      assert(error instanceof LockTimeoutError);
      assert.deepEqual([error.path, error.waitedMs > 0], [file.path, true]);
      return true;
    });
  }
  await returnTo(before);
  await using _collector = await Collector.open({ path: file.path });
});

Deno.test("a slot file that was removed is there again with the next snapshot", async () => {
  await using collector = await Collector.open();
  const { reader, file } = collector;
  using push = new PushSocket(reader.endpoint);
  push.send(payloadOf(0, 1));
  push.send(payloadOf(1, 1));
  await collector.shows(1, 1);
  file.unlink();
  await sleep(TICK_MS);
  push.send(payloadOf(0, 2));
  await collector.shows(0, 2);
  assert.equal(file.exists(), true);
  assert.equal(collector.numberOf(1), 1, "this reader keeps what the old file said");
  push.send(payloadOf(1, 2));
  await collector.shows(1, 2);
  using other = new ShmLoadSnapshotReader(file.path);
  assert.deepEqual(other.readAll().map((load) => load.numRunningReqs), [2, 2]);
  assert.equal(reader.stats().fileFaults, 0);
});

Deno.test("a slot file that was cut short is whole again with the next snapshot", async () => {
  await using collector = await Collector.open();
  using push = new PushSocket(collector.reader.endpoint);
  for (const [round, byteLength] of [0, 12, 100, 16_384].entries()) {
    push.send(payloadOf(1, round));
    await collector.shows(1, round);
    collector.file.truncate(byteLength);
    await sleep(TICK_MS);
    push.send(payloadOf(1, 100 + round));
    await collector.shows(1, 100 + round);
    assert.equal(collector.file.bytes().length, 12 + 2 * 16_384);
  }
});

Deno.test("a file of another group in its place is replaced, not changed", async () => {
  await using collector = await Collector.open();
  const { file } = collector;
  using push = new PushSocket(collector.reader.endpoint);
  push.send(payloadOf(0, 1));
  await collector.shows(0, 1);
  file.replace(slotFileBytes({ slots: [null, null, null] }));
  using stranger = new ShmLoadSnapshotReader(file.path);
  await sleep(TICK_MS);
  push.send(payloadOf(0, 2));
  await collector.shows(0, 2);
  assert.deepEqual(file.bytes().subarray(0, 12), headerBytes({ dpSize: 2 }));
  assert.equal(stranger.dpSize, 3, "whoever had it mapped keeps it whole");
});

Deno.test("while the path cannot be restored draining goes on, and the fault is counted", async () => {
  await using collector = await Collector.open();
  const { reader, file } = collector;
  using push = new PushSocket(reader.endpoint);
  push.send(payloadOf(0, 1));
  await collector.shows(0, 1);
  file.replace(new TextEncoder().encode("not a slot file, and not ours to overwrite"));
  await sleep(TICK_MS);
  push.send(payloadOf(0, 2));
  await collector.counts("fileFaults", 3);
  push.send(payloadOf(0, 3));
  await collector.counts("received", 3);
  assert.equal(collector.numberOf(0), 1);
  assert.equal(await reader.poll({ timeoutMs: 20 }), false);
  file.unlink();
  await collector.shows(0, 3);
  assert.equal(await reader.poll(), true);
});
