/** From bytes to snapshots, for one rank: each payload is compared with the one before it. */

import { SnapshotDecodeError } from "../errors.ts";
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
import { Shape } from "./shape.ts";
import {
  ABSENT,
  FIXINT,
  FLOAT32,
  FLOAT64,
  INT16,
  INT32,
  INT64,
  INT64_AS_FLOAT,
  INT8,
  UINT16,
  UINT32,
  UINT64,
  UINT64_AS_FLOAT,
  UINT8,
  WIDTH,
} from "./wire.ts";

const DP_RANK = VALUES.findIndex((field) => field.wire === "dp_rank");
const HALF = 2 ** 32;
const FIRST_CAPACITY = 1024;
const CORE = 1;
const ALL = 0x3f;

/**
 * Decodes the payloads of one rank.
 *
 * It keeps a copy of the last payload. Where the next one differs from it in values only, which is
 * the rule, the values are read from the places that are known, without looking at a key, and
 * sections in which nothing changed are the same objects as before.
 */
export class SnapshotDecoder {
  #image: Image = createImage(FIRST_CAPACITY);
  readonly #shape: Shape = new Shape();
  // By word of the image: a bit is 1 where a payload of the same shape must not differ.
  #mask: Int32Array = new Int32Array(0);
  // By word of the image: whose values stand there, as bits; see #owner.
  #owners: Uint8Array = new Uint8Array(0);
  #masked = false;
  #valid = false;
  #end = 0;
  #last: LoadSnapshot | null = null;

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
    const snapshot = this.#build(changed, this.#last);
    this.#last = snapshot;
    this.#valid = true;
    return this.#shape.extra !== null && hasFlatSections(this.#shape.extra)
      ? liftFlatSections(snapshot, this.#shape.extra)
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
    this.#last = null;
    for (const place of this.#shape.places) {
      if ((place & 15) === UINT64 || (place & 15) === INT64) this.#read(place);
    }
    if (this.#shape.extra !== null && hasFlatSections(this.#shape.extra)) {
      liftFlatSections(this.#build(ALL, null), this.#shape.extra);
    }
    this.#valid = true;
    return this.#read(this.#shape.places[DP_RANK]!);
  }

  /** Takes a payload over; returns whose values changed, as bits. */
  #take(incoming: Image, end: number): number {
    const changed = this.#takeValues(incoming, end);
    if (changed >= 0) return changed;
    this.#valid = this.#masked = false;
    if (this.#image.bytes.length < end) this.#image = createImage(end * 2);
    this.#image.bytes.set(incoming.bytes.subarray(0, end));
    this.#end = end;
    this.#shape.scan(this.#image.payload, this.#image.payloadView, end - PAYLOAD_AT);
    return ALL;
  }

  /** Takes a payload over if it differs from the last one in values only; -1 if it does not. */
  #takeValues(incoming: Image, end: number): number {
    if (!this.#valid || end !== this.#end) return -1;
    if (!this.#masked) this.#makeMask();
    const mask = this.#mask;
    const owners = this.#owners;
    const next = incoming.words;
    const last = this.#image.words;
    const count = (end + 3) >> 2;
    let changed = 0;
    this.#valid = false;
    for (let w = PAYLOAD_AT >> 2; w < count; w++) {
      const difference = next[w]! ^ last[w]!;
      if (difference === 0) continue;
      if ((difference & mask[w]!) !== 0) return -1;
      last[w] = next[w]!;
      changed |= owners[w]!;
    }
    return changed;
  }

  #makeMask(): void {
    const { places, momentPlaces } = this.#shape;
    const wordCount = this.#image.words.length;
    if (this.#mask.length !== wordCount) {
      this.#mask = new Int32Array(wordCount);
      this.#owners = new Uint8Array(wordCount);
    }
    const bytes = new Uint8Array(this.#mask.buffer);
    bytes.fill(0);
    bytes.fill(0xff, PAYLOAD_AT, this.#end);
    this.#owners.fill(0);
    places.forEach((place, value) => this.#unmask(bytes, place, ownerOf(value)));
    for (const place of momentPlaces) this.#unmask(bytes, place, CORE);
    this.#masked = true;
  }

  #unmask(mask: Uint8Array, place: number, owner: number): void {
    const form = place & 15;
    const at = PAYLOAD_AT + (place >> 4);
    if (form === ABSENT) return;
    const next = at + WIDTH[form]!;
    if (form !== FIXINT) mask.fill(0, at, next);
    // A fixint is its own tag: its highest bits must stay, three of them if it is negative.
    else mask[at] = this.#image.bytes[at]! < 0x80 ? 0x80 : 0xe0;
    for (let w = at >> 2; w <= (next - 1) >> 2; w++) this.#owners[w]! |= owner;
  }

  #value(value: number): number {
    return this.#read(this.#shape.places[value]!);
  }

  #read(place: number): number {
    const view = this.#image.payloadView;
    const at = place >> 4;
    switch (place & 15) {
      case ABSENT:
        return 0;
      case FLOAT64:
        return view.getFloat64(at);
      case FIXINT:
      case INT8:
        return view.getInt8(at);
      case UINT8:
        return view.getUint8(at);
      case UINT16:
        return view.getUint16(at);
      case UINT32:
        return view.getUint32(at);
      case INT16:
        return view.getInt16(at);
      case INT32:
        return view.getInt32(at);
      case FLOAT32:
        return view.getFloat32(at);
      case UINT64:
        return exact(view.getUint32(at) * HALF + view.getUint32(at + 4), at);
      case INT64:
        return exact(view.getInt32(at) * HALF + view.getUint32(at + 4), at);
      case UINT64_AS_FLOAT:
        return view.getUint32(at) * HALF + view.getUint32(at + 4);
      case INT64_AS_FLOAT:
        return view.getInt32(at) * HALF + view.getUint32(at + 4);
      default:
        throw new SnapshotDecodeError("a form that cannot be", at);
    }
  }

  /** Makes the snapshot; what did not change is taken from the last one. */
  #build(changed: number, last: LoadSnapshot | null): LoadSnapshot {
    if (last === null) changed = ALL;
    let v = 0;
    return {
      timestamp: this.#value(v++),
      dpRank: this.#value(v++),
      numRunningReqs: this.#value(v++),
      numWaitingReqs: this.#value(v++),
      numWaitingUncachedTokens: this.#value(v++),
      numUsedTokens: this.#value(v++),
      numTotalTokens: this.#value(v++),
      numActiveTokens: this.#value(v++),
      numPreallocReadyTokens: this.#value(v++),
      maxTotalNumTokens: this.#value(v++),
      maxRunningRequests: this.#value(v++),
      tokenUsage: this.#value(v++),
      genThroughput: this.#value(v++),
      cacheHitRate: this.#value(v++),
      utilization: this.#value(v++),
      totalPrefillUncachedTokens: this.#value(v++),
      totalPrefillBusyUs: this.#value(v++),
      decodeMoments: this.#shape.hasMoments ? this.#moments() : null,
      memory: (changed & 2) === 0 ? last!.memory : this.#has(0) ? this.#memory() : null,
      speculative: (changed & 4) === 0
        ? last!.speculative
        : this.#has(1)
        ? this.#speculative()
        : null,
      lora: (changed & 8) === 0 ? last!.lora : this.#has(2) ? this.#lora() : null,
      disaggregation: (changed & 16) === 0
        ? last!.disaggregation
        : this.#has(3)
        ? this.#disaggregation()
        : null,
      queues: (changed & 32) === 0 ? last!.queues : this.#has(4) ? this.#queues() : null,
      extra: this.#shape.extra,
    };
  }

