/** What all suites share: the reference, the limit, a folder, and how long to measure. */

import { join } from "node:path";
import type { ReadyPeers } from "../peers/setup.ts";
import type { Limit } from "./limit.ts";
import type { Progress } from "./progress.ts";
import type { Section } from "./results.ts";

/** How long things take. */
export interface Pace {
  /** Rounds of each side; at least 9 unless it has to be quick. */
  readonly rounds: number;
  readonly roundMs: number;
  readonly warmMs: number;
  /** Rounds and length of those that need other processes to run hot. */
  readonly hotRounds: number;
  readonly hotMs: number;
  /** How often a process is started to time its start. */
  readonly starts: number;
}

/** The full pace, and one for trying things out, whose figures mean little. */
export const PACES = {
  full: { rounds: 9, roundMs: 25, warmMs: 300, hotRounds: 5, hotMs: 1_400, starts: 15 },
  quick: { rounds: 3, roundMs: 15, warmMs: 250, hotRounds: 1, hotMs: 1_500, starts: 3 },
} as const satisfies Readonly<Record<string, Pace>>;

/** What a suite is given. */
export interface BenchContext {
  readonly peers: ReadyPeers;
  readonly limit: Limit;
  /** Gone when the run is over. */
  readonly folder: string;
  readonly pace: Pace;
  readonly progress: Progress;
  /** Aborted when the run is to end early. */
  readonly signal: AbortSignal;
  /** Whether a case was asked for. */
  readonly wants: (name: string) => boolean;
}

/** Cases that share a table. `null` if none of them was asked for. */
export type Suite = (context: BenchContext) => Promise<Section | null>;

/** A path in the run's folder. */
export function pathIn(context: BenchContext, name: string): string {
  return join(context.folder, name);
}
