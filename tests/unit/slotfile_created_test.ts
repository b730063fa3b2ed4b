/** What a writer makes of a path: the file, its header, and the default snapshot of its rank. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { statPath } from "../../src/slotfile/stat.ts";
import { cString } from "../../src/slotfile/libc.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { raw, RawFile } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { headerBytes, loadSlot, slotFileBytes, slotOf } from "../support/slot_bytes.ts";

const MODE_AT = 28;

Deno.test("a new file has SGLang's header, and SGLang's default snapshot of the rank", () => {
  using file = new SlotPath();
  using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
  const bytes = file.bytes();
  assert.equal(bytes.length, 32_780);
  assert.equal(bytes.subarray(0, 12).toHex(), "534c4e530200020000400000");
  // An empty map in the long form that msgspec chooses: rank 0 is a default, so it is left out.
  const payload = Uint8Array.fromHex("de0000");
  assert.deepEqual(bytes, slotFileBytes({ slots: [slotOf(payload), null] }));
});

Deno.test("the default snapshot of any other rank names the rank", () => {
  using file = new SlotPath();
  using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 3, dpRank: 1 });
  const payload = Uint8Array.fromHex("de0001a764705f72616e6b01");
  assert.deepEqual(file.bytes(), slotFileBytes({ slots: [null, slotOf(payload), null] }));
});

Deno.test("only its owner may read or write the file", () => {
  using file = new SlotPath();
  using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  const stat = new Uint8Array(256);
  assert.equal(raw.statx(-100, cString(file.path), 0, 0x7ff, stat), 0);
  assert.equal(new DataView(stat.buffer).getUint16(MODE_AT, true) & 0o7777, 0o600);
});

Deno.test("the ranks of a group share one file", () => {
  using file = new SlotPath();
  using one = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
  one.write(createLoadSnapshot({ numRunningReqs: 7 }));
  const before = statPath(raw, file.path, cString(file.path))?.identity;
  using _two = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  assert.equal(statPath(raw, file.path, cString(file.path))?.identity, before);
  assert.deepEqual(
    file.bytes(),
    slotFileBytes({ slots: [loadSlot({ numRunningReqs: 7 }), loadSlot({ dpRank: 1 })] }),
  );
});

Deno.test("a writer that comes back finds the other ranks, and publishes a default snapshot", () => {
  using file = new SlotPath();
  using two = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  two.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: 5 }));
  for (const numRunningReqs of [8, 9]) {
    using one = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
    assert.deepEqual(
      file.bytes(),
      slotFileBytes({ slots: [loadSlot({}), loadSlot({ dpRank: 1, numRunningReqs: 5 })] }),
    );
    one.write(createLoadSnapshot({ numRunningReqs }));
  }
});

Deno.test("closing leaves the file with what was published last", () => {
  using file = new SlotPath();
  {
    using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
    writer.write(createLoadSnapshot({ numWaitingReqs: 3 }));
  }
  assert.deepEqual(file.bytes(), slotFileBytes({ slots: [loadSlot({ numWaitingReqs: 3 })] }));
  assert(file.isFree());
});

Deno.test("a file that its creator did not finish is finished, whatever length it has", () => {
  const lengths = [0, 5, 12, 4096, 32_780, 100_000];
  for (const length of lengths) {
    using file = new SlotPath();
    file.put(new Uint8Array(length));
    using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
    const expected = new Uint8Array(Math.max(length, 32_780));
    expected.set(slotFileBytes({ slots: [null, loadSlot({ dpRank: 1 })] }));
    assert.deepEqual(file.bytes(), expected, `${length} bytes`);
  }
});

Deno.test("a header of which only a part stands is finished too", () => {
  const header = headerBytes({ dpSize: 2 });
  for (const [first, last] of [[0, 4], [0, 6], [0, 8], [4, 12], [8, 12]] as const) {
    using file = new SlotPath();
    const bytes = new Uint8Array(100_000);
    bytes.set(header.subarray(first, last), first);
    file.put(bytes);
    using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
    const finished = slotFileBytes({ slots: [loadSlot({}), null] });
    assert.deepEqual(file.bytes().subarray(0, finished.length), finished);
  }
});

Deno.test("a slot file of another group is replaced, and whoever has it open keeps it whole", () => {
  const others = {
    "more ranks": slotFileBytes({ slots: [loadSlot({}), null, null] }),
    "fewer ranks": slotFileBytes({ slots: [loadSlot({})] }),
    "other slots": slotFileBytes({ slotSize: 512, slots: [loadSlot({}), null] }),
    "version 1": slotFileBytes({ version: 1, slotSize: 320, slots: [null, null] }),
    "a version of the future": slotFileBytes({ version: 3, slots: [null, null] }),
    "shorter than its header says": headerBytes({ dpSize: 2 }),
  };
  for (const [what, bytes] of Object.entries(others)) {
    using file = new SlotPath();
    file.put(bytes);
    using kept = new RawFile(file.path);
    using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0 });
    assert.deepEqual(file.bytes(), slotFileBytes({ slots: [loadSlot({}), null] }), what);
    assert.deepEqual(kept.readAll(), bytes, what);
    assert.deepEqual(file.all(), [file.path], what);
  }
});
