/** Processes that are stopped with the lock in their hands: others answer in the meantime. */

import assert from "node:assert/strict";
import { LockTimeoutError } from "../../src/errors.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep, until } from "../support/wait.ts";
import { LoadCheck, MOMENTS, readHot } from "../support/checked_loads.ts";
import type { PythonPeer } from "./peer.ts";
import { peerTests } from "./peer_tests.ts";

/** A letter of the kernel's: T is stopped. */
function stateOf(peer: PythonPeer): string | undefined {
  return /\) (\w)/.exec(Deno.readTextFileSync(`/proc/${peer.pid}/stat`))?.[1];
}

async function stop(peer: PythonPeer): Promise<void> {
  peer.kill("SIGSTOP");
  await until("the process is stopped", () => stateOf(peer) === "T");
}

const test = await peerTests();

test("a reader answers while a stopped process holds the lock, and follows later", async (peer) => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0, lockTimeoutMs: 1 });
  writer.write(createLoadSnapshot({ numRunningReqs: 1 }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const load = reader.read(0);
  const lock = await peer.holdLock(file.path, "exclusive");
  await stop(peer);
  // A write under way: the length is 0, which needs no lock; then a part of the length, which does.
  file.patch(12, new Uint8Array(4));
  assert.equal(reader.read(0), load);
  file.patch(12, Uint8Array.of(1, 0, 0, 0));
  assert.equal(reader.read(0), load);
  assert.deepEqual(reader.readAll(), [load]);
  assert(reader.stats().lockMisses >= 2);
  assert.equal(reader.health()[0]?.state, "live");
  assert.throws(() => writer.write(createLoadSnapshot({ numRunningReqs: 2 })), LockTimeoutError);
  assert.equal(stateOf(peer), "T", "all of this while the holder was stopped");

  peer.kill("SIGCONT");
  await lock.release();
  writer.write(createLoadSnapshot({ numRunningReqs: 2 }));
  assert.equal(reader.read(0)?.numRunningReqs, 2);
});

test("a reader survives writers that are stopped in the middle of a write", async (peer) => {
  using file = new SlotPath();
  const writer = await peer.openWriter(file.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const loop = await writer.writeLoop(createLoadSnapshot(), { moments: MOMENTS });
  const check = new LoadCheck();
  let held = 0;
  for (let round = 0; round < 200 && held < 20; round++) {
    const pauseAt = performance.now() + Math.random() * 3;
    await readHot(() => check.take(reader.read(0)), () => performance.now() > pauseAt);
    await stop(peer);
    if (!file.isFree()) {
      held++;
      const { reads } = reader.stats();
      for (let n = 0; n < 100; n++) check.take(reader.read(0));
      assert.equal(reader.stats().reads, reads + 100);
      assert.equal(stateOf(peer), "T", "the reader answered while the writer was stopped");
    }
    peer.kill("SIGCONT");
    const before = check.seen;
    await readHot(() => check.take(reader.read(0)), () => check.seen > before);
  }
  assert(held > 0, "the writer was stopped with the lock at least once");
  await loop.stop();
  const { steps } = await loop.result();
  check.take(reader.read(0));
  assert.equal(check.step, steps);
});

test("a stopped reader of SGLang's keeps no reader of ours waiting", async (peer) => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0, lockTimeoutMs: 1 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const lock = await peer.holdLock(file.path, "shared");
  await stop(peer);
  file.patch(12, new Uint8Array(4));
  assert.equal(reader.read(0), null);
  assert.equal(reader.stats().lockMisses, 0);
  assert.throws(() => writer.write(createLoadSnapshot()), LockTimeoutError);
  peer.kill("SIGCONT");
  await lock.release();
  await sleep(0);
  writer.write(createLoadSnapshot());
  assert.deepEqual(reader.read(0), createLoadSnapshot());
});
