/** Payloads of slots: MessagePack, the fixed layout, and values that no table knows. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { SnapshotDecodeError } from "../../../src/errors.ts";
import { SnapshotChecker } from "../../../src/snapshot/checker.ts";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../../src/snapshot/codec.ts";
import { SnapshotDecoder } from "../../../src/snapshot/decoder.ts";
import { SECTIONS } from "../../../src/snapshot/fields.ts";
import { decodeFixedLayout, FIXED_PAYLOAD_SIZE } from "../../../src/snapshot/fixed_layout.ts";
import type { LoadSnapshot } from "../../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../../src/snapshot/raw_msgpack.ts";
import { ShapeCache } from "../../../src/snapshot/shape_cache.ts";
import { skipValue } from "../../../src/snapshot/skip_value.ts";
import { Workspace } from "../../../src/snapshot/workspace.ts";
import { asWritten } from "../../support/known.ts";
import { decodeFresh, Inbox } from "../../support/outcome.ts";
import { aStep, payloadsOf, someEntries } from "../../support/payload_arbitraries.ts";
import { isSame } from "../../support/same.ts";
import { fixedSlot } from "../../support/slot_bytes.ts";
import { anUnknownKey, aRawValue, aSnapshot } from "../../support/snapshot_arbitraries.ts";
import { bytesOf, NOTHING_HELD, refusal, type Target } from "../target.ts";

const SEED = 20_261_201;

/** The payload of a slot, of layout 2: nested sections and flat ones. */
export function payloadTarget(): Target {
  const snapshots = fc.sample(aSnapshot, { seed: SEED, numRuns: 100 });
  const payloads = fc.sample(fc.tuple(someEntries, fc.array(aStep)), { seed: SEED, numRuns: 20 })
    .flatMap(([entries, steps]) => payloadsOf(entries, steps));
  const seeds = [...snapshots.map((snapshot) => encodeLoadSnapshot(snapshot)), ...payloads]
    .filter((payload) => payload.length < 1000).slice(0, 200);
  // These have seen all inputs before, and must say what one says that has seen none.
  const workspace = new Workspace(4);
  const decoder = new SnapshotDecoder(new ShapeCache(workspace));
  const checker = new SnapshotChecker();
  const inbox = new Inbox(workspace);
  return {
    ...NOTHING_HELD,
    name: "payload",
    seeds,
    share: 4,
    execute(input) {
      const fresh = attempt(() => decodeFresh(input));
      const anyones = attempt(() => decodeLoadSnapshot(input));
      assert.equal(anyones.ok, fresh.ok, "decodeLoadSnapshot depends on what it saw before");
      const end = inbox.put(input);
      const checked = attempt(() => checker.check(inbox.image, end));
      const seasoned = attempt(() => decoder.decode(inbox, end));
      assert.equal(checked.ok, fresh.ok, "decode and check disagree");
      if (!fresh.ok || !seasoned.ok) {
        assert.equal(seasoned.ok, fresh.ok, "the decoder depends on what it saw before");
        return fresh.ok ? "" : fresh.refusal;
      }
      assert(anyones.ok && isSame(anyones.value, fresh.value), "decoded in another way by it");
      if (!isSame(seasoned.value, fresh.value)) assert.fail("decoded in another way after others");
      assert(checked.ok && checked.value === fresh.value.dpRank);
      assertWritable(fresh.value);
      return shapeOf(fresh.value);
    },
  };
}

/** The slot of layout 1: 38 values of 8 bytes. */
export function fixedTarget(): Target {
  const values = [{ d: 1.5 }, ...Array.from({ length: 37 }, (_, n) => n)];
  return {
    ...NOTHING_HELD,
    name: "fixed",
    seeds: [fixedSlot(values), fixedSlot(values.map(() => 1)), new Uint8Array(304)],
    share: 1,
    execute(input) {
      const bytes = new Uint8Array(FIXED_PAYLOAD_SIZE);
      bytes.set(input.subarray(0, FIXED_PAYLOAD_SIZE));
      const decoded = attempt(() => decodeFixedLayout(new DataView(bytes.buffer), 0));
      if (!decoded.ok) return decoded.refusal;
      assertWritable(decoded.value);
      return shapeOf(decoded.value);
    },
  };
}

/** Any MessagePack value: what is passed over, and what is kept of it. */
export function rawTarget(): Target {
  const values = fc.sample(aRawValue, { seed: SEED, numRuns: 150 }).map(({ bytes }) => bytes);
  const keys = fc.sample(anUnknownKey, { seed: SEED, numRuns: 10 }).map(bytesOf);
  return {
    ...NOTHING_HELD,
    name: "raw-msgpack",
    seeds: [...values, ...keys, ...[0xc4, 0xc7, 0xd4, 0xd6].map((tag) => Uint8Array.of(tag, 1, 1))],
    share: 2,
    execute(input) {
      const view = new DataView(input.buffer, input.byteOffset, input.length);
      const passed = attempt(() => skipValue(view, 0, input.length, 0));
      if (!passed.ok) return passed.refusal;
      const end = passed.value;
      assert(end > 0 && end <= input.length, `passed ${end} of ${input.length} bytes`);
      assert.equal(skipValue(view, 0, end, 0), end, "what follows the value counts");
      if (end > 1) assert(!attempt(() => skipValue(view, 0, end - 1, 0)).ok, "a byte too few");
      try {
        return `${typeof new RawMsgpack(input.slice(0, end)).value()} ${input[0]} ${end % 8}`;
      } catch (error) {
        assert(error instanceof Error);
        return refusal(error.name, error.message, end);
      }
    },
  };
}

type Attempt<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly refusal: string };

/** Only one error is for payloads. */
function attempt<Value>(decode: () => Value): Attempt<Value> {
  try {
    return { ok: true, value: decode() };
  } catch (error) {
    if (!(error instanceof SnapshotDecodeError)) throw error;
    return { ok: false, refusal: refusal(error.name, error.message, error.offset) };
  }
}

/** What was read can be written, and is the same again. */
function assertWritable(snapshot: LoadSnapshot): void {
  const again = decodeLoadSnapshot(encodeLoadSnapshot(snapshot));
  if (!isSame(again, asWritten(snapshot))) assert.fail("lost in encoding");
}

function shapeOf(snapshot: LoadSnapshot): string {
  const sections = SECTIONS.map(({ name }) => {
    const section = snapshot[name];
    return section === null ? "-" : `${section.missing}${section.extra === null ? "" : "+"}`;
  });
  const fields = Object.values(snapshot).filter((value) =>
    typeof value === "number" && value !== 0
  );
  const moments = Math.min(snapshot.decodeMoments?.length ?? -1, 3);
  return `${sections.join()} ${fields.length} ${moments} ${
    Object.keys(snapshot.extra ?? {}).length
  }`;
}
