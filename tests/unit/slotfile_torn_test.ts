/** Files that are cut off under a mapping, and grow again: pages are lost, snapshots are not torn. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { SlotPath } from "../support/slot_path.ts";
import { slotFileBytes, slotOf } from "../support/slot_bytes.ts";
import { sleep, until } from "../support/wait.ts";

const PAGE = 4096;

/** A file whose rank 1 stands on two pages: the last bytes of its last float are on the second. */
function straddling(genThroughput: number): Uint8Array<ArrayBuffer> {
  const slot = slotOf(encodeLoadSnapshot(createLoadSnapshot({ timestamp: 1, genThroughput })));
  // The slot of rank 1 starts so that its payload ends four bytes behind the first page.
  const slotSize = PAGE + 4 - slot.length - 12;
  return slotFileBytes({ slotSize, slots: [slot, slot, null] });
}

/** All of its last bytes count: with zeros in their place it is another number. */
const SPEED = 1234.567890123;

Deno.test("a rank of which half was lost gives its last snapshot, not a torn one", async () => {
  using file = new SlotPath();
  const bytes = straddling(SPEED);
  file.put(bytes);
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.equal(reader.read(1)?.genThroughput, SPEED);
  file.truncate(PAGE);
  for (let n = 0; n < 10; n++) assert.equal(reader.read(1)?.genThroughput, SPEED);
  file.put(bytes);
  for (let n = 0; n < 10; n++) assert.equal(reader.read(1)?.genThroughput, SPEED);
  const next = straddling(-SPEED);
  file.put(next);
  await until("the new value is read", () => {
    const speed = reader.read(1)?.genThroughput;
    assert(speed === SPEED || speed === -SPEED, `read ${speed}`);
    return speed === -SPEED;
  });
  assert.equal(reader.health()[1]?.state, "stale");
});

Deno.test("a file that is cut off at any byte of a slot gives its last snapshot", () => {
  using file = new SlotPath();
  const bytes = straddling(SPEED);
  const start = PAGE - 64;
  assert(bytes.length > start + 100);
  for (let length = start; length < start + 100; length++) {
    file.put(bytes);
    using reader = new ShmLoadSnapshotReader(file.path);
    const loads = reader.readAll();
    assert.equal(loads.length, 2);
    file.truncate(length);
    for (let n = 0; n < 3; n++) {
      assert.equal(reader.read(1), loads[1], `cut off at ${length}`);
      assert.deepEqual(reader.readAll(), loads);
    }
  }
});

Deno.test("a file that is cut off and grows again with the same header is read again", async () => {
  for (const length of [0, 12, PAGE, 3 * PAGE, 16_396]) {
    using file = new SlotPath();
    using reader = new ShmLoadSnapshotReader(file.path);
    for (let n = 1; n <= 3; n++) {
      const slots = [0, 1, 2, 3].map((dpRank) =>
        slotOf(encodeLoadSnapshot(createLoadSnapshot({ dpRank, timestamp: n })))
      );
      file.put(slotFileBytes({ slots }));
      await until("all ranks are read", () => {
        const loads = reader.readAll();
        return loads.length === 4 && loads.every(({ timestamp }) => timestamp === n);
      });
      file.truncate(length);
      const kept = reader.readAll();
      assert.deepEqual(kept.map(({ timestamp }) => timestamp), [n, n, n, n]);
    }
  }
});

Deno.test("readers and writers of a file that is cut off under them go on when it is whole", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 4, dpRank: 3 });
  using one = new ShmLoadSnapshotReader(file.path);
  using two = new ShmLoadSnapshotReader(file.path);
  for (let n = 1; n <= 10; n++) {
    one.readAll();
    file.truncate([0, 12, PAGE, 40_000][n % 4]!);
    // The write may still be lost; the first one after the clock's next tick is not.
    writer.write(createLoadSnapshot({ dpRank: 3, numRunningReqs: 0 }));
    await sleep(15);
    writer.write(createLoadSnapshot({ dpRank: 3, numRunningReqs: n }));
    for (const reader of [one, two]) {
      await until("it is read", () => reader.read(3)?.numRunningReqs === n);
    }
  }
  assert(writer.stats().restores >= 10);
});

Deno.test("a reader of a file that is cut off again and again stays within its mappings", async () => {
  using file = new SlotPath();
  const bytes = straddling(SPEED);
  file.put(bytes);
  using reader = new ShmLoadSnapshotReader(file.path);
  for (let n = 0; n < 200; n++) {
    assert.equal(reader.readAll().length, 2);
    file.truncate(n % 2 === 0 ? 0 : PAGE);
    assert.equal(reader.readAll().length, 2);
    file.put(bytes);
  }
  await until("it is whole again", () => reader.readAll().length === 2 && reader.fault === null);
  assert.deepEqual(reader.readAll().map(({ genThroughput }) => genThroughput), [SPEED, SPEED]);
});
