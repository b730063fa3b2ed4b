/** What the benchmarks publish: loads of a busy group, as bytes that all sides share. */

import {
  createLoadSnapshot,
  encodeLoadSnapshot,
  fileSize,
  HEADER_SIZE,
  type LoadSnapshot,
  MAGIC,
  SLOT_SIZE,
  slotOffset,
  VERSION,
} from "../../mod.ts";

/** So many publications of each rank are prepared; they are used one after the other, in a circle. */
export const VERSIONS = 16;

/** The least from one prepared publication to the next: length, payload, zeros. */
const LEAST_STRIDE = 640;

/** The bytes from one prepared publication to the next. */
export function strideOf(publications: Uint8Array, ranks: number): number {
  return publications.length / (VERSIONS * ranks);
}

/**
 * How a rank's publications follow each other.
 *
 * - `"trace"`: as a busy scheduler's do. Its counts wander, queues run empty and fill again, and so
 *   a quarter of its publications have other keys, or integers of another width, than the one
 *   before; among 392 of the embedded engine in examples/ it was 29 %.
 * - `"steady"`: only values change, never a key or a width.
 * - `"few-keys"`: as steady, and all but a few keys have their defaults and are not sent.
 * - `"moments-N"`: as steady, with N numbers in `decode_moments`.
 */
export type Course = "trace" | "steady" | "few-keys" | `moments-${number}`;

/** Makes one rank's publications. Ranks walk the same way, each from another start. */
export function loadsOf(dpRank: number, course: Course): LoadSnapshot[] {
  const steps = walk(course);
  const random = randomNumbers(dpRank + 1);
  const momentCount = course.startsWith("moments-") ? Number(course.slice(8)) : 0;
  return Array.from({ length: VERSIONS }, (_, version) => {
    const { running, waiting } = steps[(version + dpRank * 5) % VERSIONS]!;
    const used = running * 1_900 + Math.round(random() * 900);
    const pending = waiting * (1_000 + Math.round(random() * 400));
    const usage = Math.round(used / 26.2144) / 1e4;
    const timestamp = 1_764_535_000.123_456 + version * 0.014_937 + dpRank * 0.000_731;
    if (course === "few-keys") {
      return createLoadSnapshot({ timestamp, dpRank, numRunningReqs: running });
    }
    return createLoadSnapshot({
      timestamp,
      dpRank,
      numRunningReqs: running,
      numWaitingReqs: waiting,
      numWaitingUncachedTokens: pending,
      numUsedTokens: used,
      numTotalTokens: used + pending,
      numActiveTokens: used + pending,
      numPreallocReadyTokens: 0,
      maxTotalNumTokens: 262_144,
      maxRunningRequests: 160,
      tokenUsage: usage,
      genThroughput: Math.round((2_900 + random() * 200) * 100) / 100,
      cacheHitRate: Math.round((0.7 + random() * 0.05) * 1e4) / 1e4,
      utilization: usage,
      totalPrefillUncachedTokens: 146_919_000 + version * 3_011,
      totalPrefillBusyUs: 5_224_793_000 + version * 14_211,
      decodeMoments: momentCount === 0
        ? null
        : Array.from({ length: momentCount }, () => random() * 1e6),
      memory: { weightGb: 61.274, kvCacheGb: 18.421, graphGb: 2.406, tokenCapacity: 262_144 },
      speculative: { acceptLength: 2.4 + random() / 10, acceptRate: 0.47 + random() / 100 },
      lora: { slotsUsed: 7, slotsTotal: 8, utilization: 0.875 },
      disaggregation: { mode: "null" },
      queues: { waiting, grammar: waiting > 5 ? 1 : 0, paused: 0, retracted: 0, preallocReady: 0 },
    });
  });
}

/** What decides the keys and the widths: how many requests run and wait, step by step. */
function walk(course: Course): { readonly running: number; readonly waiting: number }[] {
  const random = randomNumbers(3);
  const wander = (value: number, step: number, least: number, most: number) =>
    Math.min(most, Math.max(least, value + Math.round((random() - 0.5) * 2 * step)));
  const isSteady = course !== "trace";
  let running = isSteady ? 90 : 126;
  let waiting = 4;
  return Array.from({ length: VERSIONS }, () => {
    running = wander(running, 4, isSteady ? 64 : 100, isSteady ? 120 : 140);
    waiting = wander(waiting, 3, isSteady ? 1 : 0, 6);
    return { running, waiting };
  });
}

/** How many of the publications have another length than the one before, 0..1. */
export function otherLengthShare(loads: readonly LoadSnapshot[]): number {
  const lengths = loads.map((load) => encodeLoadSnapshot(load).length);
  const others = lengths.filter((length, version) => length !== lengths.at(version - 1));
  return others.length / lengths.length;
}

/**
 * Writes all publications of a group into a file that each side loads: of version v and rank r the
 * one at (v * ranks + r) * stride, with its length in front, as it stands in a slot. The stride is
 * what the file's size comes to.
 */
export async function writePublications(
  path: string,
  ranks: number,
  course: Course,
): Promise<void> {
  const payloads = Array.from(
    { length: ranks },
    (_, dpRank) => loadsOf(dpRank, course).map((load) => encodeLoadSnapshot(load)),
  );
  const longest = Math.max(...payloads.flat().map(({ length }) => length));
  const stride = Math.max(LEAST_STRIDE, Math.ceil((4 + longest) / 64) * 64);
  const bytes = new Uint8Array(VERSIONS * ranks * stride);
  payloads.forEach((versions, dpRank) =>
    versions.forEach((payload, version) =>
      putPayload(bytes, (version * ranks + dpRank) * stride, payload)
    )
  );
  await Deno.writeFile(path, bytes);
}

/** Writes a slot file in which each rank has published. */
export async function writeSlotFile(path: string, ranks: number, course: Course): Promise<void> {
  const bytes = new Uint8Array(fileSize(ranks));
  const header = new DataView(bytes.buffer, 0, HEADER_SIZE);
  new TextEncoder().encodeInto(MAGIC, bytes);
  header.setUint16(4, VERSION, true);
  header.setUint16(6, ranks, true);
  header.setUint32(8, SLOT_SIZE, true);
  for (let dpRank = 0; dpRank < ranks; dpRank++) {
    putPayload(bytes, slotOffset(dpRank), encodeLoadSnapshot(loadsOf(dpRank, course)[0]!));
  }
  await Deno.writeFile(path, bytes, { mode: 0o600 });
}

function putPayload(target: Uint8Array, offset: number, payload: Uint8Array): void {
  if (4 + payload.length > SLOT_SIZE) {
    throw new RangeError(`Cannot prepare ${payload.length} bytes: no room`);
  }
  new DataView(target.buffer).setUint32(offset, payload.length, true);
  target.set(payload, offset + 4);
}

/** Numbers from 0 to 1 that are the same in each run (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = Math.imul(seed, 0x85ebca6b);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
