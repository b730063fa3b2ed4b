/** Where things stand in a slot file, and what its header says. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import {
  checkDpRank,
  decodeHeader,
  fileSize,
  FIXED_VERSION,
  type Header,
  HEADER_SIZE,
  headerWords,
  MAGIC,
  MAX_DP_SIZE,
  MAX_SLOT_SIZE,
  SLOT_SIZE,
  slotOffset,
  VERSION,
} from "../../src/slotfile/layout.ts";

const NO_COUNTS = [-1, 1.5, NaN, Infinity, -Infinity, 2 ** 32];

Deno.test("the constants are SGLang's", () => {
  assert.deepEqual([MAGIC, VERSION, HEADER_SIZE, SLOT_SIZE], ["SLNS", 2, 12, 16_384]);
});

Deno.test("a header of two ranks has SGLang's bytes", () => {
  const words = headerWords({ version: VERSION, dpSize: 2, slotSize: SLOT_SIZE });
  assert.equal(new Uint8Array(words.buffer).toHex(), "534c4e530200020000400000");
});

Deno.test("a file is its header and a slot for each rank", () => {
  assert.equal(fileSize(2), 32_780);
  assert.equal(fileSize(1), 16_396);
  assert.equal(fileSize(3, 100), 312);
  assert.equal(fileSize(MAX_DP_SIZE, MAX_SLOT_SIZE), 12 + 65_535 * 4 * 2 ** 20);
});

Deno.test("slots follow the header without gaps, so every payload starts at 16 bytes", () => {
  assert.equal(slotOffset(0), 12);
  assert.equal(slotOffset(1), 16_396);
  assert.equal(slotOffset(2, 100), 212);
  for (const rank of [0, 1, 7, 65_534]) {
    assert.equal((slotOffset(rank) + 4) % 16, 0);
    assert.equal(slotOffset(rank) + SLOT_SIZE, fileSize(rank + 1));
  }
});

Deno.test("a number of ranks that no header can name is refused", () => {
  for (const dpSize of [...NO_COUNTS, 0, 65_536]) {
    assert.throws(() => fileSize(dpSize), { name: "RangeError", message: /dp size/ });
  }
});

Deno.test("a rank that no file can have is refused", () => {
  for (const rank of [...NO_COUNTS, 65_535]) {
    assert.throws(() => slotOffset(rank), { name: "RangeError", message: /dp rank/ });
  }
  for (const rank of [...NO_COUNTS, 2]) {
    assert.throws(() => checkDpRank(rank, 2), { name: "RangeError", message: /0 to 1/ });
  }
  checkDpRank(1, 2);
});

Deno.test("a slot size that holds no payload or breaks the alignment is refused", () => {
  for (const slotSize of [...NO_COUNTS, 0, 4, 6, 16_385, MAX_SLOT_SIZE + 4]) {
    assert.throws(() => fileSize(1, slotSize), { name: "RangeError", message: /slot size/ });
    assert.throws(() => slotOffset(0, slotSize), { name: "RangeError", message: /slot size/ });
  }
  assert.equal(fileSize(1, 8), 20);
});

Deno.test("what headerWords writes, decodeHeader reads", () => {
  fc.assert(fc.property(
    fc.constantFrom(VERSION, FIXED_VERSION),
    fc.integer({ min: 1, max: MAX_DP_SIZE }),
    fc.integer({ min: 304, max: MAX_SLOT_SIZE }),
    (version, dpSize, slotSize) => {
      const header: Header = { version, dpSize, slotSize };
      assert.deepEqual(decodeHeader(viewOf(header)), { ok: true, header });
    },
  ));
});

Deno.test("a header that is not wholly written is unfinished, not wrong", () => {
  assert.deepEqual(decodeHeader(new DataView(new ArrayBuffer(12))), no("unfinished"));
  for (const part of ["version", "dpSize", "slotSize"] as const) {
    const header = { version: 2, dpSize: 1, slotSize: SLOT_SIZE, [part]: 0 };
    assert.deepEqual(decodeHeader(viewOf(header)), no("unfinished"));
  }
});

Deno.test("another magic, version or slot size is told apart", () => {
  const good: Header = { version: VERSION, dpSize: 1, slotSize: SLOT_SIZE };
  const other = viewOf(good);
  other.setUint8(3, 0x54);
  assert.deepEqual(decodeHeader(other), no("magic"));
  for (const version of [3, 0x0200, 0xffff]) {
    assert.deepEqual(decodeHeader(viewOf({ ...good, version })), no("version"));
  }
  for (const slotSize of [4, MAX_SLOT_SIZE + 1, 0xffff_ffff]) {
    assert.deepEqual(decodeHeader(viewOf({ ...good, slotSize })), no("slot-size"));
  }
  assert.equal(decodeHeader(viewOf({ ...good, slotSize: 5 })).ok, true);
});

Deno.test("a slot of version 1 has room for its 38 values", () => {
  const header: Header = { version: FIXED_VERSION, dpSize: 1, slotSize: 304 };
  assert.equal(decodeHeader(viewOf(header)).ok, true);
  assert.deepEqual(decodeHeader(viewOf({ ...header, slotSize: 303 })), no("slot-size"));
});

function viewOf(header: Header): DataView {
  return new DataView(headerWords(header).buffer);
}

function no(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}
