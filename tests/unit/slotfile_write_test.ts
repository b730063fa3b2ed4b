/** What a write changes in the file, and what it refuses before it touches it. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { SlotPath } from "../support/slot_path.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";

/** A snapshot whose payload is about so long. */
function padded(byteLength: number) {
  return createLoadSnapshot({
    extra: { pad: RawMsgpack.from(new Uint8Array(byteLength).fill(7)) },
  });
}

Deno.test("a write changes the slot of its rank only", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 3, dpRank: 1 });
  const load = { dpRank: 1, timestamp: 1.5, numRunningReqs: 3, queues: { waiting: 2 } };
  writer.write(createLoadSnapshot(load));
  assert.deepEqual(file.bytes(), slotFileBytes({ slots: [null, loadSlot(load), null] }));
});

Deno.test("a shorter payload leaves zeros where the longer one stood", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  for (const byteLength of [4000, 10, 900, 16_000, 1]) {
    writer.write(padded(byteLength));
    assert.deepEqual(file.bytes(), slotFileBytes({ slots: [loadSlot(padded(byteLength))] }));
  }
});

Deno.test("zeros are stored only where the last payload stood", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  writer.write(padded(300));
  const marks = { within: 12 + 200, behind: 12 + 2000 };
  file.patch(marks.within, Uint8Array.of(1));
  file.patch(marks.behind, Uint8Array.of(1));
  writer.write(createLoadSnapshot());
  const bytes = file.bytes();
  assert.equal(bytes[marks.within], 0);
  assert.equal(bytes[marks.behind], 1);
});

Deno.test("a new writer clears the whole slot: it does not know what stood there", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [new Uint8Array(16_384).fill(1)] }));
  using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  assert.deepEqual(file.bytes(), slotFileBytes({ slots: [loadSlot({})] }));
});

Deno.test("a payload that fills the slot to its last byte is written", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
  const overhead = loadSlot(padded(1000)).length - 1000;
  const full = padded(16_384 - overhead);
  writer.write(full);
  assert.equal(loadSlot(full).length, 16_384);
  assert.deepEqual(file.bytes(), slotFileBytes({ slots: [loadSlot(full), null] }));
});

Deno.test("what cannot be written is refused before anything is touched", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  writer.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: 1 }));
  const before = file.bytes();
  const overhead = loadSlot(padded(1000)).length - 1000;
  const rank1 = (init: object) => createLoadSnapshot({ dpRank: 1, ...init });
  for (
    const [snapshot, message] of [
      [createLoadSnapshot(), /dp rank 0: the writer is for rank 1/],
      [createLoadSnapshot({ dpRank: 2 }), /dp rank 2/],
      [createLoadSnapshot({ dpRank: NaN }), /dp rank NaN/],
      [{ ...padded(16_384 - overhead), dpRank: 1 }, /of 16389 bytes: a slot holds 16380/],
      [{ ...padded(100_000), dpRank: 1 }, /a slot holds 16380/],
      [rank1({ numRunningReqs: 1.5 }), /numRunningReqs is 1.5/],
      [rank1({ numRunningReqs: 2 ** 53 }), /2\^53/],
      [rank1({ numWaitingReqs: NaN }), /numWaitingReqs is NaN/],
    ] as const
  ) {
    assert.throws(() => writer.write(snapshot), { name: "RangeError", message });
    assert.deepEqual(file.bytes(), before);
  }
  const untyped = JSON.parse('{"numRunningReqs": "3"}');
  assert.throws(() => writer.write(rank1(untyped)), TypeError);
  assert.deepEqual(file.bytes(), before);
  assert(file.isFree());

  writer.write(rank1({ numRunningReqs: 2 }));
  assert.deepEqual(
    file.bytes(),
    slotFileBytes({ slots: [null, loadSlot({ dpRank: 1, numRunningReqs: 2 })] }),
  );
  assert.equal(writer.stats().writes, 2);
});

Deno.test("options that cannot be are refused before a file is made", () => {
  using file = new SlotPath();
  const good = { dpSize: 2, dpRank: 1 };
  const bad = [
    ...[0, -1, 1.5, NaN, Infinity, 65_536].map((dpSize) => ({ ...good, dpSize, dpRank: 0 })),
    ...[2, -1, 0.5, NaN, Infinity].map((dpRank) => ({ ...good, dpRank })),
    ...[0, 4, 10, -16, 16.5, NaN, 2 ** 23].map((slotSize) => ({ ...good, slotSize })),
    ...[-1, NaN].map((lockTimeoutMs) => ({ ...good, lockTimeoutMs })),
    { ...good, publishInterval: NaN },
    // Not even the default snapshot of rank 1 fits.
    { ...good, slotSize: 8 },
  ];
  for (const options of bad) {
    assert.throws(() => new ShmLoadSnapshotWriter(file.path, options), RangeError);
    assert.equal(file.exists(), false, JSON.stringify(options));
  }
});
