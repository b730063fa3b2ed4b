/** What a reader gives of a file that is in order. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { SlotPath } from "../support/slot_path.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";

Deno.test("a reader learns the number of ranks from the header", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [null, null, null] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.equal(reader.dpSize, 3);
  assert.equal(reader.fault, null);
  assert.equal(reader.path, file.path);
});

Deno.test("read gives one rank, and readAll those that have a snapshot, in order", () => {
  using file = new SlotPath();
  using three = new ShmLoadSnapshotWriter(file.path, { dpSize: 4, dpRank: 3 });
  using one = new ShmLoadSnapshotWriter(file.path, { dpSize: 4, dpRank: 1 });
  using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 4 });
  const loads = [1, 3].map((dpRank) => createLoadSnapshot({ dpRank, genThroughput: dpRank * 1.5 }));
  one.write(loads[0]!);
  three.write(loads[1]!);
  assert.deepEqual(reader.readAll(), loads);
  assert.deepEqual([0, 1, 2, 3].map((rank) => reader.read(rank)), [null, loads[0], null, loads[1]]);
});

Deno.test("an unchanged rank gives the identical object, and one that published another", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const first = reader.read(1);
  assert(first !== null);
  for (let n = 0; n < 3; n++) {
    assert.equal(reader.read(1), first);
    assert.equal(reader.readAll()[0], first);
  }
  writer.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: 1 }));
  const second = reader.read(1);
  assert.notEqual(second, first);
  assert.deepEqual(first, createLoadSnapshot({ dpRank: 1 }), "what was given out is not changed");
  assert.equal(reader.readAll()[0], second);
});

Deno.test("two readers and a writer in one isolate do not hinder each other", () => {
  using file = new SlotPath();
  using one = new ShmLoadSnapshotReader(file.path);
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  using two = new ShmLoadSnapshotReader(file.path);
  for (let numRunningReqs = 1; numRunningReqs <= 100; numRunningReqs++) {
    writer.write(createLoadSnapshot({ numRunningReqs }));
    for (const reader of [one, two]) {
      assert.equal(reader.read(0)?.numRunningReqs, numRunningReqs);
    }
  }
  assert.deepEqual([one, two].map((reader) => reader.stats().lockMisses), [0, 0]);
  two.close();
  writer.write(createLoadSnapshot({ numRunningReqs: 101 }));
  assert.equal(one.read(0)?.numRunningReqs, 101);
});

Deno.test("a reader that was there before the file attaches it when it appears", () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.equal(reader.dpSize, null);
  assert.equal(reader.fault?.reason, "absent");
  assert.deepEqual([reader.read(0), reader.readAll(), reader.health()], [null, [], []]);
  file.put(new Uint8Array(0));
  assert.deepEqual([reader.readAll(), reader.fault?.reason], [[], "unfinished"]);
  file.put(new Uint8Array(32_780));
  assert.deepEqual([reader.readAll(), reader.fault?.reason], [[], "unfinished"]);
  file.put(slotFileBytes({ slots: [null, loadSlot({ dpRank: 1, numRunningReqs: 4 })] }));
  assert.equal(reader.read(1)?.numRunningReqs, 4);
  assert.deepEqual([reader.dpSize, reader.fault, reader.stats().attaches], [2, null, 1]);
});

Deno.test("a reader that knows the size tells of each rank before the file is there", () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 2 });
  assert.equal(reader.dpSize, 2);
  const unreported = { state: "unreported", ageMs: null };
  assert.deepEqual(reader.health(), [{ dpRank: 0, ...unreported }, { dpRank: 1, ...unreported }]);
  assert.throws(() => reader.read(2), RangeError);
});

Deno.test("a rank that the group does not have is refused", () => {
  using file = new SlotPath();
  for (const there of [false, true]) {
    if (there) file.put(slotFileBytes({ slots: [loadSlot({}), null] }));
    using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 2 });
    for (const dpRank of [2, 65_535, -1, -2, -3, 1.5, NaN, Infinity, -Infinity]) {
      assert.throws(() => reader.read(dpRank), { name: "RangeError" }, `rank ${dpRank}`);
    }
    assert.deepEqual(reader.read(0), there ? createLoadSnapshot() : null);
  }
});

Deno.test("options that cannot be are refused", () => {
  using file = new SlotPath();
  const bad = [
    ...[0, -1, 1.5, NaN, Infinity, 65_536].map((dpSize) => ({ dpSize })),
    ...[-1, NaN].flatMap((ms) => [{ staleAfterMs: ms }, { lockTimeoutMs: ms }]),
  ];
  for (const options of bad) {
    assert.throws(() => new ShmLoadSnapshotReader(file.path, options), RangeError);
  }
});

Deno.test("the counts of a reader tell what it did", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  reader.readAll();
  writer.write(createLoadSnapshot({ numRunningReqs: 1 }));
  reader.read(1);
  reader.read(0);
  reader.read(0);
  reader.health();
  const { locks, ...stats } = reader.stats();
  assert.deepEqual(stats, {
    reads: 5,
    unchanged: 3,
    publications: 2,
    lockMisses: 0,
    attaches: 1,
  });
  assert(locks <= stats.publications + 1, "at most one lock for a publication or an empty slot");
});

Deno.test("a closed reader refuses to read, however it was closed", () => {
  using file = new SlotPath();
  using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  const reader = new ShmLoadSnapshotReader(file.path);
  reader.read(0);
  const before = reader.stats();
  reader.close();
  reader.close();
  reader[Symbol.dispose]();
  for (const use of [() => reader.read(0), () => reader.readAll(), () => reader.health()]) {
    assert.throws(use, TypeError);
  }
  assert.deepEqual(reader.stats(), before);
});
