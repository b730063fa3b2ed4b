/**
 * Layout version 1 (#25841): no MessagePack, but 38 values of 8 bytes in a slot of 320, without a
 * length. A section is there when its flag is not 0.
 */

import { SnapshotDecodeError } from "../errors.ts";
import { modeName } from "./flat_sections.ts";
import { createLoadSnapshot, type LoadSnapshot } from "./load_snapshot.ts";

/** Bytes of the values in a slot of version 1. */
export const FIXED_PAYLOAD_SIZE = 304;

/**
 * Reads the values of version 1.
 *
 * @param view At least {@linkcode FIXED_PAYLOAD_SIZE} bytes behind `start`.
 * @param start Where the values start.
 * @returns The snapshot.
 * @throws {SnapshotDecodeError} If an integer is beyond 2^53.
 */
export function decodeFixedLayout(view: DataView, start: number): LoadSnapshot {
  let at = start - 8;
  const float = () => view.getFloat64(at += 8, true);
  const int = () => {
    const value = Number(view.getBigInt64(at += 8, true));
    if (Number.isSafeInteger(value)) return value;
    throw new SnapshotDecodeError("an integer beyond 2^53", at - start);
  };
  // Object literals are evaluated in order, so the order below is the layout's.
  const core = {
    timestamp: float(),
    dpRank: int(),
    numRunningReqs: int(),
    numWaitingReqs: int(),
    numUsedTokens: int(),
    numTotalTokens: int(),
    maxTotalNumTokens: int(),
    maxRunningRequests: int(),
    tokenUsage: float(),
    genThroughput: float(),
    cacheHitRate: float(),
    utilization: float(),
  };
  const hasMemory = int() !== 0;
  const memory = {
    weightGb: float(),
    kvCacheGb: float(),
    graphGb: float(),
    tokenCapacity: int(),
  };
  const hasSpeculative = int() !== 0;
  const speculative = { acceptLength: float(), acceptRate: float() };
  const hasLora = int() !== 0;
  const lora = { slotsUsed: int(), slotsTotal: int(), utilization: float() };
  const hasDisaggregation = int() !== 0;
  const disaggregation = {
    mode: modeName(int()),
    prefillBootstrapQueueReqs: int(),
    prefillInflightQueueReqs: int(),
    decodePreallocQueueReqs: int(),
    decodeTransferQueueReqs: int(),
    decodeRetractedQueueReqs: int(),
    kvTransferSpeedGbS: float(),
    kvTransferLatencyMs: float(),
  };
  const hasQueues = int() !== 0;
  const queues = {
    waiting: int(),
    grammar: int(),
    paused: int(),
    retracted: int(),
    missing: 1, // preallocReady is younger than this layout.
  };
  return createLoadSnapshot({
    ...core,
    memory: hasMemory ? memory : null,
    speculative: hasSpeculative ? speculative : null,
    lora: hasLora ? lora : null,
    disaggregation: hasDisaggregation ? disaggregation : null,
    queues: hasQueues ? queues : null,
  });
}
