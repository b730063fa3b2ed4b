/** Reading the load of all ranks from the slot file of an engine on this node. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import { SlotFileError } from "../errors.ts";
import type { LoadReader, LoadUpdate, WatchOptions } from "../load_reader.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { AdaptiveWait } from "../watch/adaptive_wait.ts";
import { LoadWatch } from "../watch/load_watch.ts";
import { Attachment, type Refresh } from "./attachment.ts";
import { CoarseClock } from "./coarse_clock.ts";
import { checkDpRank, checkDpSize, MAX_DP_SIZE } from "./layout.ts";
import { acquireLibc, cString, type Libc, type LibcLease } from "./libc.ts";
import { fault } from "./open_file.ts";
import { type RankHealth, rankHealth } from "./rank_health.ts";
import { statPath } from "./stat.ts";

// How often a reader asks whether its path still names its file: the only system call that a read
// makes while nothing changes.
const PATH_CHECK_MS = 50;

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
  /** How often the lock was taken: on x86-64 only when a write was met under way. */
  readonly locks: number;
  /** New snapshots seen, over all ranks. */
  readonly publications: number;
  /** Reads that gave a last good value because another process kept the lock. */
  readonly lockMisses: number;
  /** Files attached: 1 for the first, one more for each replaced or restarted one. */
  readonly attaches: number;
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
  /** The path of the slot file. */
  readonly path: string;

  readonly #cPath: Uint8Array<ArrayBuffer>;
  readonly #lease: LibcLease;
  readonly #libc: Libc;
  readonly #clock: CoarseClock;
  readonly #wantedDpSize: number | null;
  #lastDpSize: number | null = null;
  readonly #staleAfterMs: number;
  readonly #openOptions: { readonly patienceMs: number; readonly trustedUid: number | null };
  #attachment: Attachment | null = null;
  // What the file before this one said, for ranks that have not published in this one yet.
  #inherited: readonly (LoadSnapshot | null)[] = [];
  #inheritedSeenAtMs: readonly number[] = [];
  #fault: SlotFileError | null = null;
  #closed = false;
  #nextPathCheckMs = 0;
  #reads = 0;
  #unchanged = 0;
  #lockMisses = 0;
  #attaches = 0;
  #publicationsBefore = 0;
  #locksBefore = 0;
  readonly #watchLatencyMs: number;
  #watch: LoadWatch | null = null;

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
    const { dpSize, staleAfterMs = 10_000, lockTimeoutMs = 1, watchLatencyMs = 5 } = options;
    if (dpSize !== undefined) checkDpSize(dpSize);
    checkMs("staleAfterMs", staleAfterMs);
    checkMs("lockTimeoutMs", lockTimeoutMs);
    if (!(watchLatencyMs >= 1)) {
      throw new RangeError(`Cannot use watchLatencyMs ${watchLatencyMs}: less than 1`);
    }
    this.#watchLatencyMs = watchLatencyMs;
    this.path = path;
    this.#cPath = cString(path);
    this.#wantedDpSize = dpSize ?? null;
    this.#staleAfterMs = staleAfterMs;
    this.#openOptions = { patienceMs: lockTimeoutMs, trustedUid: options.trustedUid ?? null };
    this.#lease = acquireLibc(path);
    this.#libc = this.#lease.libc;
    this.#clock = new CoarseClock(this.#libc);
    this.#attach();
    if (this.#fault !== null && !isPassing(this.#fault)) {
      this.#lease.release();
      throw this.#fault;
    }
  }

  /** How many ranks the group has, or had last; `null` while no file was attached yet. */
  get dpSize(): number | null {
    return this.#attachment?.header.dpSize ?? this.#wantedDpSize ?? this.#lastDpSize;
  }

  /** Why the path cannot be read now, or `null`. The last good values stay readable meanwhile. */
  get fault(): SlotFileError | null {
    return this.#fault;
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
    const attachment = this.#refresh(dpRank);
    return this.#newestOf(attachment, dpRank);
  }

  /**
   * Reads all ranks, under one lock for up to 64 of them that changed.
   *
   * @returns The newest good snapshot of each rank that ever published, in order of rank.
   * @throws {TypeError} If the reader is closed.
   */
  readAll(): LoadSnapshot[] {
    const attachment = this.#refresh(null);
    const loads: LoadSnapshot[] = [];
    const count = attachment?.slots.length ?? this.#inherited.length;
    for (let dpRank = 0; dpRank < count; dpRank++) {
      const snapshot = this.#newestOf(attachment, dpRank);
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

  /** Tells what the reader has done so far. */
  stats(): ShmLoadSnapshotReaderStats {
    return {
      reads: this.#reads,
      unchanged: this.#unchanged,
      locks: this.#locksBefore + (this.#attachment?.locks ?? 0),
      publications: this.#publications,
      lockMisses: this.#lockMisses,
      attaches: this.#attaches,
    };
  }

  /** Unmaps and closes. Twice is fine. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#watch?.rouse();
    this.#detach();
    this.#lease.release();
  }

  /** Closes the reader at the end of a `using` scope. */
  [Symbol.dispose](): void {
    this.close();
  }

  #healthOf(dpRank: number): RankHealth {
    const slot = this.#attachment?.slots[dpRank];
    const isInherited = (slot?.snapshot ?? null) === null;
    const seenAtMs = isInherited ? this.#inheritedSeenAtMs[dpRank] : slot?.seenAtMs;
    return rankHealth({
      dpRank,
      snapshot: (isInherited ? this.#inherited[dpRank] : slot?.snapshot) ?? null,
      seenForMs: this.#clock.nowMs() - (seenAtMs ?? 0),
      fault: slot?.fault ?? null,
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
        const attachment = this.#refresh(null);
        const changes = this.#publications + this.#attaches;
        if (changes === seen) return;
        seen = changes;
        between.shorten();
        newest.length = attachment?.slots.length ?? this.#inherited.length;
        for (let dpRank = 0; dpRank < newest.length; dpRank++) {
          newest[dpRank] = this.#newestOf(attachment, dpRank);
        }
      },
      ageMs: (dpRank) => this.#healthOf(dpRank).ageMs,
      wait: () => between.wait(),
      wake: () => between.wake(),
    });
  }

  get #publications(): number {
    return this.#publicationsBefore + (this.#attachment?.publications ?? 0);
  }

  /** Brings a rank, or all of them, up to date. Returns what there is to read from. */
  #refresh(dpRank: number | null): Attachment | null {
    if (this.#closed) throw new TypeError("Cannot read load: the reader is closed");
    this.#reads++;
    const nowMs = this.#clock.nowMs();
    this.#followPath(nowMs);
    if (this.#refreshAttached(dpRank, nowMs) === "gone") {
      this.#detach();
      this.#attach();
      this.#refreshAttached(dpRank, nowMs);
    }
    return this.#attachment;
  }

  #refreshAttached(dpRank: number | null, nowMs: number): Refresh {
    const attachment = this.#attachment;
    if (dpRank !== null) checkDpRank(dpRank, this.dpSize ?? MAX_DP_SIZE);
    if (attachment === null) return "unchanged";
    const result = dpRank === null
      ? attachment.refresh(0, attachment.slots.length, nowMs)
      : attachment.refresh(dpRank, dpRank + 1, nowMs);
    this.#count(result);
    return result;
  }

  #count(result: Refresh): void {
    if (result === "unchanged") this.#unchanged++;
    else if (result === "locked") this.#lockMisses++;
  }

  #newestOf(attachment: Attachment | null, dpRank: number): LoadSnapshot | null {
    return attachment?.slots[dpRank]!.snapshot ?? this.#inherited[dpRank] ?? null;
  }

  /** Attaches a file that appeared, and from time to time asks whether it is still the same one. */
  #followPath(nowMs: number): void {
    if (this.#attachment === null) return this.#attach();
    if (nowMs < this.#nextPathCheckMs) return;
    this.#nextPathCheckMs = nowMs + PATH_CHECK_MS;
    try {
      if (!this.#attachment.isWhole()) {
        this.#detach();
        return this.#attach();
      }
      const stat = statPath(this.#libc, this.path, this.#cPath);
      if (stat?.identity === this.#attachment.identity) {
        this.#setFault(null);
      } else if (stat === null) {
        // The engine may be gone, or its writers may go on with a file that has no name.
        this.#setFault(fault("absent", this.path, "it was removed"));
      } else {
        this.#attach();
      }
    } catch (error) {
      if (!(error instanceof SlotFileError)) throw error;
      this.#setFault(error);
    }
  }

  /** Attaches what is at the path, if it can be used, instead of what was attached before. */
  #attach(): void {
    try {
      const attachment = Attachment.open(this.#libc, this.path, this.#openOptions);
      if (attachment === null) {
        return this.#setFault(fault("absent", this.path, "nothing is there"));
      }
      const { dpSize } = attachment.header;
      if (this.#wantedDpSize !== null && dpSize !== this.#wantedDpSize) {
        attachment.close();
        const text = `it has ${dpSize} ranks, not ${this.#wantedDpSize}`;
        return this.#setFault(fault("dp-size", this.path, text));
      }
      this.#detach();
      this.#inherited = this.#inherited.slice(0, dpSize);
      this.#attachment = attachment;
      this.#attaches++;
      this.#nextPathCheckMs = this.#clock.nowMs() + PATH_CHECK_MS;
      this.#setFault(null);
    } catch (error) {
      if (!(error instanceof SlotFileError)) throw error;
      this.#setFault(error);
    }
  }

  /** Lets go of the file, but not of what its ranks said last. */
  #detach(): void {
    const attachment = this.#attachment;
    if (attachment === null) return;
    const { slots } = attachment;
    this.#lastDpSize = slots.length;
    this.#inheritedSeenAtMs = slots.map((slot, dpRank) =>
      slot.snapshot === null ? this.#inheritedSeenAtMs[dpRank] ?? 0 : slot.seenAtMs
    );
    this.#inherited = slots.map((slot, dpRank) => slot.snapshot ?? this.#inherited[dpRank] ?? null);
    this.#publicationsBefore += attachment.publications;
    this.#locksBefore += attachment.locks;
    this.#attachment = null;
    attachment.close();
  }

  #setFault(next: SlotFileError | null): void {
    const last = this.#fault;
    this.#fault = next;
    if (next === null || next.reason === last?.reason || isPassing(next)) return;
    getLogger(["loadslots", "slotfile"]).warn("{message}", { message: next.message });
  }
}

/** A fault that the start or the end of an engine brings along. */
function isPassing(fault: SlotFileError): boolean {
  return fault.reason === "absent" || fault.reason === "unfinished";
}

function checkMs(name: string, ms: number): void {
  if (ms >= 0) return;
  throw new RangeError(`Cannot use ${name} ${ms}: not a number of milliseconds`);
}