  #has(section: number): boolean {
    return (this.#shape.sections & (1 << section)) !== 0;
  }

  #moments(): number[] {
    return this.#shape.momentPlaces.map((place) => this.#read(place));
  }

  #memory(): MemoryMetrics {
    let v = SECTION_START[0]!;
    return {
      weightGb: this.#value(v++),
      kvCacheGb: this.#value(v++),
      graphGb: this.#value(v++),
      tokenCapacity: this.#value(v++),
      extra: this.#shape.sectionExtra[0]!,
      missing: this.#shape.missing[0]!,
    };
  }

  #speculative(): SpeculativeMetrics {
    let v = SECTION_START[1]!;
    return {
      acceptLength: this.#value(v++),
      acceptRate: this.#value(v++),
      extra: this.#shape.sectionExtra[1]!,
      missing: this.#shape.missing[1]!,
    };
  }

  #lora(): LoRAMetrics {
    let v = SECTION_START[2]!;
    return {
      slotsUsed: this.#value(v++),
      slotsTotal: this.#value(v++),
      utilization: this.#value(v++),
      extra: this.#shape.sectionExtra[2]!,
      missing: this.#shape.missing[2]!,
    };
  }

  #disaggregation(): DisaggregationMetrics {
    let v = SECTION_START[3]! + 1; // The first is the mode, a string.
    return {
      mode: this.#shape.mode,
      prefillBootstrapQueueReqs: this.#value(v++),
      prefillInflightQueueReqs: this.#value(v++),
      decodePreallocQueueReqs: this.#value(v++),
      decodeTransferQueueReqs: this.#value(v++),
      decodeRetractedQueueReqs: this.#value(v++),
      kvTransferSpeedGbS: this.#value(v++),
      kvTransferLatencyMs: this.#value(v++),
      extra: this.#shape.sectionExtra[3]!,
      missing: this.#shape.missing[3]!,
    };
  }

  #queues(): QueueMetrics {
    let v = SECTION_START[4]!;
    return {
      waiting: this.#value(v++),
      grammar: this.#value(v++),
      paused: this.#value(v++),
      retracted: this.#value(v++),
      preallocReady: this.#value(v++),
      extra: this.#shape.sectionExtra[4]!,
      missing: this.#shape.missing[4]!,
    };
  }
}

/** Whose value it is: bit 0 for the core, then a bit for each section. */
function ownerOf(value: number): number {
  const section = SECTION_START.findLastIndex((start) => value >= start);
  return section < 0 ? CORE : 2 << section;
}

/** Refuses an integer that a number cannot hold. */
function exact(value: number, at: number): number {
  if (Number.isSafeInteger(value)) return value;
  throw new SnapshotDecodeError("an integer beyond 2^53", at - 1);
}

// The builders above name the sections by number; this keeps them in step with the table.
SECTIONS satisfies readonly [
  { name: "memory" },
  { name: "speculative" },
  { name: "lora" },
  { name: "disaggregation" },
  { name: "queues" },
];
