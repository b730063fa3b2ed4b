/** What SGLang's own writers publish our reader gives, and the other way round. */

import assert from "node:assert/strict";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { SlotPath } from "../support/slot_path.ts";
import { peerTests } from "./peer_tests.ts";

const GROUPS = [1, 8, 64];

/** Every section in turn, and from rank to rank other values and lengths. */
function loadOf(dpRank: number, round: number): LoadSnapshot {
  const count = dpRank * 1000 + round;
  return createLoadSnapshot({
    timestamp: Date.now() / 1000,
    dpRank,
    numRunningReqs: count,
    numUsedTokens: count * 2 ** 20,
    tokenUsage: dpRank / 64,
    genThroughput: count + 0.5,
    decodeMoments: dpRank % 3 === 0 ? Array.from({ length: dpRank * 5 }, (_, n) => n / 7) : null,
    memory: dpRank % 2 === 0 ? { weightGb: 1.5, tokenCapacity: count } : null,
    speculative: dpRank % 4 === 1 ? { acceptLength: 2.5, acceptRate: 0.75 } : null,
    lora: dpRank % 5 === 1 ? { slotsUsed: 1, slotsTotal: 8, utilization: 0.125 } : null,
    disaggregation: dpRank % 3 === 1 ? { mode: "prefill", kvTransferSpeedGbS: round } : null,
    queues: dpRank % 2 === 1 ? { waiting: count, preallocReady: 3 } : null,
  });
}

function ranksOf(dpSize: number): number[] {
  return Array.from({ length: dpSize }, (_, dpRank) => dpRank);
}

const test = await peerTests();

for (const dpSize of GROUPS) {
  test(`our reader gives what SGLang's writers publish: ${dpSize} ranks`, async (peer) => {
    using file = new SlotPath();
    using early = new ShmLoadSnapshotReader(file.path, { dpSize });
    const ranks = ranksOf(dpSize);
    const writers = await Promise.all(
      ranks.map((dpRank) => peer.openWriter(file.path, { dpSize, dpRank })),
    );
    using late = new ShmLoadSnapshotReader(file.path);
    assert.equal(late.dpSize, dpSize);
    const defaults = ranks.map((dpRank) => createLoadSnapshot({ dpRank }));
    for (const reader of [early, late]) assert.deepEqual(reader.readAll(), defaults);
    for (let round = 1; round <= 3; round++) {
      const loads = ranks.map((dpRank) => loadOf(dpRank, round));
      await Promise.all(loads.map((load, dpRank) => writers[dpRank]!.write(load)));
      for (const reader of [early, late]) {
        assert.deepEqual(reader.readAll(), loads);
        assert.deepEqual(ranks.map((rank) => reader.read(rank)), loads);
        assert(reader.health().every(({ state }) => state === "live"));
        assert.equal(reader.stats().publications, dpSize * (round + 1));
      }
    }
  });

  test(`SGLang's reader gives what our writers publish: ${dpSize} ranks`, async (peer) => {
    using file = new SlotPath();
    const early = await peer.openReader(file.path, { dpSize });
    using stack = new DisposableStack();
    const ranks = ranksOf(dpSize);
    const writers = ranks.map((dpRank) =>
      stack.use(new ShmLoadSnapshotWriter(file.path, { dpSize, dpRank }))
    );
    const late = await peer.openReader(file.path, { dpSize });
    const defaults = ranks.map((dpRank) => createLoadSnapshot({ dpRank }));
    for (const reader of [early, late]) {
      assert.deepEqual((await reader.readAll()).map(({ snapshot }) => snapshot), defaults);
    }
    for (let round = 1; round <= 3; round++) {
      const loads = ranks.map((dpRank) => loadOf(dpRank, round));
      loads.forEach((load, dpRank) => writers[dpRank]!.write(load));
      for (const reader of [early, late]) {
        assert.deepEqual((await reader.readAll()).map(({ snapshot }) => snapshot), loads);
      }
      assert.deepEqual((await early.read(dpSize - 1))?.snapshot, loads.at(-1));
    }
  });
}

test("both write into one group, and the bytes tell nobody who it was", async (peer) => {
  using file = new SlotPath();
  using other = new SlotPath();
  const dpSize = 8;
  using stack = new DisposableStack();
  for (const dpRank of ranksOf(dpSize)) {
    const load = loadOf(dpRank, 1);
    // Even ranks by Python in the one file, odd ones in the other.
    for (
      const [path, byPython] of [[file.path, dpRank % 2 === 0], [other.path, dpRank % 2 === 1]]
    ) {
      if (typeof path !== "string") continue;
      if (byPython === true) await (await peer.openWriter(path, { dpSize, dpRank })).write(load);
      else stack.use(new ShmLoadSnapshotWriter(path, { dpSize, dpRank })).write(load);
    }
  }
  assert.equal(file.bytes().length, 12 + dpSize * 16_384);
  assert.deepEqual(file.bytes().toHex(), other.bytes().toHex());
});

test("a publication of one rank is seen as such by both readers", async (peer) => {
  using file = new SlotPath();
  const python = await peer.openWriter(file.path, { dpSize: 2, dpRank: 0 });
  using ours = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  const theirs = await peer.openReader(file.path, { dpSize: 2 });
  using reader = new ShmLoadSnapshotReader(file.path);
  for (let round = 1; round <= 20; round++) {
    const before = reader.readAll();
    await python.write(loadOf(0, round));
    assert.equal(reader.read(1), before[1]);
    assert.equal(reader.read(0)?.numRunningReqs, round);
    ours.write(loadOf(1, round));
    const counts = (await theirs.readAll()).map(({ snapshot }) => snapshot.numRunningReqs);
    assert.deepEqual(counts, [round, 1000 + round]);
  }
  assert.equal(reader.stats().publications, 2 + 20 + 19);
});
