/** A reader's hold on one slot file: descriptor, mapping, lock, and a slot for each rank. */

import { ShapeCache } from "../snapshot/shape_cache.ts";
import { Workspace } from "../snapshot/workspace.ts";
import { mayHaveExecutableMemory } from "./executable_memory.ts";
import { FileLock } from "./lock.ts";
import { type Header, HEADER_SIZE, headerWords, VERSION } from "./layout.ts";
import { type Libc, O_RDONLY, SEEK_END } from "./libc.ts";
import { Mapping } from "./mapping.ts";
import type { FollowedFileOptions } from "./followed_file.ts";
import { fault, openFile, readHeader } from "./open_file.ts";
import { Scratch, Slot } from "./slot.ts";

// Without the lock, a copy can only be checked where stores become visible in their order.
const STORES_ARE_ORDERED = Deno.build.arch === "x86_64";

// So many slots are copied under one lock; a lock is held for microseconds, never longer.
const BATCH = 64;

// Marks of a slot: copied without the lock; it did not hold still; what was copied is no snapshot.
const STILL = 0;
const RESTLESS = 1;
const CORRUPT = 2;
// What copies turned out to be.
const ALL_AS_BEFORE = 0;
const SOME_CHANGED = 1;
const SOME_CORRUPT = 2;
// A slot that changes under the eyes has been published by now: looking again beats locking.
const UNLOCKED_ATTEMPTS = 3;

/** What a refresh came to. */
export type Refresh =
  /** The slots are as they were seen last. */
  | "unchanged"
  /** Some had changed; they were read. */
  | "read"
  /** Some have changed, but another process kept the lock. */
  | "locked"
  /** This is no longer the file that was opened: its header or its length changed. */
  | "gone";

/** An open slot file. */
export class Attachment {
  readonly header: Header;
  /** Device and inode of the file. */
  readonly identity: string;
  readonly slots: readonly Slot[];
  /** How many snapshots a refresh found new, over all refreshes. */
  publications = 0;
  /** How often the lock was taken. */
  locks = 0;

  readonly #libc: Libc;
  readonly #fd: number;
  readonly #mapping: Mapping;
  readonly #byteLength: bigint;
  readonly #lock: FileLock;
  // Images wander from the copies to the decoders and back, so all are of the same one.
  readonly #workspace: Workspace;
  readonly #headerWords: Int32Array;
  readonly #expectedWords: Int32Array;
  // Arrays of a batch, used again for each: emptying one would have it allocated anew.
  readonly #changed: Slot[] = [];
  readonly #copies: Scratch[] = [];
  // How each of the changed slots was copied.
  readonly #marks: Uint8Array = new Uint8Array(BATCH);
  readonly #readsUnlocked: boolean;
  #wholeAtMs = -1;

