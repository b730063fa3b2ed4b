/** The publish interval, what the writer counts, and its end. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { SlotPath } from "../support/slot_path.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";

const ONE = { dpSize: 1, dpRank: 0 } as const;

function load(numRunningReqs: number) {
  return () => createLoadSnapshot({ numRunningReqs });
}

Deno.test("publish writes at every third call when the interval is 3", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { ...ONE, publishInterval: 3 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const seen = Array.from({ length: 7 }, (_, call) => {
    const written = writer.publish(load(call + 1));
    return [written, reader.read(0)?.numRunningReqs];
  });
  assert.deepEqual(seen, [
    [false, 0],
    [false, 0],
    [true, 3],
    [false, 3],
    [false, 3],
    [true, 6],
    [false, 6],
  ]);
  assert.deepEqual(writer.stats(), { writes: 2, skipped: 5, lockTimeouts: 0, restores: 0 });
});

Deno.test("a forced publication is written at once, and starts the interval anew", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { ...ONE, publishInterval: 3 });
  const calls = [false, false, true, false, false, false].map((force, call) =>
    writer.publish(load(call), { force })
  );
  assert.deepEqual(calls, [false, false, true, false, false, true]);
});

Deno.test("without an interval, and with one below 1, every call is written", () => {
  for (const options of [ONE, { ...ONE, publishInterval: 0 }, { ...ONE, publishInterval: -5 }]) {
    using file = new SlotPath();
    using writer = new ShmLoadSnapshotWriter(file.path, options);
    assert.deepEqual([1, 2].map((count) => writer.publish(load(count))), [true, true]);
    assert.deepEqual(file.bytes(), slotFileBytes({ slots: [loadSlot({ numRunningReqs: 2 })] }));
  }
});

Deno.test("a snapshot that is not due is not made", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { ...ONE, publishInterval: 2 });
  let made = 0;
  const make = () => createLoadSnapshot({ numRunningReqs: ++made });
  for (let call = 0; call < 10; call++) writer.publish(make);
  assert.equal(made, 5);
});

Deno.test("write goes past the interval and leaves it alone", () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { ...ONE, publishInterval: 2 });
  assert.equal(writer.publish(load(1)), false);
  writer.write(createLoadSnapshot());
  assert.equal(writer.publish(load(2)), true);
});

Deno.test("a closed writer refuses to write and to publish, due or not", () => {
  using file = new SlotPath();
  for (const publishInterval of [1, 15]) {
    const writer = new ShmLoadSnapshotWriter(file.path, { ...ONE, publishInterval });
    writer.close();
    writer.close();
    const before = file.bytes();
    const never = () => assert.fail("no snapshot is made for a closed writer");
    assert.throws(() => writer.write(createLoadSnapshot()), TypeError);
    assert.throws(() => writer.publish(never), TypeError);
    assert.throws(() => writer.publish(never, { force: true }), TypeError);
    assert.deepEqual(file.bytes(), before);
    assert.equal(writer.stats().writes, 0);
  }
});
