/** Files that a reader cannot use: each is a typed error, and nothing stays open. */

import assert from "node:assert/strict";
import { SlotFileError, type SlotFileReason } from "../../src/errors.ts";
import { cString } from "../../src/slotfile/libc.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { giveAway, NOBODY, whyNoForeignFile } from "../support/foreign_file.ts";
import { openDescriptors } from "../support/own_resources.ts";
import { must, raw } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { headerBytes, loadSlot, slotFileBytes } from "../support/slot_bytes.ts";

const LOAD = loadSlot({ numRunningReqs: 1 });

function refuses(path: string, reason: SlotFileReason, options: { dpSize?: number } = {}): void {
  const before = openDescriptors();
  assert.throws(() => new ShmLoadSnapshotReader(path, options), (error) => {
    assert(error instanceof SlotFileError);
    assert.equal(error.reason, reason);
    assert.equal(error.path, path);
    return true;
  });
  assert.equal(openDescriptors(), before);
}

const CONTENTS: Readonly<Record<string, readonly [SlotFileReason, Uint8Array<ArrayBuffer>]>> = {
  "another magic": ["magic", slotFileBytes({ magic: "SLNT", slots: [LOAD] })],
  "a text of five bytes": ["magic", new TextEncoder().encode("hello")],
  "a text of a hundred bytes": ["magic", new TextEncoder().encode("hello".repeat(20))],
  "version 3": ["version", slotFileBytes({ version: 3, slots: [LOAD] })],
  "version 512": ["version", slotFileBytes({ version: 512, slots: [LOAD] })],
  "slots without room for a payload": [
    "slot-size",
    slotFileBytes({ slotSize: 4, slots: [null, null, null] }),
  ],
  "slots of 4 GiB": ["slot-size", headerBytes({ dpSize: 1, slotSize: 0xffff_ffff })],
  "version 1 with slots that are too short": [
    "slot-size",
    slotFileBytes({ version: 1, slotSize: 300, slots: [null] }),
  ],
  "a header and nothing else": ["truncated", headerBytes({ dpSize: 1 })],
  "a last slot that is one byte short": [
    "truncated",
    slotFileBytes({ slots: [LOAD, LOAD] }).subarray(0, -1),
  ],
  "fewer slots than the header says": ["truncated", slotFileBytes({ dpSize: 3, slots: [LOAD] })],
  "the most ranks and the largest slots": [
    "truncated",
    headerBytes({ dpSize: 65_535, slotSize: 4 * 2 ** 20 }),
  ],
};

for (const [what, [reason, bytes]] of Object.entries(CONTENTS)) {
  Deno.test(`a reader refuses ${what} as ${reason}`, () => {
    using file = new SlotPath();
    file.put(bytes.slice());
    refuses(file.path, reason);
    assert.deepEqual(file.bytes(), bytes.slice());
  });
}

Deno.test("a reader refuses another number of ranks than it was told", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [LOAD, null] }));
  refuses(file.path, "dp-size", { dpSize: 3 });
  refuses(file.path, "dp-size", { dpSize: 1 });
  using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 2 });
  assert.equal(reader.dpSize, 2);
});

Deno.test("a reader waits for a file that is empty or whose header is not written", () => {
  for (const length of [0, 1, 11, 12, 32_780]) {
    using file = new SlotPath();
    file.put(new Uint8Array(length));
    using reader = new ShmLoadSnapshotReader(file.path);
    assert.equal(reader.fault?.reason, "unfinished");
    assert.deepEqual(reader.readAll(), []);
    file.put(slotFileBytes({ slots: [LOAD] }));
    assert.equal(reader.read(0)?.numRunningReqs, 1);
  }
});

Deno.test("a reader does not follow a symbolic link", () => {
  using file = new SlotPath();
  using link = new SlotPath();
  file.put(slotFileBytes({ slots: [LOAD] }));
  must(raw.symlink(cString(file.path), cString(link.path)), "symlink");
  refuses(link.path, "not-regular");
});

Deno.test("a reader refuses a folder, a FIFO and a device", () => {
  using folder = new SlotPath();
  must(raw.mkdir(cString(folder.path), 0o700), "mkdir");
  refuses(folder.path, "not-regular");
  using fifo = new SlotPath();
  must(raw.mkfifo(cString(fifo.path), 0o600), "mkfifo");
  refuses(fifo.path, "not-regular");
  refuses("/dev/null", "not-regular");
});

Deno.test("a reader refuses a path that cannot be a file's", () => {
  refuses("", "path");
  refuses("/dev/shm/a\0b", "path");
  refuses("\0", "path");
  refuses(`/dev/shm/${"x".repeat(256)}`, "path");
  refuses(`/dev/shm${"/x".repeat(4096)}`, "path");
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [LOAD] }));
  refuses(`${file.path}/below`, "path");
});

Deno.test("a reader waits where the folder is missing", () => {
  using folder = new SlotPath();
  using reader = new ShmLoadSnapshotReader(`${folder.path}/load.shm`);
  assert.equal(reader.fault?.reason, "absent");
  assert.deepEqual(reader.readAll(), []);
});

const reason = whyNoForeignFile();
const ignore = reason !== null;
// deno-lint-ignore no-console -- the reason for a test that is left out is printed
if (ignore) console.log(`left out: no file can be given to another user: ${reason}`);

Deno.test("a reader refuses another user's file, unless that user is trusted", { ignore }, () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [LOAD] }));
  assert.equal(giveAway(file.path), null);
  refuses(file.path, "foreign-owner");
  assert.throws(() => new ShmLoadSnapshotReader(file.path, { trustedUid: 1 }), SlotFileError);
  using reader = new ShmLoadSnapshotReader(file.path, { trustedUid: NOBODY });
  assert.equal(reader.read(0)?.numRunningReqs, 1);
});

Deno.test("a file that cannot be used any more is a fault, not an error", () => {
  for (const [reason, bytes] of Object.values(CONTENTS)) {
    using file = new SlotPath();
    file.put(slotFileBytes({ slots: [LOAD] }));
    using reader = new ShmLoadSnapshotReader(file.path);
    const load = reader.read(0);
    assert.equal(load?.numRunningReqs, 1);
    file.put(bytes.slice());
    // A header that is another is seen at once; the length is asked for from time to time.
    const deadline = performance.now() + 10_000;
    while (reader.fault === null && performance.now() < deadline) reader.read(0);
    assert.equal(reader.fault?.reason, reason);
    assert.equal(reader.read(0), load, "the last good value stays");
    file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 2 })] }));
    assert.equal(reader.read(0)?.numRunningReqs, 2);
    assert.equal(reader.fault, null);
  }
});
