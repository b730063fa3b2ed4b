/** What readers and writers do while another descriptor holds the lock. */

import assert from "node:assert/strict";
import { LockTimeoutError } from "../../src/errors.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { openDescriptors } from "../support/own_resources.ts";
import { SlotPath } from "../support/slot_path.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";

const ONE = { dpSize: 1, dpRank: 0 } as const;
const EMPTY = new Uint8Array(4);

Deno.test("unchanged ranks are read while another process holds the lock", () => {
  using file = new SlotPath();
  using _writer = new ShmLoadSnapshotWriter(file.path, ONE);
  using reader = new ShmLoadSnapshotReader(file.path);
  const [load] = reader.readAll();
  const { locks } = reader.stats();
  using _lock = file.hold("exclusive");
  for (let n = 0; n < 1000; n++) {
    assert.equal(reader.read(0), load);
    assert.deepEqual(reader.readAll(), [load]);
  }
  assert.equal(reader.stats().locks, locks);
  assert.equal(reader.stats().lockMisses, 0);
});

Deno.test("unchanged reads take no lock, so a writer finds it free", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, ONE);
  using reader = new ShmLoadSnapshotReader(file.path);
  const kinds = [createLoadSnapshot({ numRunningReqs: 1 }), createLoadSnapshot()];
  for (const load of kinds) {
    writer.write(load);
    reader.read(0);
    const { locks } = reader.stats();
    for (let n = 0; n < 1000; n++) reader.readAll();
    assert.equal(reader.stats().locks, locks);
    assert(file.isFree());
  }
});

// What a writer that was stopped in the middle leaves: the length 0, or, of CPython's, which stores
// the length byte by byte, a part of it. The lock tells that it is not the whole.
const PARTIAL = Uint8Array.of(1, 0, 0, 0);

Deno.test("a write that is met under way gives the last good snapshot without the lock", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
  writer.write(createLoadSnapshot({ numRunningReqs: 1 }));
  using reader = new ShmLoadSnapshotReader(file.path, { lockTimeoutMs: 0 });
  const before = reader.readAll();
  {
    using _lock = file.hold("exclusive");
    file.patch(12, EMPTY);
    assert.equal(reader.read(0), before[0]);
    assert.deepEqual(reader.readAll(), before);
    assert.equal(reader.health()[0]?.ageMs === null, false);
  }
  assert.equal(reader.read(0), before[0], "the writer died: its last snapshot stays");
  writer.write(createLoadSnapshot({ numRunningReqs: 3 }));
  assert.equal(reader.read(0)?.numRunningReqs, 3);
  // Where stores are not ordered, the lock is asked.
  if (Deno.build.arch === "x86_64") assert.equal(reader.stats().lockMisses, 0);
});

Deno.test("a slot that cannot be understood while the lock is held is a counted miss", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
  using other = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  writer.write(createLoadSnapshot({ numRunningReqs: 1 }));
  other.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: 2 }));
  using reader = new ShmLoadSnapshotReader(file.path, { lockTimeoutMs: 0 });
  const before = reader.readAll();
  {
    using _lock = file.hold("exclusive");
    file.patch(12, PARTIAL);
    assert.equal(reader.read(0), before[0]);
    assert.equal(reader.stats().lockMisses, 1);
    assert.deepEqual(reader.readAll(), before);
    assert.equal(reader.stats().lockMisses, 2);
    assert.equal(reader.read(1), before[1]);
    assert.equal(reader.stats().lockMisses, 2, "the other rank is not under way");
    assert.notEqual(reader.health()[0]?.state, "corrupt");
  }
  assert.equal(reader.read(0), before[0]);
  assert.equal(reader.health()[0]?.state, "corrupt", "the writer died, and the lock is free");
  writer.write(createLoadSnapshot({ numRunningReqs: 3 }));
  assert.equal(reader.read(0)?.numRunningReqs, 3);
});

Deno.test("a reader whose patience ended once answers at once until the lock is free", () => {
  using file = new SlotPath();
  using _writer = new ShmLoadSnapshotWriter(file.path, ONE);
  using reader = new ShmLoadSnapshotReader(file.path, { lockTimeoutMs: 200 });
  const load = reader.read(0);
  using _lock = file.hold("exclusive");
  file.patch(12, PARTIAL);
  // With the whole patience each time this would take more than a quarter of an hour.
  for (let n = 0; n < 5000; n++) assert.equal(reader.read(0), load);
  assert.equal(reader.stats().lockMisses, 5000);
});

Deno.test("readers with a shared lock do not hinder a reader, but a writer", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { ...ONE, lockTimeoutMs: 1 });
  using reader = new ShmLoadSnapshotReader(file.path);
  {
    using _lock = file.hold("shared");
    file.patch(12, EMPTY);
    reader.read(0);
    assert.equal(reader.stats().lockMisses, 0);
    assert.throws(() => writer.write(createLoadSnapshot()), LockTimeoutError);
  }
  writer.write(createLoadSnapshot());
  assert.deepEqual(reader.read(0), createLoadSnapshot());
});

Deno.test("a writer that does not get the lock says so, and leaves the file as it was", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { ...ONE, lockTimeoutMs: 5 });
  writer.write(createLoadSnapshot({ numRunningReqs: 1 }));
  const before = file.bytes();
  for (const mode of ["exclusive", "shared"] as const) {
    using _lock = file.hold(mode);
    for (let n = 0; n < 3; n++) {
      assert.throws(() => writer.write(createLoadSnapshot({ numRunningReqs: 2 })), {
        name: "LockTimeoutError",
        path: file.path,
        waitedMs: 5,
      });
    }
    assert.deepEqual(file.bytes(), before);
  }
  assert.deepEqual(writer.stats(), { writes: 1, skipped: 0, lockTimeouts: 6, restores: 0 });
  writer.write(createLoadSnapshot({ numRunningReqs: 2 }));
  assert.deepEqual(file.bytes(), slotFileBytes({ slots: [loadSlot({ numRunningReqs: 2 })] }));
  assert(file.isFree());
});

Deno.test("a writer that cannot lock an existing file does not open, and holds nothing", () => {
  using file = new SlotPath();
  const bytes = slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 })] });
  file.put(bytes);
  {
    using _lock = file.hold("exclusive");
    const before = openDescriptors();
    assert.throws(
      () => new ShmLoadSnapshotWriter(file.path, { ...ONE, lockTimeoutMs: 1 }),
      LockTimeoutError,
    );
    assert.equal(openDescriptors(), before);
  }
  assert.deepEqual(file.bytes(), bytes);
  assert.deepEqual(file.all(), [file.path]);
});

Deno.test("every write gives the lock back, failed ones too", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, ONE);
  assert(file.isFree());
  writer.write(createLoadSnapshot());
  assert(file.isFree());
  assert.throws(() => writer.write(createLoadSnapshot({ dpRank: 1 })), RangeError);
  assert(file.isFree());
});
