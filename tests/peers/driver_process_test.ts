/** The driver as a process: loops, locks, and how it ends. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { PythonPeer } from "./peer.ts";
import { peerTests } from "./peer_tests.ts";
import { TempShm } from "./temp_shm.ts";

const test = await peerTests();

test("a write loop goes on beside other requests and counts its steps", async (peer) => {
  using file = new TempShm();
  const writer = await peer.openWriter(file.path, { dpSize: 1, dpRank: 0 });
  const reader = await peer.openReader(file.path, { dpSize: 1 });
  const loop = await writer.writeLoop(createLoadSnapshot(), { intervalUs: 1000, moments: 3 });
  const read = await reader.read(0);
  assert(read !== null && read.snapshot.numRunningReqs >= 1);
  assert.equal(read.snapshot.numTotalTokens, read.snapshot.numRunningReqs);
  assert.equal(read.snapshot.decodeMoments?.length, read.snapshot.numRunningReqs % 4);
  await loop.stop();
  const result = await loop.result();
  assert.equal((await reader.read(0))?.snapshot.numRunningReqs, result.steps);
  assert(result.latencyUs.p50 > 0 && result.latencyUs.p50 <= result.latencyUs.max);
});

test("loops end at their count, and at their time", async (peer) => {
  using file = new TempShm();
  const writer = await peer.openWriter(file.path, { dpSize: 1, dpRank: 0 });
  const reader = await peer.openReader(file.path, { dpSize: 1 });
  const counted = await writer.writeLoop(createLoadSnapshot(), { count: 100 });
  assert.equal((await counted.result()).steps, 100);
  const timed = await reader.readLoop({ seconds: 0.05, intervalUs: 1000 });
  assert((await timed.result()).seconds >= 0.05);
  assert.equal((await writer.timeWrite(createLoadSnapshot(), { calls: 10, rounds: 3 })).length, 3);
  assert.equal((await reader.timeRead(null, { calls: 10, rounds: 3 })).length, 3);
});

test("a loop whose step raises says so", async (peer) => {
  using file = new TempShm();
  const writer = await peer.openWriter(file.path, { dpSize: 2, dpRank: 1 });
  const loop = await writer.writeLoop(createLoadSnapshot({ dpRank: 0 }));
  await assert.rejects(loop.result(), { name: "PeerError", type: "ValueError" });
});

test("an exclusive lock keeps another peer's writer waiting until it is released", async (peer) => {
  using file = new TempShm();
  await using other = await PythonPeer.start();
  const writer = await peer.openWriter(file.path, { dpSize: 1, dpRank: 0 });
  const lock = await other.holdLock(file.path, "exclusive");
  let written = false;
  const write = writer.write(createLoadSnapshot()).then(() => {
    written = true;
  });
  // The other peer answers in the meantime, so the time is well spent.
  await other.shmPathFor(["a"]);
  assert.equal(written, false);
  await lock.release();
  await write;
  await other.holdLock(file.path, "shared", { seconds: 0.05 });
  await writer.write(createLoadSnapshot());
});

test("a killed peer rejects what is asked of it", async (peer) => {
  using file = new TempShm();
  const reader = await peer.openReader(file.path, { dpSize: 1 });
  const loop = await reader.readLoop({ intervalUs: 1000 });
  const result = assert.rejects(loop.result(), /The Python peer ended before it answered/);
  peer.kill("SIGKILL");
  await result;
  assert.equal((await peer.status).signal, "SIGKILL");
  await assert.rejects(peer.shmPathFor(["a"]), /ended before it answered shm_path_for/);
});

test("a stopped peer is ended all the same, and twice is fine", async (peer) => {
  assert.equal(peer.said, "");
  peer.kill("SIGSTOP");
  await peer[Symbol.asyncDispose]();
  await peer[Symbol.asyncDispose]();
  assert.equal((await peer.status).success, true);
});

test("a peer that waits for a lock for ever is killed at the end", async (peer) => {
  using file = new TempShm();
  await using holder = await PythonPeer.start();
  const writer = await peer.openWriter(file.path, { dpSize: 1, dpRank: 0 });
  await holder.holdLock(file.path, "shared");
  const write = assert.rejects(writer.write(createLoadSnapshot()), /ended before it answered/);
  await peer[Symbol.asyncDispose]();
  await write;
});
