/** A file that is replaced, removed, restored or written anew under its readers and writers. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { mappingsOf, openDescriptors } from "../support/own_resources.ts";
import { RawFile } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";
import { sleep, until } from "../support/wait.ts";

const ONE = { dpSize: 1, dpRank: 0 } as const;
/** Longer than a writer's clock takes to tick. */
const TICK_MS = 15;

function load(numRunningReqs: number) {
  return createLoadSnapshot({ numRunningReqs });
}

Deno.test("a reader follows a file that another one replaced", async () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 })] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.equal(reader.read(0)?.numRunningReqs, 1);
  const descriptors = openDescriptors();
  for (let numRunningReqs = 2; numRunningReqs < 5; numRunningReqs++) {
    file.replace(slotFileBytes({ slots: [loadSlot({ numRunningReqs }), null] }));
    await until("the new file is read", () => reader.read(0)?.numRunningReqs === numRunningReqs);
  }
  assert.deepEqual([reader.dpSize, reader.fault, reader.stats().attaches], [2, null, 4]);
  assert.equal(openDescriptors(), descriptors);
  assert.equal(mappingsOf(file.path).length, 1);
});

Deno.test("a rank that is read alone is there as soon as the group has grown in place", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 })] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.throws(() => reader.read(1), RangeError);
  file.put(slotFileBytes({ slots: [null, loadSlot({ dpRank: 1, numRunningReqs: 2 })] }));
  assert.equal(reader.read(1)?.numRunningReqs, 2);
  assert.throws(() => reader.read(2), RangeError);
});

Deno.test("ranks that have not published in the new file keep what they said in the old", async () => {
  using file = new SlotPath();
  const both = [0, 1].map((dpRank) => loadSlot({ dpRank, numRunningReqs: 5 }));
  file.put(slotFileBytes({ slots: both }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const [, second] = reader.readAll();
  file.replace(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 6 }), null, null] }));
  await until("the new file is read", () => reader.read(0)?.numRunningReqs === 6);
  assert.deepEqual(reader.readAll(), [load(6), second]);
  assert.equal(reader.read(2), null);
});

Deno.test("a reader keeps a file that lost its name, and says so, until there is another", async () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 })] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const first = reader.read(0);
  using nameless = new RawFile(file.path);
  file.unlink();
  await until("it is noticed", () => reader.readAll().length === 1 && reader.fault !== null);
  assert.equal(reader.fault?.reason, "absent");
  assert.equal(reader.read(0), first);
  // A writer of SGLang's goes on with the file that has no name.
  nameless.write(12, loadSlot({ numRunningReqs: 2 }));
  assert.equal(reader.read(0)?.numRunningReqs, 2);
  file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 3 })] }));
  await until("the new file is read", () => reader.read(0)?.numRunningReqs === 3);
  assert.equal(reader.fault, null);
});

Deno.test("a file that replaces it and cannot be used is a fault, and the old one is kept", async () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 }), null] }));
  using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 2 });
  reader.read(0);
  const unusable = {
    magic: new TextEncoder().encode("no slot file at all"),
    "dp-size": slotFileBytes({ slots: [loadSlot({ numRunningReqs: 7 })] }),
    unfinished: new Uint8Array(0),
    version: slotFileBytes({ version: 9, slots: [null, null] }),
  };
  const descriptors = openDescriptors();
  for (const [reason, bytes] of Object.entries(unusable)) {
    file.replace(bytes);
    await until(`the fault ${reason} is told`, () => {
      assert.equal(reader.read(0)?.numRunningReqs, 1);
      return reader.fault?.reason === reason;
    });
  }
  assert.equal(openDescriptors(), descriptors);
  file.replace(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 2 }), null] }));
  await until("the good file is read", () => reader.read(0)?.numRunningReqs === 2);
});

Deno.test("a header that is written anew in place is followed at the next read", () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path);
  for (const dpSize of [2, 8, 3, 1, 64, 1, 2]) {
    const slots = Array.from(
      { length: dpSize },
      (_, dpRank) => loadSlot({ dpRank, numRunningReqs: dpSize }),
    );
    file.put(slotFileBytes({ slots }));
    const loads = reader.readAll();
    assert.deepEqual(loads.map(({ numRunningReqs }) => numRunningReqs), slots.map(() => dpSize));
    assert.equal(reader.dpSize, dpSize);
    assert.throws(() => reader.read(dpSize), RangeError);
    assert.equal(reader.health().length, dpSize);
  }
});

Deno.test("a header that vanishes for a moment changes nothing", () => {
  using file = new SlotPath();
  const bytes = slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 })] });
  file.put(bytes);
  using reader = new ShmLoadSnapshotReader(file.path);
  const first = reader.read(0);
  {
    using _lock = file.hold("exclusive");
    file.patch(0, new Uint8Array(12));
    assert.equal(reader.read(0), first);
    assert.equal(reader.stats().lockMisses, 1);
    file.patch(0, bytes.slice(0, 12));
  }
  assert.equal(reader.read(0), first);
  assert.deepEqual([reader.stats().attaches, reader.fault], [1, null]);
});

Deno.test("a writer restores a path that was removed or replaced", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const descriptors = openDescriptors();
  const losses = [
    () => file.unlink(),
    () => file.replace(slotFileBytes({ slots: [loadSlot({}), null, null] })),
    () => file.replace(new Uint8Array(0)),
    () => file.truncate(0),
    () => file.truncate(4096),
    () => file.replace(slotFileBytes({ slots: [null, null] }).subarray(0, 100)),
  ];
  for (const [index, lose] of losses.entries()) {
    lose();
    await sleep(TICK_MS);
    const init = { dpRank: 1, numRunningReqs: index + 1 };
    writer.write(createLoadSnapshot(init));
    assert.deepEqual(file.bytes(), slotFileBytes({ slots: [null, loadSlot(init)] }));
    assert.deepEqual(file.all(), [file.path]);
    await until("it is read", () => reader.read(1)?.numRunningReqs === index + 1);
  }
  assert.equal(writer.stats().restores, losses.length);
  assert.equal(openDescriptors(), descriptors);
});

Deno.test("as long as a path cannot be restored, every write says so", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, ONE);
  const foreign = new TextEncoder().encode("another program's file");
  file.replace(foreign);
  await sleep(TICK_MS);
  const descriptors = openDescriptors();
  for (let n = 0; n < 1000; n++) {
    assert.throws(() => writer.write(load(n)), { name: "SlotFileError", reason: "magic" });
  }
  assert.deepEqual(file.bytes(), foreign);
  assert.equal(openDescriptors(), descriptors);
  file.unlink();
  writer.write(load(5));
  assert.deepEqual(file.bytes(), slotFileBytes({ slots: [loadSlot({ numRunningReqs: 5 })] }));
  assert.deepEqual(writer.stats(), { writes: 1, skipped: 0, lockTimeouts: 0, restores: 1 });
});
