/** A reader of load that says what a test wants, without a file. */

import type { LoadReader, LoadUpdate, WatchOptions } from "../../src/load_reader.ts";
import type { RankHealth, RankState } from "../../src/slotfile/rank_health.ts";
import {
  createLoadSnapshot,
  type LoadSnapshot,
  type LoadSnapshotInit,
} from "../../src/snapshot/load_snapshot.ts";
import { LoadWatch } from "../../src/watch/load_watch.ts";

/** Ranks in memory. What is put is seen by watchers at once. */
export class MemoryReader implements LoadReader {
  /** How many watches run now. */
  watches = 0;
  #failure: Error | null = null;
  readonly #ranks: (LoadSnapshot | null)[];
  readonly #states: RankState[];
  readonly #ages: (number | null)[];
  #isOpen = true;
  #wake: () => void = () => {};
  readonly #watch: LoadWatch;

  constructor(dpSize: number) {
    this.#ranks = Array.from({ length: dpSize }, () => null);
    this.#states = Array.from({ length: dpSize }, () => "unreported");
    this.#ages = Array.from({ length: dpSize }, () => null);
    const isOpen = () => this.#isOpen && this.#failure === null;
    this.#watch = new LoadWatch({
      get isOpen() {
        return isOpen();
      },
      look: (newest) => {
        newest.length = 0;
        newest.push(...this.#ranks);
      },
      ageMs: (dpRank) => this.#ages[dpRank] ?? null,
      wait: () =>
        new Promise((resolve) => {
          // As a reader does, so that a test which changes nothing is no endless loop.
          const timer = setTimeout(resolve, 5);
          this.#wake = () => {
            clearTimeout(timer);
            resolve();
          };
        }),
      wake: () => this.#wake(),
    });
  }

  /** A reader whose ranks are all live; rank n has n + 1 running requests. */
  static live(dpSize: number): MemoryReader {
    const reader = new MemoryReader(dpSize);
    for (let dpRank = 0; dpRank < dpSize; dpRank++) {
      reader.put({ dpRank, numRunningReqs: dpRank + 1 });
    }
    return reader;
  }

  get dpSize(): number | null {
    return this.#ranks.length === 0 ? null : this.#ranks.length;
  }

  /** Publishes a rank's load; the rank is live from then on. */
  put(init: LoadSnapshotInit): LoadSnapshot {
    const snapshot = createLoadSnapshot(init);
    const { dpRank } = snapshot;
    this.#ranks[dpRank] = snapshot;
    this.judge(dpRank, "live", 0);
    this.#wake();
    return snapshot;
  }

  /** Says how far a rank can be trusted. */
  judge(dpRank: number, state: RankState, ageMs: number | null): void {
    this.#states[dpRank] = state;
    this.#ages[dpRank] = ageMs;
  }

  /** Comes back with another number of ranks, of which those that stay keep what they said. */
  resize(dpSize: number): void {
    while (this.#ranks.length < dpSize) this.#ranks.push(null);
    this.#ranks.length = dpSize;
    while (this.#states.length < dpSize) this.#states.push("unreported");
    this.#states.length = dpSize;
    this.#wake();
  }

  read(dpRank: number): LoadSnapshot | null {
    this.#check();
    if (!(dpRank in this.#ranks)) throw new RangeError(`Cannot read rank ${dpRank}: no such rank`);
    return this.#ranks[dpRank] ?? null;
  }

  readAll(): LoadSnapshot[] {
    this.#check();
    return this.#ranks.filter((snapshot) => snapshot !== null);
  }

  health(): readonly RankHealth[] {
    this.#check();
    return this.#states.map((state, dpRank) => ({
      dpRank,
      state,
      ageMs: this.#ages[dpRank] ?? null,
    }));
  }

  async *watch(options: WatchOptions = {}): AsyncIterableIterator<LoadUpdate, undefined> {
    this.#check();
    this.watches++;
    try {
      for await (const update of this.#watch.iterate(options)) yield update;
      if (this.#failure !== null) throw this.#failure;
    } finally {
      this.watches--;
    }
    return undefined;
  }

  /** Fails: whatever is asked from then on throws this, and watches end with it. */
  fail(error: Error): void {
    this.#failure = error;
    this.#watch.rouse();
  }

  close(): void {
    this.#isOpen = false;
    this.#watch.rouse();
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure;
    if (!this.#isOpen) throw new TypeError("Cannot read load: the reader is closed");
  }
}
