/** Slots of other sizes than SGLang's, and groups of other sizes than usual. */

import assert from "node:assert/strict";
import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { mappingsOf } from "../support/own_resources.ts";
import { SlotPath } from "../support/slot_path.ts";
import { loadSlot, slotFileBytes, slotOf } from "../support/slot_bytes.ts";

/** A snapshot of at least so many bytes. */
function longLoad(dpRank: number, byteLength: number) {
  const decodeMoments = Array.from({ length: Math.ceil(byteLength / 9) }, (_, n) => n + dpRank);
  return createLoadSnapshot({ dpRank, decodeMoments });
}

Deno.test("slots of 512 KiB, as forks have them, are written and read", () => {
  using file = new SlotPath();
  const slotSize = 512 * 1024;
  const loads = [0, 1, 2].map((dpRank) => longLoad(dpRank, 500_000));
  const writers = loads.map(({ dpRank }) =>
    new ShmLoadSnapshotWriter(file.path, { dpSize: 3, dpRank, slotSize })
  );
  try {
    using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 3 });
    assert.deepEqual(reader.readAll(), [0, 1, 2].map((dpRank) => createLoadSnapshot({ dpRank })));
    loads.forEach((load, dpRank) => writers[dpRank]!.write(load));
    assert.deepEqual(reader.readAll(), loads);
    const slots = loads.map((load) => slotOf(encodeLoadSnapshot(load)));
    assert.deepEqual(file.bytes(), slotFileBytes({ slotSize, slots }));
  } finally {
    for (const writer of writers) writer.close();
  }
});

Deno.test("slots of any size are read, wherever they start", () => {
  for (const slotSize of [21, 64, 101, 1000, 1001, 1023, 4095, 4097, 16_385, 65_537]) {
    using file = new SlotPath();
    const room = slotSize - 40;
    const loads = Array.from(
      { length: 20 },
      (_, dpRank) => room < 60 ? createLoadSnapshot({ dpRank }) : longLoad(dpRank, room - 40),
    );
    const slots = loads.map((load) => slotOf(encodeLoadSnapshot(load)));
    assert(slots.every((slot) => slot.length <= slotSize));
    file.put(slotFileBytes({ slotSize, slots: slots.map(() => null) }));
    using reader = new ShmLoadSnapshotReader(file.path);
    assert.deepEqual(reader.readAll(), []);
    slots.forEach((slot, dpRank) => file.patch(12 + dpRank * slotSize, slot));
    assert.deepEqual(reader.readAll(), loads, `slots of ${slotSize}`);
    assert.equal(reader.stats().publications, 20);
  }
});

Deno.test("the smallest slots hold what fits them, and the largest are taken", () => {
  using small = new SlotPath();
  small.put(slotFileBytes({ slotSize: 5, slots: [slotOf(Uint8Array.of(0x80)), null] }));
  using reader = new ShmLoadSnapshotReader(small.path);
  assert.deepEqual(reader.readAll(), [createLoadSnapshot()]);
  using large = new SlotPath();
  const slotSize = 4 * 2 ** 20;
  using writer = new ShmLoadSnapshotWriter(large.path, { dpSize: 1, dpRank: 0, slotSize });
  using other = new ShmLoadSnapshotReader(large.path);
  const load = longLoad(0, 4_190_000);
  writer.write(load);
  assert.deepEqual(other.read(0), load);
});

Deno.test("a file that is longer than its header says is read", () => {
  using file = new SlotPath();
  const bytes = slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 })] });
  const longer = new Uint8Array(bytes.length + 5000).fill(7);
  longer.set(bytes);
  file.put(longer);
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.equal(reader.read(0)?.numRunningReqs, 1);
});

Deno.test("payloads that grow and shrink from one publication to the next are read whole", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  for (let n = 0; n < 2000; n++) {
    const decodeMoments = Array.from({ length: (n * 7919) % 1800 }, (_, m) => m + n);
    writer.write(createLoadSnapshot({ numRunningReqs: n, decodeMoments }));
    assert.deepEqual(reader.read(0), createLoadSnapshot({ numRunningReqs: n, decodeMoments }));
  }
});

for (const [dpSize, slotSize] of [[1024, 16_384], [65_535, 64]] as const) {
  Deno.test(`a group of ${dpSize} ranks is written and read`, () => {
    using file = new SlotPath();
    const ranks = [0, 1, 63, 64, 65, dpSize - 2, dpSize - 1];
    {
      using reader = new ShmLoadSnapshotReader(file.path);
      for (const dpRank of ranks) {
        using writer = new ShmLoadSnapshotWriter(file.path, { dpSize, dpRank, slotSize });
        writer.write(createLoadSnapshot({ dpRank, numRunningReqs: dpRank + 1 }));
      }
      assert.deepEqual(
        reader.readAll(),
        ranks.map((dpRank) => createLoadSnapshot({ dpRank, numRunningReqs: dpRank + 1 })),
      );
      assert.equal(reader.dpSize, dpSize);
      assert.equal(reader.health().length, dpSize);
      assert.equal(reader.read(dpSize - 1)?.numRunningReqs, dpSize);
      assert.throws(() => reader.read(dpSize), RangeError);
      const { unchanged, publications } = reader.stats();
      reader.readAll();
      assert.equal(reader.stats().unchanged, unchanged + 1);
      assert.equal(publications, ranks.length);
    }
    assert.deepEqual(mappingsOf(file.path), []);
  });
}

Deno.test("every rank of a large group is read in one go, however many locks that takes", () => {
  using file = new SlotPath();
  const slots = Array.from({ length: 1000 }, (_, dpRank) => loadSlot({ dpRank, timestamp: 1 }));
  file.put(slotFileBytes({ slotSize: 128, slots }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.deepEqual(reader.readAll().map(({ dpRank }) => dpRank), slots.map((_, rank) => rank));
  assert.equal(reader.stats().publications, 1000);
});
