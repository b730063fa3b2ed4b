/** Whole slot files, header and all, through a reader; and headers alone. */

import assert from "node:assert/strict";
import { SlotFileError } from "../../../src/errors.ts";
import { decodeHeader, headerWords, MAX_SLOT_SIZE } from "../../../src/slotfile/layout.ts";
import { ShmLoadSnapshotReader } from "../../../src/slotfile/reader.ts";
import { decodeLoadSnapshot } from "../../../src/snapshot/codec.ts";
import { fixedSlot, headerBytes, loadSlot, slotFileBytes } from "../../support/slot_bytes.ts";
import { SlotPath } from "../../support/slot_path.ts";
import { isSame } from "../../support/same.ts";
import { bytesOf, NOTHING_HELD, type Target } from "../target.ts";

const STATES = ["live", "stale", "corrupt", "unreported"];
/** The longest file: a header may claim as much as it likes. */
const MAX_BYTES = 8_192;

/** The twelve bytes of a header. */
export function headerTarget(): Target {
  return {
    ...NOTHING_HELD,
    name: "header",
    seeds: [
      headerBytes({ dpSize: 2 }),
      headerBytes({ dpSize: 65_535, version: 1, slotSize: 304 }),
      headerBytes({ dpSize: 1, version: 3 }),
      new Uint8Array(12),
    ],
    share: 1,
    execute(input) {
      const bytes = new Uint8Array(12);
      bytes.set(input.subarray(0, 12));
      const checked = decodeHeader(new DataView(bytes.buffer));
      if (!checked.ok) return checked.reason;
      const { version, dpSize, slotSize } = checked.header;
      assert(version === 1 || version === 2);
      assert(dpSize >= 1 && slotSize >= 5 && slotSize <= MAX_SLOT_SIZE);
      assert.deepEqual(new Uint8Array(headerWords(checked.header).buffer), bytes);
      return `${version} ${Math.log2(dpSize) | 0} ${Math.log2(slotSize) | 0}`;
    },
  };
}

/** A file that anything may stand in; a reader that opens it, and one that follows it. */
export function slotFileTarget(): Target {
  const path = new SlotPath();
  const small = { slotSize: 512 };
  const slots = [loadSlot({ dpRank: 0, numRunningReqs: 3 }), loadSlot({ dpRank: 1, queues: {} })];
  const fixed = fixedSlot([{ d: 1 }, ...Array.from({ length: 37 }, (_, n) => n)]);
  const sound = slotFileBytes({ ...small, slots });
  path.put(sound);
  const follower = new ShmLoadSnapshotReader(path.path);
  return {
    name: "slot-file",
    seeds: [
      sound,
      slotFileBytes({ ...small, slots: [slots[0]!, null, slots[1]!] }),
      slotFileBytes({ version: 1, slotSize: 304, slots: [fixed, fixed] }),
      slotFileBytes({ ...small, slots, dpSize: 60_000 }),
      new Uint8Array(12),
      bytesOf("SLNS"),
    ],
    share: 0.05,
    execute(input) {
      const bytes = input.slice(0, MAX_BYTES);
      path.put(bytes);
      const old = looked(follower);
      try {
        using reader = new ShmLoadSnapshotReader(path.path);
        assertTold(reader, bytes);
        return `${looked(reader)} / ${old}`;
      } catch (error) {
        if (!(error instanceof SlotFileError)) throw error;
        return `${error.reason} / ${old}`;
      }
    },
    [Symbol.dispose]() {
      follower.close();
      path[Symbol.dispose]();
    },
  };
}

/** Reads all that a reader tells. */
function looked(reader: ShmLoadSnapshotReader): string {
  const loads = reader.readAll();
  const health = reader.health();
  const told = health.slice(0, 4).map(({ state, ageMs }) => {
    assert(STATES.includes(state));
    assert(ageMs === null || typeof ageMs === "number");
    return state[0];
  });
  const size = reader.dpSize ?? 0;
  return `${Math.log2(size + 1) | 0} ${told} ${Math.min(loads.length, 4)} ${reader.fault?.reason}`;
}

/** A reader that saw nothing else tells what stands in the slots, and nothing that does not. */
function assertTold(reader: ShmLoadSnapshotReader, bytes: Uint8Array<ArrayBuffer>): void {
  const dpSize = reader.dpSize;
  if (dpSize === null) return;
  const view = new DataView(bytes.buffer);
  if (view.getUint16(4, true) !== 2) return;
  const slotSize = view.getUint32(8, true);
  for (let dpRank = 0; dpRank < Math.min(dpSize, 4); dpRank++) {
    const told = reader.read(dpRank);
    if (told === null) continue;
    const start = 12 + dpRank * slotSize;
    const end = start + 4 + view.getUint32(start, true);
    assert(end <= start + slotSize && end <= bytes.length, "read beyond its slot");
    assert(isSame(told, decodeLoadSnapshot(bytes.slice(start + 4, end))), "told something else");
  }
}
