/** What a hostile process may leave in a slot: bytes that are no snapshot, each kind in its way. */

import type { Random } from "../../../examples/engine/random.ts";
import { slotOf } from "../../support/slot_bytes.ts";
import { pick } from "./fault.ts";

/**
 * Makes bytes for a slot.
 *
 * @param slot What stands there now.
 */
export function hostileBytes(random: Random, slot: Uint8Array): Uint8Array<ArrayBuffer> {
  const length = new DataView(slot.buffer, slot.byteOffset).getUint32(0, true);
  const payload = slot.slice(4, 4 + Math.min(length, slot.length - 4));
  const noise = Uint8Array.from({ length: 40 + random.index(400) }, () => random.index(256));
  return pick(random, [
    // 0xc1 is the one byte that MessagePack never uses.
    () => slotOf(Uint8Array.of(0xc1, ...noise)),
    () => slotOf(new Uint8Array(16_000).fill(0x91)),
    () => slotOf(noise, 0xffff_ffff),
    () => slotOf(noise, slot.length),
    () => slotOf(payload.subarray(0, Math.max(1, payload.length >> 1))),
    () => slotOf(Uint8Array.of(...payload, 0)),
    // A map whose only value lacks, or has the wrong type.
    () => slotOf(Uint8Array.of(0x81, 0xa7, ...new TextEncoder().encode("dp_rank"))),
    () => slotOf(Uint8Array.of(0x81, 0xa7, ...new TextEncoder().encode("dp_rank"), 0xc3)),
    () => slotOf(Uint8Array.of(0xdf, 0xff, 0xff, 0xff, 0xff, ...noise)),
  ])();
}
