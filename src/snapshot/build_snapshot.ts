/** From the places of values to a snapshot. */

import { SECTION_START, SECTIONS } from "./fields.ts";
import type { Image } from "./image.ts";
import type {
  DisaggregationMetrics,
  LoadSnapshot,
  LoRAMetrics,
  MemoryMetrics,
  QueueMetrics,
  SpeculativeMetrics,
} from "./load_snapshot.ts";
import { RawMsgpack } from "./raw_msgpack.ts";
import { readFloat, readInt } from "./read_value.ts";
import type { Shape } from "./shape.ts";

/**
 * Makes the snapshot of a payload.
 *
 * @param shape The payload's shape.
 * @param image The payload.
 * @param renewed A bit for each section that is made anew; it must be there.
 * @param last Where the other sections are taken from; without it they are `null`.
 * @throws {SnapshotDecodeError} If an integer is beyond 2^53.
 */
export function buildSnapshot(
  shape: Shape,
  image: Image,
  renewed: number,
  last: LoadSnapshot | null,
): LoadSnapshot {
  const { places } = shape;
  const view = image.payloadView;
  let v = 0;
  return {
    timestamp: readFloat(view, places[v++]!),
    dpRank: readInt(view, places[v++]!),
    numRunningReqs: readInt(view, places[v++]!),
    numWaitingReqs: readInt(view, places[v++]!),
    numWaitingUncachedTokens: readInt(view, places[v++]!),
    numUsedTokens: readInt(view, places[v++]!),
    numTotalTokens: readInt(view, places[v++]!),
    numActiveTokens: readInt(view, places[v++]!),
    numPreallocReadyTokens: readInt(view, places[v++]!),
    maxTotalNumTokens: readInt(view, places[v++]!),
    maxRunningRequests: readInt(view, places[v++]!),
    tokenUsage: readFloat(view, places[v++]!),
    genThroughput: readFloat(view, places[v++]!),
    cacheHitRate: readFloat(view, places[v++]!),
    utilization: readFloat(view, places[v++]!),
    totalPrefillUncachedTokens: readInt(view, places[v++]!),
    totalPrefillBusyUs: readInt(view, places[v++]!),
    decodeMoments: momentsOf(shape, view),
    memory: (renewed & 1) !== 0 ? memoryOf(shape, view) : last === null ? null : last.memory,
    speculative: (renewed & 2) !== 0
      ? speculativeOf(shape, view)
      : last === null
      ? null
      : last.speculative,
    lora: (renewed & 4) !== 0 ? loraOf(shape, view) : last === null ? null : last.lora,
    disaggregation: (renewed & 8) !== 0
      ? disaggregationOf(shape, view)
      : last === null
      ? null
      : last.disaggregation,
    queues: (renewed & 16) !== 0 ? queuesOf(shape, view) : last === null ? null : last.queues,
    extra: shape.extra === null ? null : copyOf(shape.extra),
  };
}

function momentsOf({ momentPlaces }: Shape, view: DataView): number[] | null {
  return momentPlaces === null ? null : momentPlaces.map((place) => readFloat(view, place));
}

function memoryOf({ places, sectionExtra, missing }: Shape, view: DataView): MemoryMetrics {
  let v = SECTION_START[0]!;
  return {
    weightGb: readFloat(view, places[v++]!),
    kvCacheGb: readFloat(view, places[v++]!),
    graphGb: readFloat(view, places[v++]!),
    tokenCapacity: readInt(view, places[v++]!),
    extra: tailOf(sectionExtra[0]!),
    missing: missing[0]!,
  };
}

function speculativeOf(
  { places, sectionExtra, missing }: Shape,
  view: DataView,
): SpeculativeMetrics {
  let v = SECTION_START[1]!;
  return {
    acceptLength: readFloat(view, places[v++]!),
    acceptRate: readFloat(view, places[v++]!),
    extra: tailOf(sectionExtra[1]!),
    missing: missing[1]!,
  };
}

function loraOf({ places, sectionExtra, missing }: Shape, view: DataView): LoRAMetrics {
  let v = SECTION_START[2]!;
  return {
    slotsUsed: readInt(view, places[v++]!),
    slotsTotal: readInt(view, places[v++]!),
    utilization: readFloat(view, places[v++]!),
    extra: tailOf(sectionExtra[2]!),
    missing: missing[2]!,
  };
}

function disaggregationOf(
  { places, sectionExtra, missing, mode }: Shape,
  view: DataView,
): DisaggregationMetrics {
  let v = SECTION_START[3]! + 1; // The first is the mode, a string.
  return {
    mode,
    prefillBootstrapQueueReqs: readInt(view, places[v++]!),
    prefillInflightQueueReqs: readInt(view, places[v++]!),
    decodePreallocQueueReqs: readInt(view, places[v++]!),
    decodeTransferQueueReqs: readInt(view, places[v++]!),
    decodeRetractedQueueReqs: readInt(view, places[v++]!),
    kvTransferSpeedGbS: readFloat(view, places[v++]!),
    kvTransferLatencyMs: readFloat(view, places[v++]!),
    extra: tailOf(sectionExtra[3]!),
    missing: missing[3]!,
  };
}

function queuesOf({ places, sectionExtra, missing }: Shape, view: DataView): QueueMetrics {
  let v = SECTION_START[4]!;
  return {
    waiting: readInt(view, places[v++]!),
    grammar: readInt(view, places[v++]!),
    paused: readInt(view, places[v++]!),
    retracted: readInt(view, places[v++]!),
    preallocReady: readInt(view, places[v++]!),
    extra: tailOf(sectionExtra[4]!),
    missing: missing[4]!,
  };
}

/** A shape outlives its snapshots: none of them gets what others will get, too. */
function copyOf(extra: Readonly<Record<string, RawMsgpack>>): Record<string, RawMsgpack> {
  // No prototype: a key named "__proto__" is a key like any other.
  const copy = Object.create(null) as Record<string, RawMsgpack>;
  for (const key in extra) copy[key] = rawCopyOf(extra[key]!);
  return copy;
}

function tailOf(extra: readonly RawMsgpack[] | null): RawMsgpack[] | null {
  return extra === null ? null : extra.map(rawCopyOf);
}

function rawCopyOf({ bytes }: RawMsgpack): RawMsgpack {
  return new RawMsgpack(bytes.slice());
}

// The functions above name the sections by number; this keeps them in step with the table.
SECTIONS satisfies readonly [
  { name: "memory" },
  { name: "speculative" },
  { name: "lora" },
  { name: "disaggregation" },
  { name: "queues" },
];
