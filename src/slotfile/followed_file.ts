/** The file that a path names, followed as it appears, is replaced, and vanishes. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import { SlotFileError } from "../errors.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { Attachment, type Refresh } from "./attachment.ts";
import type { CoarseClock } from "./coarse_clock.ts";
import { checkDpRank, MAX_DP_SIZE } from "./layout.ts";
import { cString, type Libc } from "./libc.ts";
import { fault } from "./open_file.ts";
import { statPath } from "./stat.ts";

// How often the path is asked whether it still names the file: the only system call that a read
// makes while nothing changes.
const PATH_CHECK_MS = 50;

/** What is expected of the file. */
export interface FollowedFileOptions {
  /** How many ranks it must have; `null` leaves that to its header. */
  readonly dpSize: number | null;
  /** The longest that a read waits for the lock, in ms. */
  readonly patienceMs: number;
  /** Another user, besides ours and root, whose file is accepted. */
  readonly trustedUid: number | null;
}

/** What a rank said last, in this file or in the one before it. */
export interface RankView {
  readonly snapshot: LoadSnapshot | null;
  /** When that was first seen, in ms of the reader's clock. */
  readonly seenAtMs: number;
  /** Whether that is what was found when its slot was looked at last. */
  readonly isCurrent: boolean;
  /** Why what stands in its slot now is not a snapshot, or `null`. */
  readonly fault: Error | null;
}

/** Keeps hold of what stands at a path now, and of what ranks said last, whatever becomes of it. */
export class FollowedFile {
  /** Why the path cannot be read now, or `null`. */
  fault: SlotFileError | null = null;
  /** How many files were attached. */
  attaches = 0;

  readonly #libc: Libc;
  readonly #clock: CoarseClock;
  readonly #path: string;
  readonly #cPath: Uint8Array<ArrayBuffer>;
  readonly #options: FollowedFileOptions;
  #attachment: Attachment | null = null;
  #lastDpSize: number | null = null;
  // What the file before this one said, for ranks that have not published in this one yet.
  #inherited: readonly (LoadSnapshot | null)[] = [];
  #inheritedSeenAtMs: readonly number[] = [];
  #nextPathCheckMs = 0;
  #publicationsBefore = 0;
  #locksBefore = 0;

  constructor(libc: Libc, clock: CoarseClock, path: string, options: FollowedFileOptions) {
    this.#libc = libc;
    this.#clock = clock;
    this.#path = path;
    this.#cPath = cString(path);
    this.#options = options;
    this.#attach();
  }

  /** How many ranks the group has, or had last; `null` while no file was attached yet. */
  get dpSize(): number | null {
    return this.#attachment?.header.dpSize ?? this.#options.dpSize ?? this.#lastDpSize;
  }

  /** How many ranks there is something to say of. */
  get rankCount(): number {
    return this.#attachment?.slots.length ?? this.#inherited.length;
  }

  /** How many new snapshots were seen, over all files. */
  get publications(): number {
    return this.#publicationsBefore + (this.#attachment?.publications ?? 0);
  }

  /** How often the lock was taken, over all files. */
  get locks(): number {
    return this.#locksBefore + (this.#attachment?.locks ?? 0);
  }

  /** What a rank said last, or `null`. */
  newest(dpRank: number): LoadSnapshot | null {
    const attachment = this.#attachment;
    const now = attachment === null ? null : attachment.slots[dpRank]!.snapshot;
    return now ?? this.#inherited[dpRank] ?? null;
  }

  /** What a rank said last, and when. */
  view(dpRank: number): RankView {
    const slot = this.#attachment?.slots[dpRank];
    const fault = slot?.fault ?? null;
    if (slot !== undefined && slot.snapshot !== null) {
      const { snapshot, seenAtMs, isCurrent } = slot;
      return { snapshot, seenAtMs, isCurrent, fault };
    }
    const seenAtMs = this.#inheritedSeenAtMs[dpRank] ?? 0;
    return { snapshot: this.#inherited[dpRank] ?? null, seenAtMs, isCurrent: false, fault };
  }

  /**
   * Brings a rank, or all of them, up to date.
   *
   * @param dpRank The rank; `null` for all.
   * @param nowMs The reader's clock.
   * @throws {RangeError} If the group has no such rank.
   */
  refresh(dpRank: number | null, nowMs: number): Refresh {
    this.#followPath(nowMs);
    const first = this.#refreshAttached(dpRank, nowMs);
    if (first !== "gone") return first;
    this.#detach();
    this.#attach();
    return this.#refreshAttached(dpRank, nowMs);
  }

  /** Lets the next refresh ask whether the path still names the file. */
  recheckPath(): void {
    this.#nextPathCheckMs = 0;
  }

  /** Lets go of the file. What ranks said last stays. */
  close(): void {
    this.#detach();
  }

  #refreshAttached(dpRank: number | null, nowMs: number): Refresh {
    const attachment = this.#attachment;
    if (attachment !== null && dpRank !== null && dpRank >= attachment.slots.length) {
      // No such rank, or the group has grown: its header tells.
      if (attachment.refresh(0, 0, nowMs) === "gone") return "gone";
    }
    if (dpRank !== null) checkDpRank(dpRank, this.dpSize ?? MAX_DP_SIZE);
    if (attachment === null) return "unchanged";
    return dpRank === null
      ? attachment.refresh(0, attachment.slots.length, nowMs)
      : attachment.refresh(dpRank, dpRank + 1, nowMs);
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
      const stat = statPath(this.#libc, this.#path, this.#cPath);
      if (stat?.identity === this.#attachment.identity) {
        this.#setFault(null);
      } else if (stat === null) {
        // The engine may be gone, or its writers may go on with a file that has no name.
        this.#setFault(fault("absent", this.#path, "it was removed"));
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
      const attachment = Attachment.open(this.#libc, this.#path, this.#options);
      if (attachment === null) {
        return this.#setFault(fault("absent", this.#path, "nothing is there"));
      }
      const { dpSize } = attachment.header;
      this.#detach();
      this.#inherited = this.#inherited.slice(0, dpSize);
      this.#attachment = attachment;
      this.attaches++;
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
    const last = this.fault;
    this.fault = next;
    if (next === null || next.reason === last?.reason || isPassing(next)) return;
    getLogger(["loadslots", "slotfile"]).warn("{message}", { message: next.message });
  }
}

/** A fault that the start or the end of an engine brings along. */
export function isPassing(fault: SlotFileError): boolean {
  return fault.reason === "absent" || fault.reason === "unfinished";
}
