/** Reading the load of all ranks from the slot file of an engine on this node. */

import type { SlotFileError } from "../errors.ts";
import type { LoadReader, LoadUpdate, WatchOptions } from "../load_reader.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { AdaptiveWait } from "../watch/adaptive_wait.ts";
import { LoadWatch } from "../watch/load_watch.ts";
import { CoarseClock } from "./coarse_clock.ts";
import { checkDpSize } from "./layout.ts";
import { FollowedFile, isPassing, type RankView } from "./followed_file.ts";
import { acquireLibc, type LibcLease } from "./libc.ts";
import { type RankHealth, rankHealth } from "./rank_health.ts";

/** Options of {@linkcode ShmLoadSnapshotReader}. */
export interface ShmLoadSnapshotReaderOptions {
  /**
   * How many ranks the group must have, 1..65535. Without it the file's header decides.
   */
  readonly dpSize?: number;
  /**
   * From which age on a rank counts as stale, in milliseconds. A long prefill kernel can leave a
   * live rank silent for seconds.
   *
   * @default {10_000}
   */
  readonly staleAfterMs?: number;
  /**
   * The longest that a read waits for the lock, in milliseconds; then it gives the last good value.
   *
   * @default {1}
   */
  readonly lockTimeoutMs?: number;
  /**
   * The longest that a change waits until `watch` looks for it, in milliseconds, 1 or more. While
   * snapshots come, it looks every millisecond; while none do, ever more rarely, down to this.
   *
   * @default {5}
   */
  readonly watchLatencyMs?: number;
  /** Another user, besides ours and root, whose file is accepted. */
  readonly trustedUid?: number;
}

/** What a reader has done so far. Counts start at 0 and only grow. */
export interface ShmLoadSnapshotReaderStats {
  /** Calls of `read`, `readAll` and `health`. */
  readonly reads: number;
  /** Those in which nothing had changed. */
  readonly unchanged: number;
  /**
   * How often the lock was taken: on x86-64 only when a write was met under way, or a payload much
   * longer than the one before.
   */
  readonly locks: number;
  /** New snapshots seen, over all ranks. */
  readonly publications: number;
  /** Reads that gave a last good value because another process kept the lock. */
  readonly lockMisses: number;
  /** Files attached: 1 for the first, one more for each replaced or restarted one. */
  readonly attaches: number;
}

let viewOf: (reader: ShmLoadSnapshotReader, dpRank: number) => RankView;

/** What a reader that is part of another one knows of a rank, besides its health. */
export function slotViewOf(reader: ShmLoadSnapshotReader, dpRank: number): RankView {
  return viewOf(reader, dpRank);
}

/**
 * Reads an engine's slot file.
 *
 * A read looks at the mapped slot first; while nothing has changed it makes no system call. What
 * has changed is copied, and the copy is checked; only if a write is met under way is the lock
 * taken (on arm64, whose stores are not ordered, for each change). So a reader takes the lock at
 * most once for each publication, however often it is called, and hardly ever in practice. It
 * never waits for more than `lockTimeoutMs`, and never gives a torn snapshot: when a rank cannot be
 * read now, it gives the last good one, and {@linkcode health} tells its age.
 *
 * The file may appear, be replaced, grow or vanish at any time; the reader follows.
 *
 * @example
 * ```ts
 * import { ShmLoadSnapshotReader, shmPathFor } from "./mod.ts";
 *
 * using reader = new ShmLoadSnapshotReader(shmPathFor("my-engine"));
 * for (const load of reader.readAll()) console.log(load.dpRank, load.numRunningReqs);
 * ```
 */
export class ShmLoadSnapshotReader implements LoadReader, Disposable {
  static {
    viewOf = (reader, dpRank) => reader.#file.view(dpRank);
  }

  /** The path of the slot file. */
  readonly path: string;

