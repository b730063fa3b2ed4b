/** What all readers of load have in common, wherever the load comes from. */

import type { LoadSnapshot } from "./snapshot/load_snapshot.ts";
import type { RankHealth } from "./slotfile/rank_health.ts";

/** A rank's snapshot that is new to a watcher. */
export interface LoadUpdate {
  /** The rank, from 0. */
  readonly dpRank: number;
  /** Its newest good snapshot. */
  readonly snapshot: LoadSnapshot;
  /**
   * How old the snapshot was when the update was handed out, in milliseconds; `null` for the default
   * snapshot that a writer publishes before it has measured anything.
   */
  readonly ageMs: number | null;
}

/** Options of `watch`. */
export interface WatchOptions {
  /** Ends the watching; the iteration then ends as if the reader had closed. */
  readonly signal?: AbortSignal;
}

/**
 * Reads the load of all ranks of one engine: `ShmLoadSnapshotReader` and `ZmqShmLoadSnapshotReader`
 * are such readers.
 */
export interface LoadReader {
  /** How many ranks the group has; `null` while that is unknown. */
  readonly dpSize: number | null;
  /**
   * Reads one rank.
   *
   * @param dpRank The rank, from 0.
   * @returns Its newest good snapshot, the same object until the rank publishes again; `null` if it
   *   never published.
   * @throws {RangeError} If the group has no such rank.
   * @throws {TypeError} If the reader is closed.
   */
  read(dpRank: number): LoadSnapshot | null;
  /**
   * Reads all ranks.
   *
   * @returns The newest good snapshot of each rank that ever published, in order of rank.
   * @throws {TypeError} If the reader is closed.
   */
  readAll(): LoadSnapshot[];
  /**
   * Tells for each rank how far its snapshot can be trusted.
   *
   * @returns One entry for each rank, in order; none while the group's size is unknown.
   * @throws {TypeError} If the reader is closed.
   */
  health(): readonly RankHealth[];
  /**
   * Watches for new snapshots: first what each rank says now, then every change. A consumer that is
   * slower than the engine gets the newest snapshot of each rank, and skips those between.
   *
   * @returns An iteration that ends when the reader closes or the signal aborts.
   * @throws {TypeError} If the reader is closed.
   */
  watch(options?: WatchOptions): AsyncIterableIterator<LoadUpdate, undefined>;
}
