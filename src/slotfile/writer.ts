/** Publishing the load of one rank into the slot file, as SGLang's scheduler does. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import { LockTimeoutError } from "../errors.ts";
import { SnapshotEncoder } from "../snapshot/encoder.ts";
import { PAYLOAD_AT } from "../snapshot/image.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { PublishCounter } from "../snapshot/publish_counter.ts";
import { payloadAddressOf } from "./address.ts";
import { CoarseClock } from "./coarse_clock.ts";
import { CreatedFile } from "./created_file.ts";
import {
  checkDpRank,
  checkDpSize,
  checkSlotSize,
  type Header,
  LENGTH_SIZE,
  SLOT_SIZE,
  VERSION,
} from "./layout.ts";
import { acquireLibc, cString, type LibcLease } from "./libc.ts";
import { SlotStore } from "./slot_store.ts";

/** Options of {@linkcode ShmLoadSnapshotWriter}. */
export interface ShmLoadSnapshotWriterOptions {
  /** How many ranks the group has, 1..65535. */
  readonly dpSize: number;
  /** Which of them publishes, 0..dpSize - 1. */
  readonly dpRank: number;
  /**
   * `publish` writes every so many calls; at least 1. SGLang's
   * `--load-snapshot-publish-interval`, where 15 is the default.
   *
   * @default {1}
   */
  readonly publishInterval?: number;
  /**
   * Bytes of a slot, a multiple of 4. SGLang's own readers take any; forks use 512 KiB.
   *
   * @default {16384}
   */
  readonly slotSize?: number;
  /**
   * The longest that a write waits for the lock, in milliseconds.
   *
   * @default {50}
   */
  readonly lockTimeoutMs?: number;
}

/** What a writer has done so far. Counts start at 0 and only grow. */
export interface ShmLoadSnapshotWriterStats {
  /** Snapshots written, the default one of the start not counted. */
  readonly writes: number;
  /** Calls of `publish` that the interval held back. */
  readonly skipped: number;
  /** Writes that failed because another process kept the lock. */
  readonly lockTimeouts: number;
  /** How often the path had to be restored. */
  readonly restores: number;
}

/**
 * Publishes one rank's load on this node; SGLang's own readers take it for a scheduler.
 *
 * Opening makes the file where it is missing, and publishes a default snapshot. A path that was
 * unlinked or replaced is restored by the next write, or, where writes are more frequent than the
 * clock's ticks, by the first one after the next tick, within 10 milliseconds. Closing leaves the
 * file, as SGLang does; see {@linkcode removeSlotFile}.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot, removeSlotFile, ShmLoadSnapshotWriter, shmPathFor } from "./mod.ts";
 *
 * const path = shmPathFor("writer-example");
 * {
 *   using writer = new ShmLoadSnapshotWriter(path, { dpSize: 1, dpRank: 0 });
 *   writer.write(createLoadSnapshot({ timestamp: Date.now() / 1000, numRunningReqs: 3 }));
 * }
 * removeSlotFile(path);
 * ```
 */
export class ShmLoadSnapshotWriter implements Disposable {
  /** The path of the slot file. */
  readonly path: string;
  /** How many ranks the group has. */
  readonly dpSize: number;
  /** The rank that this writer publishes. */
  readonly dpRank: number;

  readonly #header: Header;
  readonly #lockTimeoutMs: number;
  readonly #lease: LibcLease;
  readonly #clock: CoarseClock;
  readonly #encoder: SnapshotEncoder = new SnapshotEncoder();
  readonly #counter: PublishCounter;
  #file: CreatedFile;
  #slot: SlotStore;
  #checkedAtMs = 0;
  #closed = false;
  #writes = 0;
  #lockTimeouts = 0;
  #restores = 0;

