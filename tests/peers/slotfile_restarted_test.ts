/** An engine that is restarted, on the same path, while services watch. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { Child } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep, until } from "../support/wait.ts";
import { stepLoad } from "../support/checked_loads.ts";
import { PythonPeer } from "./peer.ts";
import { peerTests } from "./peer_tests.ts";

const WATCHER = new URL("./fixtures/watching_reader.ts", import.meta.url).href;
const RESTARTS = 50;

/** What a watcher answers. */
interface Answer {
  readonly dpSize: number | null;
  readonly ranks: readonly (readonly [dpRank: number, numRunningReqs: number])[];
  readonly attaches: number;
}

/** A service in a process of its own: what kills it fails one test, not the run. */
function watch(path: string, mode: "hot" | "idle"): Child {
  return Child.deno(["--allow-ffi", "--allow-read", WATCHER, path, mode]);
}

/** Starts a group on the path and publishes one step in each rank, then closes the writers. */
async function runGroup(peer: PythonPeer, path: string, dpSize: number, step: number) {
  const ranks = Array.from({ length: dpSize }, (_, dpRank) => dpRank);
  const writers = await Promise.all(
    ranks.map((dpRank) => peer.openWriter(path, { dpSize, dpRank })),
  );
  await Promise.all(writers.map((writer, dpRank) => writer.write(stepLoad(step, dpRank))));
  return {
    ranks: ranks.map((dpRank) => [dpRank, step]),
    close: () => Promise.all(writers.map((writer) => writer.close())),
  };
}

const test = await peerTests();

for (const mode of ["hot", "idle"] as const) {
  test(`a reader (${mode}) survives and follows 50 restarts with other ranks`, async (peer) => {
    using file = new SlotPath();
    await using watcher = watch(file.path, mode);
    for (let restart = 1; restart <= RESTARTS; restart++) {
      // 8, 2, 8, 2, and now and then one rank only.
      const dpSize = restart % 2 === 1 ? 8 : restart % 10 === 0 ? 1 : 2;
      const group = await runGroup(peer, file.path, dpSize, restart);
      const answer = await watcher.ask<Answer>("look");
      assert.deepEqual([answer.dpSize, answer.ranks], [dpSize, group.ranks]);
      await group.close();
    }
    const { attaches } = await watcher.ask<Answer>("look");
    assert(attaches >= RESTARTS, `attached ${attaches} times`);
    const { code, signal, stderr } = await watcher.end();
    assert.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: "" });
  });
}

test("a writer of SGLang's that is restarted in a new process is followed", async (first) => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path);
  await runGroup(first, file.path, 8, 1);
  assert.deepEqual(reader.readAll().map(({ numRunningReqs }) => numRunningReqs), Array(8).fill(1));
  first.kill("SIGKILL");
  await first.status;
  for (const [step, dpSize] of [[2, 8], [3, 2], [4, 8]] as const) {
    await using next = await PythonPeer.start();
    await runGroup(next, file.path, dpSize, step);
    const steps = reader.readAll().map(({ numRunningReqs }) => numRunningReqs);
    assert.deepEqual(steps, Array(dpSize).fill(step));
  }
  assert.equal(reader.fault, null);
});

test("a group that is smaller now keeps publishing under a hot reader", async (peer) => {
  using file = new SlotPath();
  await using watcher = watch(file.path, "hot");
  const large = await runGroup(peer, file.path, 64, 1);
  assert.equal((await watcher.ask<Answer>("look")).ranks.length, 64);
  await large.close();
  const writer = await peer.openWriter(file.path, { dpSize: 2, dpRank: 0 });
  const loop = await writer.writeLoop(createLoadSnapshot(), { moments: 7, count: 3000 });
  const { steps } = await loop.result();
  // The rank that did not start again is still in the file: SGLang does not clear it.
  assert.deepEqual((await watcher.ask<Answer>("look")).ranks, [[0, steps], [1, 1]]);
  assert.equal((await watcher.end()).code, 0);
});

test("our writer survives that SGLang restarts its group with fewer ranks", async (peer) => {
  using file = new SlotPath();
  using ours = new ShmLoadSnapshotWriter(file.path, { dpSize: 8, dpRank: 7 });
  using reader = new ShmLoadSnapshotReader(file.path);
  for (let step = 1; step <= 10; step++) {
    ours.write(stepLoad(step, 7));
    const group = await runGroup(peer, file.path, 2, step);
    // Beyond the end of the file now: it must not kill, and the next one restores the group.
    ours.write(stepLoad(step, 7));
    await sleep(15);
    ours.write(stepLoad(step, 7));
    await until("it is read", () => reader.dpSize === 8 && reader.read(7)?.numRunningReqs === step);
    await group.close();
  }
});

test("a file that is swept away is read again when its writers restore it", async (peer) => {
  using file = new SlotPath();
  using ours = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  for (let step = 1; step <= 5; step++) {
    file.unlink();
    await sleep(15);
    ours.write(stepLoad(step));
    const theirs = await peer.openReader(file.path, { dpSize: 2 });
    assert.equal((await theirs.read(0))?.snapshot.numRunningReqs, step);
    await theirs.close();
    await until("it is read", () => reader.read(0)?.numRunningReqs === step);
  }
  assert.equal(ours.stats().restores, 5);
});
