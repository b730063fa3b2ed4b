/** From bytes to snapshots, for one rank: each payload is compared with the one before it. */

import { SECTION_START, SECTIONS, VALUES } from "./fields.ts";
import { createImage, type Image, PAYLOAD_AT } from "./image.ts";
import { hasFlatSections, liftFlatSections } from "./flat_sections.ts";
import type {
  DisaggregationMetrics,
  LoadSnapshot,
  LoRAMetrics,
  MemoryMetrics,
  QueueMetrics,
  SpeculativeMetrics,
} from "./load_snapshot.ts";
import { maskOf, Shape } from "./shape.ts";
import { ShapeCache } from "./shape_cache.ts";
import { readAny, readFloat, readInt } from "./read_value.ts";
import { INT64, UINT64 } from "./wire.ts";

const DP_RANK = VALUES.findIndex((field) => field.wire === "dp_rank");
const FIRST_CAPACITY = 1024;
const ALL = 0x3f;

/**
 * Decodes the payloads of one rank.
 *
 * It keeps a copy of the last payload. Where the next one differs from it in values only, which is
 * the rule, the values are read from the places that are known, without looking at a key, and
 * sections in which nothing changed are the same objects as before.
 */
export class SnapshotDecoder {
  readonly #shapes: ShapeCache;
  #image: Image = createImage(FIRST_CAPACITY);
  readonly #own: Shape = new Shape();
  // The shape of the image, or `null` where its payload is not a load snapshot.
  #shape: Shape | null = null;
  #end = 0;
  #last: LoadSnapshot | null = null;

  /**
   * @param shapes Shapes to share with the decoders of other ranks.
   */
  constructor(shapes: ShapeCache = new ShapeCache()) {
    this.#shapes = shapes;
  }

  /** The image that was decoded last, also when decoding failed. */
  get image(): Image {
    return this.#image;
  }

  /** Bytes of it that count, from its start; 0 before the first. */
  get end(): number {
    return this.#end;
  }

  /**
   * Decodes a payload.
   *
   * @param incoming An image with the payload; it is copied.
   * @param end Where the payload ends in it.
   * @returns The snapshot.
   * @throws {SnapshotDecodeError} If the payload is not a load snapshot.
   */
  decode(incoming: Image, end: number): LoadSnapshot {
    const changed = this.#take(incoming, end);
    const shape = this.#shape!;
    const last = this.#last;
    this.#last = null;
    const snapshot = this.#build(shape, last === null ? ALL : changed, last);
    this.#last = snapshot;
    return shape.extra !== null && hasFlatSections(shape.extra)
      ? liftFlatSections(snapshot, shape.extra)
      : snapshot;
  }