  readonly #lease: LibcLease;
  readonly #clock: CoarseClock;
  readonly #file: FollowedFile;
  readonly #staleAfterMs: number;
  readonly #watchLatencyMs: number;
  #watch: LoadWatch | null = null;
  #closed = false;
  #reads = 0;
  #unchanged = 0;
  #lockMisses = 0;

  /**
   * Opens a reader. The file need not be there yet.
   *
   * @param path The slot file; see {@linkcode shmPathFor}.
   * @param options What to expect of it.
   * @throws {SlotFileError} If a file is there that cannot be used; one that is still being made is
   *   waited for, as an absent one is.
   * @throws {RangeError} If an option is out of range.
   * @throws {Deno.errors.NotCapable} Without `--allow-ffi`.
   */
  constructor(path: string, options: ShmLoadSnapshotReaderOptions = {}) {
    const { dpSize, trustedUid, staleAfterMs = 10_000, lockTimeoutMs = 1 } = options;
    const { watchLatencyMs = 5 } = options;
    if (dpSize !== undefined) checkDpSize(dpSize);
    checkMs("staleAfterMs", staleAfterMs);
    checkMs("lockTimeoutMs", lockTimeoutMs);
    if (!(watchLatencyMs >= 1)) {
      throw new RangeError(`Cannot use watchLatencyMs ${watchLatencyMs}: less than 1`);
    }
    this.path = path;
    this.#staleAfterMs = staleAfterMs;
    this.#watchLatencyMs = watchLatencyMs;
    this.#lease = acquireLibc(path);
    try {
      const { libc } = this.#lease;
      this.#clock = new CoarseClock(libc);
      this.#file = new FollowedFile(libc, this.#clock, path, {
        dpSize: dpSize ?? null,
        patienceMs: lockTimeoutMs,
        trustedUid: trustedUid ?? null,
      });
      if (this.fault !== null && !isPassing(this.fault)) throw this.fault;
    } catch (error) {
      this.#lease.release();
      throw error;
    }
  }

  /** How many ranks the group has, or had last; `null` while no file was attached yet. */
  get dpSize(): number | null {
    return this.#file.dpSize;
  }

  /** Why the path cannot be read now, or `null`. The last good values stay readable meanwhile. */
  get fault(): SlotFileError | null {
    return this.#file.fault;
  }

  /**
   * Reads one rank.
   *
   * @param dpRank The rank, from 0.
   * @returns Its newest good snapshot, or `null` if it never published. The same object is given
   *   until the rank publishes again.
   * @throws {RangeError} If the group has no such rank.
   * @throws {TypeError} If the reader is closed.
   */
  read(dpRank: number): LoadSnapshot | null {
    this.#refresh(dpRank);
    return this.#file.newest(dpRank);
  }

  /**
   * Reads all ranks, under one lock for up to 64 of them that changed.
   *
   * @returns The newest good snapshot of each rank that ever published, in order of rank.
   * @throws {TypeError} If the reader is closed.
   */
  readAll(): LoadSnapshot[] {
    this.#refresh(null);
    const loads: LoadSnapshot[] = [];
    const count = this.#file.rankCount;
    for (let dpRank = 0; dpRank < count; dpRank++) {
      const snapshot = this.#file.newest(dpRank);
      if (snapshot !== null) loads.push(snapshot);
    }
    return loads;
  }

  /**
   * Tells for each rank how far its snapshot can be trusted.
   *
   * @returns One entry for each rank of the group, in order; none while the group's size is unknown.
   * @throws {TypeError} If the reader is closed.
   */
  health(): readonly RankHealth[] {
    this.#refresh(null);
    return Array.from({ length: this.dpSize ?? 0 }, (_, dpRank) => this.#healthOf(dpRank));
  }

  /**
   * Watches for new snapshots: first what each rank says now, then every change. A consumer that is
   * slower than the engine gets the newest snapshot of each rank, and skips those between.
   *
   * A change waits for at most `watchLatencyMs` (and what the isolate is busy with). Watchers share
   * their looks, and nobody looks while none of them waits. A waiting watcher keeps the process
   * alive.
   *
   * @param options When to end.
   * @returns An iteration that ends when the reader is closed or the signal aborts.
   * @throws {TypeError} If the reader is closed.
   *
   * @example
   * ```ts
   * import { ShmLoadSnapshotReader, shmPathFor } from "./mod.ts";
   *
   * using reader = new ShmLoadSnapshotReader(shmPathFor("my-engine"));
   * for await (const { dpRank, snapshot } of reader.watch({ signal: AbortSignal.timeout(10) })) {
   *   console.log(dpRank, snapshot.numRunningReqs);
   * }
   * ```
   */
  watch(options: WatchOptions = {}): AsyncIterableIterator<LoadUpdate, undefined> {
    if (this.#closed) throw new TypeError("Cannot watch load: the reader is closed");
    return (this.#watch ??= this.#startWatch()).iterate(options);
  }

  /**
   * Has the next read ask whether another file is at the path now. Reads ask that by themselves, but
   * only every 50 milliseconds; this is for a caller that knows of a replacement.
   *
   * @example
   * ```ts
   * import { ShmLoadSnapshotReader, shmPathFor } from "./mod.ts";
   *
   * using reader = new ShmLoadSnapshotReader(shmPathFor("my-engine"));
   * // ... the engine says that it has started anew
   * reader.recheckPath();
   * console.log(reader.readAll().length);
   * ```
   */
  recheckPath(): void {
    this.#file.recheckPath();
  }

  /** Tells what the reader has done so far. */
  stats(): ShmLoadSnapshotReaderStats {
    return {
      reads: this.#reads,
      unchanged: this.#unchanged,
      locks: this.#file.locks,
      publications: this.#file.publications,
      lockMisses: this.#lockMisses,
      attaches: this.#file.attaches,
    };
  }

  /** Unmaps and closes. Twice is fine. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#watch?.rouse();
    this.#file.close();
    this.#lease.release();
  }

  /** Closes the reader at the end of a `using` scope. */
  [Symbol.dispose](): void {
    this.close();
  }

  #healthOf(dpRank: number): RankHealth {
    const { snapshot, seenAtMs, fault } = this.#file.view(dpRank);
    return rankHealth({
      dpRank,
      snapshot,
      seenForMs: this.#clock.nowMs() - seenAtMs,
      fault,
      wallMs: Date.now(),
      staleAfterMs: this.#staleAfterMs,
    });
  }

  #startWatch(): LoadWatch {
    const between = new AdaptiveWait(this.#watchLatencyMs);
    const isOpen = () => !this.#closed;
    let seen = -1;
    return new LoadWatch({
      get isOpen() {
        return isOpen();
      },
      look: (newest) => {
        this.#refresh(null);
        const file = this.#file;
        const changes = file.publications + file.attaches;
        if (changes === seen) return;
        seen = changes;
        between.shorten();
        newest.length = file.rankCount;
        for (let dpRank = 0; dpRank < newest.length; dpRank++) newest[dpRank] = file.newest(dpRank);
      },
      ageMs: (dpRank) => this.#healthOf(dpRank).ageMs,
      wait: () => between.wait(),
      wake: () => between.wake(),
    });
  }

  /** Brings a rank, or all of them, up to date. */
  #refresh(dpRank: number | null): void {
    if (this.#closed) throw new TypeError("Cannot read load: the reader is closed");
    this.#reads++;
    const result = this.#file.refresh(dpRank, this.#clock.nowMs());
    if (result === "unchanged") this.#unchanged++;
    else if (result === "locked") this.#lockMisses++;
  }
}

/** Throws a RangeError unless that is a time. */
export function checkMs(name: string, ms: number): void {
  if (ms >= 0) return;
  throw new RangeError(`Cannot use ${name} ${ms}: not a number of milliseconds`);
}
