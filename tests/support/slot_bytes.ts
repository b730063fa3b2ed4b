/** Slot files by hand, from what the format says and without the code that is tested. */

import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot, type LoadSnapshotInit } from "../../src/snapshot/load_snapshot.ts";

/** What a file is to hold. */
export interface SlotFileContent {
  readonly magic?: string;
  readonly version?: number;
  /** What the header says, where that is not the number of slots. */
  readonly dpSize?: number;
  readonly slotSize?: number;
  /** What stands in each slot; `null` is a slot of zeros. */
  readonly slots: readonly (Uint8Array | null)[];
}

/** All bytes of a slot file. */
export function slotFileBytes(content: SlotFileContent): Uint8Array<ArrayBuffer> {
  const { magic = "SLNS", version = 2, slotSize = 16_384, slots } = content;
  const bytes = new Uint8Array(12 + slots.length * slotSize);
  bytes.set(headerBytes({ magic, version, dpSize: content.dpSize ?? slots.length, slotSize }));
  slots.forEach((slot, dpRank) => bytes.set(slot ?? [], 12 + dpRank * slotSize));
  return bytes;
}

/** The first twelve bytes. */
export function headerBytes(
  header: {
    readonly magic?: string;
    readonly version?: number;
    readonly dpSize: number;
    readonly slotSize?: number;
  },
): Uint8Array<ArrayBuffer> {
  const { magic = "SLNS", version = 2, dpSize, slotSize = 16_384 } = header;
  const bytes = new Uint8Array(12);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(magic).subarray(0, 4));
  view.setUint16(4, version, true);
  view.setUint16(6, dpSize, true);
  view.setUint32(8, slotSize, true);
  return bytes;
}

/** A slot of version 2: the length, then the payload. */
export function slotOf(
  payload: Uint8Array,
  length: number = payload.length,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4 + payload.length);
  new DataView(bytes.buffer).setUint32(0, length, true);
  bytes.set(payload, 4);
  return bytes;
}

/** A slot of version 2 with a snapshot in it. */
export function loadSlot(init: LoadSnapshotInit): Uint8Array<ArrayBuffer> {
  return slotOf(encodeLoadSnapshot(createLoadSnapshot(init)));
}

/** A slot of version 1 by its 38 values; `d` marks a float, the others are integers. */
export function fixedSlot(values: readonly (number | { readonly d: number })[]) {
  const bytes = new Uint8Array(38 * 8);
  const view = new DataView(bytes.buffer);
  values.forEach((value, index) => {
    if (typeof value === "number") view.setBigInt64(index * 8, BigInt(value), true);
    else view.setFloat64(index * 8, value.d, true);
  });
  return bytes;
}
