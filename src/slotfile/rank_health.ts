/** How far a rank's snapshot can be trusted. */

import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";

/**
 * What a rank's snapshot is worth:
 *
 * - `"unreported"`: it never told its load; a zero that is read for it means nothing.
 * - `"live"`: it told it lately.
 * - `"stale"`: what it told is older than the limit; the engine may hang, or be gone.
 * - `"corrupt"`: what stands in its slot is not a snapshot; the last good one is given instead.
 */
export type RankState = "unreported" | "live" | "stale" | "corrupt";

/** The health of one rank. */
export interface RankHealth {
  /** The rank, from 0. */
  readonly dpRank: number;
  /** What its snapshot is worth. */
  readonly state: RankState;
  /** How old its last good snapshot is, in milliseconds; `null` without one. */
  readonly ageMs: number | null;
}

// Two clocks of one node differ by less; what is dated later than this has no usable timestamp.
const CLOCK_SLACK_MS = 1000;

/** What {@linkcode rankHealth} judges by. */
export interface RankEvidence {
  readonly dpRank: number;
  readonly snapshot: LoadSnapshot | null;
  /** How long ago the snapshot was first seen, in ms. */
  readonly seenForMs: number;
  readonly fault: Error | null;
  /** The wall clock, in ms: what timestamps are compared with. */
  readonly wallMs: number;
  readonly staleAfterMs: number;
}

/** Judges one rank. */
export function rankHealth(evidence: RankEvidence): RankHealth {
  const { dpRank, snapshot, fault } = evidence;
  const ageMs = snapshot === null || isBlank(snapshot) ? null : ageOf(snapshot, evidence);
  if (fault !== null) return { dpRank, state: "corrupt", ageMs };
  if (ageMs === null) return { dpRank, state: "unreported", ageMs };
  return { dpRank, state: ageMs > evidence.staleAfterMs ? "stale" : "live", ageMs };
}

/** Whether a snapshot is what a writer publishes before anything was measured. */
function isBlank(snapshot: LoadSnapshot): boolean {
  return snapshot.timestamp === 0 && snapshot.maxTotalNumTokens === 0 &&
    snapshot.numRunningReqs === 0 && snapshot.numWaitingReqs === 0 && snapshot.numTotalTokens === 0;
}

/** By the measurement's time where it has one, else by when it was first seen. */
function ageOf(snapshot: LoadSnapshot, { wallMs, seenForMs }: RankEvidence): number {
  const measuredAtMs = snapshot.timestamp * 1000;
  const usable = measuredAtMs > 0 && measuredAtMs <= wallMs + CLOCK_SLACK_MS;
  return Math.max(0, usable ? wallMs - measuredAtMs : seenForMs);
}