  /**
   * Opens a writer, and the file with it.
   *
   * @param path The slot file; see {@linkcode shmPathFor}.
   * @param options The group and the rank.
   * @throws {RangeError} If an option is out of range.
   * @throws {SlotFileError} If the file cannot be made or opened, or another kind of file is there.
   * @throws {LockTimeoutError} If another process keeps the lock.
   * @throws {Deno.errors.NotCapable} Without `--allow-ffi`.
   */
  constructor(path: string, options: ShmLoadSnapshotWriterOptions) {
    const { dpSize, dpRank, slotSize = SLOT_SIZE, lockTimeoutMs = 50 } = options;
    checkDpSize(dpSize);
    checkDpRank(dpRank, dpSize);
    checkSlotSize(slotSize);
    if (!(lockTimeoutMs >= 0)) {
      throw new RangeError(
        `Cannot use lockTimeoutMs ${lockTimeoutMs}: not a number of milliseconds`,
      );
    }
    cString(path);
    this.path = path;
    this.dpSize = dpSize;
    this.dpRank = dpRank;
    this.#counter = new PublishCounter(options.publishInterval);
    this.#header = { version: VERSION, dpSize, slotSize };
    this.#lockTimeoutMs = lockTimeoutMs;
    const end = this.#encode(createLoadSnapshot({ dpRank }));
    this.#lease = acquireLibc(path);
    this.#clock = new CoarseClock(this.#lease.libc);
    try {
      this.#file = this.#open();
      this.#slot = this.#slotOf(this.#file);
    } catch (error) {
      this.#lease.release();
      throw error;
    }
    try {
      this.#store(end);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * Publishes a snapshot, whole or not at all.
   *
   * @param snapshot The rank's load; see {@linkcode createLoadSnapshot}.
   * @throws {RangeError} If it is another rank's, too large for a slot, or an integer is none.
   * @throws {TypeError} If a field has the wrong type, or the writer is closed.
   * @throws {LockTimeoutError} If another process keeps the lock; nothing was written.
   * @throws {SlotFileError} If the path is gone and cannot be restored.
   */
  write(snapshot: LoadSnapshot): void {
    this.#checkOpen();
    const end = this.#encode(snapshot);
    const nowMs = this.#clock.nowMs();
    if (nowMs !== this.#checkedAtMs) {
      this.#keepInPlace();
      // Not before: as long as the path cannot be restored, every write has to say so.
      this.#checkedAtMs = nowMs;
    }
    this.#store(end);
    this.#writes++;
  }

  /**
   * Publishes as a scheduler does in its loop: every `publishInterval` calls, or when forced.
   *
   * @param make Makes the snapshot; called only if it will be written.
   * @param options `force` writes now, and starts the interval anew.
   * @returns Whether a snapshot was written.
   * @throws As {@linkcode write} does.
   */
  publish(make: () => LoadSnapshot, options: { readonly force?: boolean } = {}): boolean {
    this.#checkOpen();
    if (!this.#counter.isDue(options.force ?? false)) return false;
    this.write(make());
    return true;
  }

  /** Tells what the writer has done so far. */
  stats(): ShmLoadSnapshotWriterStats {
    return {
      writes: this.#writes,
      skipped: this.#counter.skipped,
      lockTimeouts: this.#lockTimeouts,
      restores: this.#restores,
    };
  }

  /** Unmaps and closes; the file stays. Twice is fine. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#file.close();
    this.#lease.release();
  }

  /** Closes the writer at the end of a `using` scope. */
  [Symbol.dispose](): void {
    this.close();
  }

  #checkOpen(): void {
    if (this.#closed) throw new TypeError("Cannot write load: the writer is closed");
  }

  /** Encodes and checks, before anything is touched. */
  #encode(snapshot: LoadSnapshot): number {
    if (snapshot.dpRank !== this.dpRank) {
      throw new RangeError(
        `Cannot write load of dp rank ${snapshot.dpRank}: the writer is for rank ${this.dpRank}`,
      );
    }
    const end = this.#encoder.encode(snapshot);
    if (end > this.#header.slotSize) {
      throw new RangeError(
        `Cannot write load of ${end - PAYLOAD_AT} bytes: a slot holds ${
          this.#header.slotSize - LENGTH_SIZE
        }`,
      );
    }
    return end;
  }

  #open(): CreatedFile {
    return CreatedFile.open(this.#lease.libc, this.path, this.#header, this.#lockTimeoutMs);
  }

  #slotOf(file: CreatedFile): SlotStore {
    return new SlotStore(this.#lease.libc, file.mapping, this.dpRank, this.#header.slotSize);
  }

  #keepInPlace(): void {
    if (this.#file.isInPlace()) return;
    const lost = this.#file;
    this.#file = this.#open();
    this.#slot = this.#slotOf(this.#file);
    lost.close();
    this.#restores++;
    getLogger(["loadslots", "slotfile"]).info("Restored slot file {path}", { path: this.path });
  }

  /** Copies the encoded payload into the slot, under the lock. */
  #store(end: number): void {
    const { lock } = this.#file;
    if (!lock.take()) {
      this.#lockTimeouts++;
      throw new LockTimeoutError(this.path, this.#lockTimeoutMs);
    }
    try {
      this.#slot.store(payloadAddressOf(this.#encoder.image), end - PAYLOAD_AT);
    } finally {
      lock.release();
    }
  }
}
