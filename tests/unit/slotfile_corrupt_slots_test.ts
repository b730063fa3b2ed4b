/** A slot with something else than a snapshot in it: that rank is corrupt, the others are not. */

import assert from "node:assert/strict";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { SlotPath } from "../support/slot_path.ts";
import { loadSlot, slotFileBytes, slotOf } from "../support/slot_bytes.ts";

const NOW = Date.now() / 1000;
const PAYLOAD = encodeLoadSnapshot(createLoadSnapshot({
  timestamp: NOW,
  dpRank: 1,
  numRunningReqs: 3,
  decodeMoments: [1, 2],
  queues: { waiting: 2 },
  extra: { later: RawMsgpack.from({ a: [1, "b", { c: null }] }) },
}));
const GOOD = decodeLoadSnapshot(PAYLOAD);
const BESIDE = { timestamp: NOW, numRunningReqs: 8 };

/** Nested deeper than any stack: each byte is an array of one element. */
const NESTED = new Uint8Array(16_000).fill(0x91);
NESTED.set([0x81, 0xa1, 0x78]);

const CORRUPT: Readonly<Record<string, Uint8Array<ArrayBuffer>>> = {
  "a length one byte beyond the slot": slotOf(PAYLOAD, 16_381),
  "the greatest length": slotOf(PAYLOAD, 0xffff_ffff),
  "a length with the highest bit": slotOf(PAYLOAD, 0x8000_0000),
  "a length that is too short": slotOf(PAYLOAD, PAYLOAD.length - 1),
  "a length that is too long": slotOf(PAYLOAD, PAYLOAD.length + 1),
  "the length of the whole slot": slotOf(PAYLOAD, 16_380),
  "a length of one": slotOf(PAYLOAD, 1),
  "garbage": slotOf(Uint8Array.from({ length: 500 }, (_, n) => n * 37)),
  "a text": slotOf(new TextEncoder().encode('{"num_running_reqs": 3}')),
  "an array": slotOf(Uint8Array.of(0x93, 1, 2, 3)),
  "nil": slotOf(Uint8Array.of(0xc0)),
  "an unused tag": slotOf(Uint8Array.of(0xc1)),
  "deeply nested arrays": slotOf(NESTED),
  "a map that claims four billion pairs": slotOf(Uint8Array.of(0xdf, 255, 255, 255, 255)),
  "a float in an int field": slotOf(
    Uint8Array.fromHex("81b06e756d5f72756e6e696e675f72657173cb3ff0000000000000"),
  ),
};

for (const [what, slot] of Object.entries(CORRUPT)) {
  Deno.test(`${what} makes one rank corrupt, and its last good value stays`, () => {
    using file = new SlotPath();
    file.put(slotFileBytes({ slots: [loadSlot(BESIDE), slotOf(PAYLOAD), null] }));
    using reader = new ShmLoadSnapshotReader(file.path);
    const good = reader.read(1);
    assert.deepEqual(good, GOOD);
    file.patch(16_396, slot);
    for (let n = 0; n < 3; n++) {
      assert.equal(reader.read(1), good);
      assert.deepEqual(reader.readAll(), [createLoadSnapshot(BESIDE), good]);
    }
    assert.deepEqual(reader.health().map(({ state }) => state), ["live", "corrupt", "unreported"]);
    assert.notEqual(reader.health()[1]?.ageMs, null);
    assert.equal(reader.fault, null, "the file itself is in order");

    file.patch(16_396, loadSlot({ timestamp: NOW, dpRank: 1, numRunningReqs: 4 }));
    assert.equal(reader.read(1)?.numRunningReqs, 4);
    assert.equal(reader.health()[1]?.state, "live");
  });
}

Deno.test("a payload cut off at any byte makes the rank corrupt", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [slotOf(PAYLOAD), loadSlot(BESIDE)] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const good = reader.read(0);
  for (let length = 1; length < PAYLOAD.length; length++) {
    file.patch(12, slotOf(PAYLOAD.subarray(0, length)));
    assert.equal(reader.read(0), good);
    assert.equal(reader.health()[0]?.state, "corrupt", `${length} bytes`);
  }
});

Deno.test("a rank that never had a good value is corrupt, and not given", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [CORRUPT["garbage"]!, loadSlot({ dpRank: 1 })] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.equal(reader.read(0), null);
  assert.deepEqual(reader.readAll(), [createLoadSnapshot({ dpRank: 1 })]);
  assert.deepEqual(reader.health()[0], { dpRank: 0, state: "corrupt", ageMs: null });
});

Deno.test("a slot that is emptied keeps the last good value, and is not corrupt any more", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [slotOf(PAYLOAD)] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const good = reader.read(0);
  file.patch(12, CORRUPT["nil"]!);
  assert.equal(reader.health()[0]?.state, "corrupt");
  file.patch(12, new Uint8Array(4));
  assert.equal(reader.read(0), good);
  assert.equal(reader.health()[0]?.state, "live");
});

Deno.test("a corrupt rank is decoded once, not at every read", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: Object.values(CORRUPT) }));
  using reader = new ShmLoadSnapshotReader(file.path);
  reader.readAll();
  const { locks, unchanged } = reader.stats();
  for (let n = 0; n < 100; n++) assert.deepEqual(reader.readAll(), []);
  assert.equal(reader.stats().unchanged, unchanged + 100);
  assert.equal(reader.stats().locks, locks);
});

Deno.test("twenty thousand changed payloads never harm the rank beside them", () => {
  using file = new SlotPath();
  const bytes = slotFileBytes({ slots: [slotOf(PAYLOAD), loadSlot(BESIDE)] });
  file.put(bytes);
  // On a busy machine this takes longer than a snapshot stays live by default.
  using reader = new ShmLoadSnapshotReader(file.path, { staleAfterMs: 600_000 });
  const beside = reader.read(1);
  let random = 1;
  const below = (limit: number) => (random = (random * 48_271) % 2_147_483_647) % limit;
  for (let n = 0; n < 20_000; n++) {
    const slot = slotOf(PAYLOAD);
    // Now and then the length as well, which stands in the first four bytes.
    for (let count = below(4); count >= 0; count--) slot[below(slot.length)] = below(256);
    file.patch(12, slot);
    assert.equal(reader.readAll().at(-1), beside);
  }
  file.put(bytes);
  assert.deepEqual(reader.read(0), GOOD);
  const states = reader.health().map(({ state }) => state);
  assert.deepEqual(states, ["live", "live"]);
});