  /**
   * Checks a payload as strictly as {@linkcode decode} does, without making a snapshot.
   *
   * @param incoming An image with the payload; it is copied.
   * @param end Where the payload ends in it.
   * @returns The rank that the payload names.
   * @throws {SnapshotDecodeError} If the payload is not a load snapshot.
   */
  check(incoming: Image, end: number): number {
    this.#take(incoming, end);
    const shape = this.#shape!;
    const view = this.#image.payloadView;
    this.#last = null;
    for (let v = 0; v < shape.places.length; v++) {
      const form = shape.places[v]! & 15;
      if (form === UINT64 || form === INT64) readAny(view, shape.places[v]!);
    }
    if (shape.extra !== null && hasFlatSections(shape.extra)) {
      liftFlatSections(this.#build(shape, ALL, null), shape.extra);
    }
    return readAny(view, shape.places[DP_RANK]!);
  }

  /** Takes a payload over; returns whose values changed, as bits. */
  #take(incoming: Image, end: number): number {
    const shape = this.#shape;
    if (shape !== null && end === this.#end) {
      const changed = this.#takeValues(incoming, shape);
      if (changed >= 0) return changed;
    }
    this.#shape = this.#last = null;
    if (this.#image.bytes.length < end) this.#image = createImage(end * 2);
    const next = incoming.words;
    const last = this.#image.words;
    for (let w = 0, count = (end + 3) >> 2; w < count; w++) last[w] = next[w]!;
    this.#end = end;
    this.#shape = this.#shapes.find(this.#image, end, this.#own);
    return ALL;
  }

  /** Takes a payload over if it has the shape of the last one; -1 if it does not. */
  #takeValues(incoming: Image, shape: Shape): number {
    const { bits, owners } = maskOf(shape, this.#image, this.#end);
    const next = incoming.words;
    const last = this.#image.words;
    let changed = 0;
    for (let w = PAYLOAD_AT >> 2; w < bits.length; w++) {
      const difference = next[w]! ^ last[w]!;
      if (difference === 0) continue;
      if ((difference & bits[w]!) !== 0) return -1;
      last[w] = next[w]!;
      changed |= owners[w]!;
    }
    return changed;
  }

  /** Makes the snapshot; what did not change is taken from the last one. */
  #build(shape: Shape, changed: number, last: LoadSnapshot | null): LoadSnapshot {
    const { places, sections } = shape;
    const view = this.#image.payloadView;
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
      decodeMoments: this.#moments(shape),
      memory: (changed & 2) === 0
        ? last!.memory
        : (sections & 1) !== 0
        ? this.#memory(shape)
        : null,
      speculative: (changed & 4) === 0
        ? last!.speculative
        : (sections & 2) !== 0
        ? this.#speculative(shape)
        : null,
      lora: (changed & 8) === 0 ? last!.lora : (sections & 4) !== 0 ? this.#lora(shape) : null,
      disaggregation: (changed & 16) === 0
        ? last!.disaggregation
        : (sections & 8) !== 0
        ? this.#disaggregation(shape)
        : null,
      queues: (changed & 32) === 0
        ? last!.queues
        : (sections & 16) !== 0
        ? this.#queues(shape)
        : null,
      extra: shape.extra,
    };
  }

  #moments({ momentPlaces }: Shape): number[] | null {
    const view = this.#image.payloadView;
    return momentPlaces === null ? null : momentPlaces.map((place) => readFloat(view, place));
  }

  #memory({ places, sectionExtra, missing }: Shape): MemoryMetrics {
    const view = this.#image.payloadView;
    let v = SECTION_START[0]!;
    return {
      weightGb: readFloat(view, places[v++]!),
      kvCacheGb: readFloat(view, places[v++]!),
      graphGb: readFloat(view, places[v++]!),
      tokenCapacity: readInt(view, places[v++]!),
      extra: sectionExtra[0]!,
      missing: missing[0]!,
    };
  }

  #speculative({ places, sectionExtra, missing }: Shape): SpeculativeMetrics {
    const view = this.#image.payloadView;
    let v = SECTION_START[1]!;
    return {
      acceptLength: readFloat(view, places[v++]!),
      acceptRate: readFloat(view, places[v++]!),
      extra: sectionExtra[1]!,
      missing: missing[1]!,
    };
  }

  #lora({ places, sectionExtra, missing }: Shape): LoRAMetrics {
    const view = this.#image.payloadView;
    let v = SECTION_START[2]!;
    return {
      slotsUsed: readInt(view, places[v++]!),
      slotsTotal: readInt(view, places[v++]!),
      utilization: readFloat(view, places[v++]!),
      extra: sectionExtra[2]!,
      missing: missing[2]!,
    };
  }

  #disaggregation({ places, sectionExtra, missing, mode }: Shape): DisaggregationMetrics {
    const view = this.#image.payloadView;
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
      extra: sectionExtra[3]!,
      missing: missing[3]!,
    };
  }

  #queues({ places, sectionExtra, missing }: Shape): QueueMetrics {
    const view = this.#image.payloadView;
    let v = SECTION_START[4]!;
    return {
      waiting: readInt(view, places[v++]!),
      grammar: readInt(view, places[v++]!),
      paused: readInt(view, places[v++]!),
      retracted: readInt(view, places[v++]!),
      preallocReady: readInt(view, places[v++]!),
      extra: sectionExtra[4]!,
      missing: missing[4]!,
    };
  }
}

// The builders above name the sections by number; this keeps them in step with the table.
SECTIONS satisfies readonly [
  { name: "memory" },
  { name: "speculative" },
  { name: "lora" },
  { name: "disaggregation" },
  { name: "queues" },
];