  private constructor(
    libc: Libc,
    fd: number,
    mapping: Mapping,
    identity: string,
    header: Header,
    patienceMs: number,
  ) {
    this.#libc = libc;
    this.#fd = fd;
    this.identity = identity;
    this.header = header;
    this.#lock = new FileLock(libc, fd, "shared", patienceMs);
    this.#byteLength = BigInt(mapping.byteLength);
    this.#mapping = mapping;
    this.#readsUnlocked = STORES_ARE_ORDERED && this.#mapping.guarded && header.version === VERSION;
    this.#headerWords = new Int32Array(this.#mapping.view(0, HEADER_SIZE));
    this.#expectedWords = headerWords(header);
    this.#workspace = new Workspace(mayHaveExecutableMemory(libc) ? header.dpSize + BATCH : 0);
    const shapes = new ShapeCache(this.#workspace);
    this.slots = Array.from(
      { length: header.dpSize },
      (_, dpRank) => new Slot(this.#mapping.base, dpRank, header, shapes),
    );
  }

  /**
   * Opens the file at a path; `null` if nothing is there.
   *
   * @throws {SlotFileError} If it is not a slot file that may be read.
   */
  static open(
    libc: Libc,
    path: string,
    options: FollowedFileOptions,
  ): Attachment | null {
    const file = openFile(libc, path, O_RDONLY, options.trustedUid);
    if (file === null) return null;
    let mapping: Mapping | null = null;
    try {
      const header = readHeader(libc, file, path);
      const { dpSize } = options;
      // Before anything is made for its ranks: there may be many, and this is tried at each read.
      if (dpSize !== null && header.dpSize !== dpSize) {
        throw fault("dp-size", path, `it has ${header.dpSize} ranks, not ${dpSize}`);
      }
      const byteLength = HEADER_SIZE + header.dpSize * header.slotSize;
      mapping = new Mapping(libc, file.fd, byteLength, "read", path);
      const { identity } = file.stat;
      return new Attachment(libc, file.fd, mapping, identity, header, options.patienceMs);
    } catch (error) {
      mapping?.close();
      libc.close(file.fd);
      throw error;
    }
  }

  /**
   * Reads what has changed: looks first, and takes the lock only for what does not hold still.
   *
   * @param first The first rank to look at.
   * @param last The rank behind the last one.
   * @param nowMs The reader's clock.
   */
  refresh(first: number, last: number, nowMs: number): Refresh {
    if (!this.#headerHolds()) return this.#checkHeader();
    let result: Refresh = "unchanged";
    let count = 0;
    for (let dpRank = first; dpRank < last; dpRank++) {
      const slot = this.slots[dpRank]!;
      if (!this.#mapping.guarded || slot.hasChanged(this.#libc)) this.#changed[count++] = slot;
      if (count < BATCH && (count === 0 || dpRank + 1 < last)) continue;
      const read = this.#readChanged(count, nowMs);
      count = 0;
      if (read === "gone") return read;
      if (result === "unchanged" || read === "locked") result = read;
    }
    return result;
  }

  /** Whether the file is still as long as its header says, and no page of the mapping was lost. */
  isWhole(): boolean {
    // The cheapest call that tells a length; the place that it moves is used by nobody.
    const size = this.#libc.lseek(this.#fd, 0n, SEEK_END);
    return size >= this.#byteLength && !this.#mapping.torn;
  }

  /** Unmaps and closes. */
  close(): void {
    this.#mapping.close();
    this.#libc.close(this.#fd);
  }

  /** Reads the first `count` of the changed slots. */
  #readChanged(count: number, nowMs: number): Refresh {
    let restless = 0;
    for (let n = 0; n < count; n++) {
      const copy = this.#copies[n] ??= new Scratch(this.#workspace);
      const isStill = this.#readsUnlocked && this.#copyUnlocked(this.#changed[n]!, copy);
      this.#marks[n] = isStill ? STILL : RESTLESS;
      if (!isStill) restless++;
    }
    const locked = restless === 0 ? "read" : this.#copyLocked(count, RESTLESS);
    if (locked === "gone" || this.#mapping.torn) return "gone";
    if (this.#isCutOff(count, nowMs)) return "gone";
    const looked = this.#accept(count, locked === "locked" ? RESTLESS : CORRUPT, nowMs);
    if (looked === ALL_AS_BEFORE) return "unchanged";
    return looked === SOME_CORRUPT ? this.#confirm(count, nowMs) : locked;
  }

  #copyUnlocked(slot: Slot, copy: Scratch): boolean {
    for (let attempt = 0; attempt < UNLOCKED_ATTEMPTS; attempt++) {
      if (slot.copyIfStill(this.#libc, copy)) return true;
    }
    return false;
  }

  /**
   * Takes over what was copied; tells whether a copy made without the lock is corrupt.
   *
   * @param except The mark of slots to leave out.
   */
  #accept(count: number, except: number, nowMs: number): number {
    let looked = ALL_AS_BEFORE;
    for (let n = 0; n < count; n++) {
      const slot = this.#changed[n]!;
      const copy = this.#copies[n]!;
      if (this.#marks[n] === except) {
        slot.isCurrent = false;
        looked = Math.max(looked, SOME_CHANGED);
        continue;
      }
      // Without a guard every slot is copied, changed or not.
      if (!this.#mapping.guarded && !slot.hasChanged(this.#libc, copy.at)) continue;
      looked = Math.max(looked, SOME_CHANGED);
      if (slot.accept(copy, nowMs)) this.publications++;
      else if (slot.fault !== null && this.#marks[n] === STILL) {
        slot.forget();
        this.#marks[n] = CORRUPT;
        looked = SOME_CORRUPT;
      }
    }
    return looked;
  }

  /**
   * Reads slots again, under the lock, that were found corrupt without it. CPython stores a length
   * byte by byte: a writer that is stopped in between leaves one that holds still, and is wrong.
   */
  #confirm(count: number, nowMs: number): Refresh {
    const locked = this.#copyLocked(count, CORRUPT);
    if (locked !== "read") return locked;
    if (this.#mapping.torn || !this.isWhole()) return "gone";
    for (let n = 0; n < count; n++) {
      if (this.#marks[n] !== CORRUPT) continue;
      if (this.#changed[n]!.accept(this.#copies[n]!, nowMs)) this.publications++;
    }
    return "read";
  }

  /**
   * Whether the file was cut off in one of the slots that were copied: what it has lost reads as
   * zeros, and those may mean something. Asking for its length costs as much as the rest of a read,
   * so that is done after copying, only if a copy ends in a zero, and once in each tick of the clock.
   */
  #isCutOff(count: number, nowMs: number): boolean {
    if (nowMs === this.#wholeAtMs) return false;
    for (let n = 0; n < count; n++) {
      if (!this.#changed[n]!.mayBeCutOff(this.#copies[n]!.image)) continue;
      if (!this.isWhole()) return true;
      this.#wholeAtMs = nowMs;
      return false;
    }
    return false;
  }

  /** Copies the slots with a mark, under the lock. */
  #copyLocked(count: number, mark: number): Refresh {
    if (!this.#lock.take()) return "locked";
    this.locks++;
    try {
      // A writer that makes the file anew holds the lock until all of the header stands.
      if (!this.#headerHolds() || (!this.#mapping.guarded && !this.isWhole())) return "gone";
      for (let n = 0; n < count; n++) {
        if (this.#marks[n] === mark) this.#changed[n]!.copy(this.#libc, this.#copies[n]!);
      }
      return "read";
    } finally {
      this.#lock.release();
    }
  }

  #headerHolds(): boolean {
    const now = this.#headerWords;
    const expected = this.#expectedWords;
    return now[0] === expected[0] && now[1] === expected[1] && now[2] === expected[2];
  }

  /** Another header, or a glimpse of the same one being written again? The lock tells. */
  #checkHeader(): Refresh {
    if (!this.#lock.take()) return "locked";
    this.locks++;
    const holds = this.#headerHolds();
    this.#lock.release();
    return holds ? "unchanged" : "gone";
  }
}
