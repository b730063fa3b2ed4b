/** What readers and writers hold, and that they give it back. */

import assert from "node:assert/strict";
import { SlotFileError } from "../../src/errors.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { mappingsOf, openDescriptors, residentBytes } from "../support/own_resources.ts";
import { SlotPath } from "../support/slot_path.ts";
import { headerBytes, loadSlot, slotFileBytes } from "../support/slot_bytes.ts";

const MIB = 2 ** 20;

/** Does something so often, and tells how much memory the second half of it took. */
function growthOf(times: number, act: () => void): number {
  for (let n = 0; n < times / 2; n++) act();
  const before = residentBytes();
  for (let n = 0; n < times / 2; n++) act();
  return residentBytes() - before;
}

Deno.test("a reader holds one descriptor and one mapping, and so does a writer", () => {
  using file = new SlotPath();
  const before = openDescriptors();
  {
    using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 8, dpRank: 0 });
    using reader = new ShmLoadSnapshotReader(file.path);
    writer.write(createLoadSnapshot());
    reader.readAll();
    assert.equal(openDescriptors(), before + 2);
    assert.equal(mappingsOf(file.path).length, 2);
  }
  assert.equal(openDescriptors(), before);
  assert.deepEqual(mappingsOf(file.path), []);
});

Deno.test("a thousand readers and writers, opened and closed, leave nothing behind", () => {
  using file = new SlotPath();
  const open = () => {
    using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 64, dpRank: 5 });
    using reader = new ShmLoadSnapshotReader(file.path);
    writer.write(createLoadSnapshot({ dpRank: 5, numRunningReqs: 1 }));
    assert.equal(reader.read(5)?.numRunningReqs, 1);
  };
  open();
  const before = openDescriptors();
  const growth = growthOf(1000, open);
  assert.equal(openDescriptors(), before);
  assert.deepEqual(mappingsOf(file.path), []);
  // 500 mappings of this file alone would be 500 MiB.
  assert(growth < 64 * MIB, `grew by ${growth / MIB} MiB`);
});

Deno.test("openings that fail leave nothing behind", () => {
  using file = new SlotPath();
  const bad = [
    headerBytes({ dpSize: 3 }),
    slotFileBytes({ magic: "XXXX", slots: [null] }),
    slotFileBytes({ version: 9, slots: [null] }),
  ];
  for (const bytes of bad) {
    file.put(bytes);
    const before = openDescriptors();
    for (let n = 0; n < 100; n++) {
      assert.throws(() => new ShmLoadSnapshotReader(file.path), SlotFileError);
    }
    assert.equal(openDescriptors(), before);
  }
  assert.deepEqual(mappingsOf(file.path), []);
});

Deno.test("reading and writing for long takes no memory", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  let n = 0;
  const growth = growthOf(60_000, () => {
    n++;
    writer.write(createLoadSnapshot({ timestamp: n, numRunningReqs: n % 1000 }));
    reader.read(0);
    reader.readAll();
    if (n % 100 === 0) reader.health();
  });
  assert.equal(reader.read(0)?.timestamp, n);
  assert(growth < 64 * MIB, `grew by ${growth / MIB} MiB`);
});

Deno.test("a reader that attaches a thousand times keeps to one descriptor and one mapping", () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path);
  const before = openDescriptors();
  for (let n = 1; n <= 1000; n++) {
    // Another number of ranks each time: it is noticed at once.
    const slots = Array.from({ length: 1 + (n % 2) }, () => loadSlot({ numRunningReqs: n }));
    file.put(slotFileBytes({ slotSize: 64, slots }));
    assert.equal(reader.read(0)?.numRunningReqs, n);
  }
  assert.equal(reader.stats().attaches, 1000);
  assert.equal(openDescriptors(), before + 1);
  assert.equal(mappingsOf(file.path).length, 1);
});

Deno.test("many ranks that never published take little memory", () => {
  using file = new SlotPath();
  const dpSize = 65_535;
  const bytes = new Uint8Array(12 + dpSize * 8);
  bytes.set(headerBytes({ dpSize, slotSize: 8 }));
  file.put(bytes);
  const before = residentBytes();
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.deepEqual(reader.readAll(), []);
  const growth = residentBytes() - before;
  assert(growth < 128 * MIB, `grew by ${growth / MIB} MiB`);
});

Deno.test("hundreds of readers in one process work, and close", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  const before = openDescriptors();
  const readers = Array.from({ length: 600 }, () => new ShmLoadSnapshotReader(file.path));
  try {
    for (let n = 1; n <= 3; n++) {
      writer.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: n }));
      for (const reader of readers) {
        const load = reader.read(1);
        assert.equal(load?.numRunningReqs, n);
        assert.equal(reader.read(1), load);
      }
    }
  } finally {
    for (const reader of readers) reader.close();
  }
  assert.equal(openDescriptors(), before);
  assert.equal(mappingsOf(file.path).length, 1);
});
