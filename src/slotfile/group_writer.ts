/** Publishing payloads of all ranks at once: what a collector does with what it received. */

import { CoarseClock } from "./coarse_clock.ts";
import { CreatedFile } from "./created_file.ts";
import { type Header, LENGTH_SIZE } from "./layout.ts";
import { acquireLibc, type LibcLease } from "./libc.ts";
import { SlotStore } from "./slot_store.ts";

/** A payload that waits to be published. */
export interface PendingPayload {
  readonly dpRank: number;
  /** The address of its first byte. */
  readonly at: bigint;
  readonly byteLength: number;
}

/** A group's slot file, written by one owner for all ranks. */
export class GroupWriter {
  /** How often the path had to be restored. */
  restores = 0;

  readonly #path: string;
  readonly #header: Header;
  readonly #patienceMs: number;
  readonly #lease: LibcLease;
  readonly #clock: CoarseClock;
  readonly #stores: (SlotStore | undefined)[] = [];
  #file: CreatedFile;
  #checkedAtMs = 0;

  /**
   * Opens the file, or makes it. What its slots hold stays until a rank publishes.
   *
   * @throws As {@linkcode CreatedFile.open}.
   */
  constructor(path: string, header: Header, patienceMs: number, openPatienceMs: number) {
    this.#path = path;
    this.#header = header;
    this.#patienceMs = patienceMs;
    this.#lease = acquireLibc(path);
    this.#clock = new CoarseClock(this.#lease.libc);
    try {
      this.#file = this.#open(openPatienceMs);
    } catch (error) {
      this.#lease.release();
      throw error;
    }
  }

  /** The longest payload that fits a slot, in bytes. */
  get capacity(): number {
    return this.#header.slotSize - LENGTH_SIZE;
  }

  /**
   * Publishes payloads under one lock; restores the path first where it is lost.
   *
   * @returns False if another process kept the lock: nothing was written.
   * @throws {SlotFileError} If the path is lost and cannot be restored.
   * @throws {LockTimeoutError} If it cannot be restored because of the lock.
   */
  publish(payloads: Iterable<PendingPayload>): boolean {
    const nowMs = this.#clock.nowMs();
    if (nowMs !== this.#checkedAtMs) {
      if (!this.#file.isInPlace()) this.#restore();
      this.#checkedAtMs = nowMs;
    }
    if (!this.#file.lock.take()) return false;
    try {
      for (const { dpRank, at, byteLength } of payloads) {
        const store = this.#stores[dpRank] ??= this.#storeOf(dpRank);
        store.store(at, byteLength);
      }
    } finally {
      this.#file.lock.release();
    }
    return true;
  }

  /** Unmaps and closes; the file stays. */
  close(): void {
    this.#file.close();
    this.#lease.release();
  }

  #open(patienceMs: number): CreatedFile {
    return CreatedFile.open(
      this.#lease.libc,
      this.#path,
      this.#header,
      patienceMs,
      this.#patienceMs,
    );
  }

  #restore(): void {
    const next = this.#open(this.#patienceMs);
    this.#file.close();
    this.#file = next;
    this.#stores.length = 0;
    this.restores++;
  }

  #storeOf(dpRank: number): SlotStore {
    return new SlotStore(this.#lease.libc, this.#file.mapping, dpRank, this.#header.slotSize);
  }
}
