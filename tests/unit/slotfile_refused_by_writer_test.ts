/** What a writer, or a removal, leaves alone: everything that is no slot file. */

import assert from "node:assert/strict";
import { SlotFileError, type SlotFileReason } from "../../src/errors.ts";
import { removeSlotFile } from "../../src/slotfile/created_file.ts";
import { cString } from "../../src/slotfile/libc.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { giveAway, whyNoForeignFile } from "../support/foreign_file.ts";
import { openDescriptors } from "../support/own_resources.ts";
import { must, raw } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { headerBytes, loadSlot, slotFileBytes } from "../support/slot_bytes.ts";

const OPTIONS = { dpSize: 2, dpRank: 0, lockTimeoutMs: 5 } as const;

function refuses(act: () => void, reason: SlotFileReason, path: string): void {
  const before = openDescriptors();
  assert.throws(act, (error) => {
    assert(error instanceof SlotFileError);
    assert.equal(error.reason, reason, error.message);
    assert.equal(error.path, path);
    return true;
  });
  assert.equal(openDescriptors(), before);
}

function writerRefuses(path: string, reason: SlotFileReason): void {
  refuses(() => new ShmLoadSnapshotWriter(path, OPTIONS).close(), reason, path);
}

function removalRefuses(path: string, reason: SlotFileReason): void {
  refuses(() => removeSlotFile(path), reason, path);
}

function withByte(length: number, at: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(length).fill(1, at, at + 1);
}

const NO_SLOT_FILES: Readonly<Record<string, Uint8Array<ArrayBuffer>>> = {
  "a short text": new TextEncoder().encode("hello"),
  "a long text": new TextEncoder().encode("hello\n".repeat(10_000)),
  "one byte": Uint8Array.of(1),
  "another magic": slotFileBytes({ magic: "SLNT", slots: [loadSlot({}), null] }),
  "zeros with a byte at the end of the header": withByte(12, 11),
  "zeros with a byte behind the header": withByte(13, 12),
  "zeros with a byte far behind": withByte(1_000_000, 999_999),
  "zeros, then a text": Uint8Array.from([0, 0, 0, 0, 104, 101, 108, 108, 111]),
};

for (const [what, bytes] of Object.entries(NO_SLOT_FILES)) {
  Deno.test(`a writer leaves ${what} alone, and so does a removal`, () => {
    using file = new SlotPath();
    file.put(bytes);
    writerRefuses(file.path, "magic");
    removalRefuses(file.path, "magic");
    assert.deepEqual(file.bytes(), bytes);
    assert.deepEqual(file.all(), [file.path]);
  });
}

Deno.test("a header that was cleared in a file of the group's length is written again", () => {
  using file = new SlotPath();
  const bytes = slotFileBytes({ slots: [null, loadSlot({ dpRank: 1, numRunningReqs: 3 })] });
  file.put(bytes.slice().fill(0, 0, 12));
  using _writer = new ShmLoadSnapshotWriter(file.path, OPTIONS);
  bytes.set(loadSlot({}), 12);
  assert.deepEqual(file.bytes(), bytes);
});

Deno.test("a writer does not follow a symbolic link, dangling or not", () => {
  using target = new SlotPath();
  using link = new SlotPath();
  must(raw.symlink(cString(target.path), cString(link.path)), "symlink");
  writerRefuses(link.path, "not-regular");
  removalRefuses(link.path, "not-regular");
  assert.equal(target.exists(), false);
  const bytes = slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 }), null] });
  target.put(bytes);
  writerRefuses(link.path, "not-regular");
  removalRefuses(link.path, "not-regular");
  assert.deepEqual(target.bytes(), bytes);
});

Deno.test("a writer refuses a folder, a FIFO and a device", () => {
  using folder = new SlotPath();
  must(raw.mkdir(cString(folder.path), 0o700), "mkdir");
  using fifo = new SlotPath();
  must(raw.mkfifo(cString(fifo.path), 0o600), "mkfifo");
  for (const path of [folder.path, fifo.path, "/dev/null"]) {
    writerRefuses(path, "not-regular");
    removalRefuses(path, "not-regular");
  }
});

Deno.test("a writer refuses a path that cannot be a file's", () => {
  for (
    const path of ["", "/dev/shm/a\0b", `/dev/shm/${"x".repeat(256)}`, `/${"x/".repeat(3000)}`]
  ) {
    writerRefuses(path, "path");
    removalRefuses(path, "path");
  }
});

Deno.test("a writer says that the folder is missing", () => {
  using folder = new SlotPath();
  writerRefuses(`${folder.path}/load.shm`, "absent");
  assert.equal(removeSlotFile(`${folder.path}/load.shm`), false);
});

const reason = whyNoForeignFile();
const ignore = reason !== null;
// deno-lint-ignore no-console -- the reason for a test that is left out is printed
if (ignore) console.log(`left out: no file can be given to another user: ${reason}`);

Deno.test("a writer refuses another user's file", { ignore }, () => {
  using file = new SlotPath();
  const bytes = slotFileBytes({ slots: [loadSlot({ numRunningReqs: 1 }), null] });
  file.put(bytes);
  assert.equal(giveAway(file.path), null);
  writerRefuses(file.path, "foreign-owner");
  removalRefuses(file.path, "foreign-owner");
  assert.deepEqual(file.bytes(), bytes);
});

Deno.test("a removal takes slot files away, unfinished, broken and newer ones too", () => {
  using file = new SlotPath();
  assert.equal(removeSlotFile(file.path), false);
  for (
    const bytes of [
      slotFileBytes({ slots: [loadSlot({}), null] }),
      slotFileBytes({ version: 1, slotSize: 320, slots: [null] }),
      slotFileBytes({ version: 3, slots: [null] }),
      headerBytes({ dpSize: 8 }),
      headerBytes({ dpSize: 1, slotSize: 0xffff_ffff }),
      new Uint8Array(0),
      new Uint8Array(32_780),
    ]
  ) {
    file.put(bytes);
    assert.equal(removeSlotFile(file.path), true);
    assert.deepEqual(file.all(), []);
  }
});
