/** What all watchers of one reader share: one look for all, and what it found. */

import type { WatchOptions } from "../load_reader.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { LoadIterator } from "./load_iterator.ts";

/** Where a watch looks, and how it knows when to look again. */
export interface WatchSource {
  /** Whether anything new can still come. */
  readonly isOpen: boolean;
  /** Brings what each rank says up to date, by rank; `null` for a rank that never published. */
  look(newest: (LoadSnapshot | null)[]): void;
  /** How old a rank's snapshot is, in ms; `null` without a measured one. */
  ageMs(dpRank: number): number | null;
  /** Resolves when it is time to look again. One wait at a time. */
  wait(): Promise<void>;
  /** Has {@linkcode wait} resolve now. */
  wake(): void;
}

/** What was looked at within this time is given out as it is. */
const FRESH_MS = 1;

/** Looks while someone waits for a change, and not otherwise. */
export class LoadWatch {
  /** What each rank said at the last look. */
  readonly newest: (LoadSnapshot | null)[] = [];
  readonly #source: WatchSource;
  readonly #known: (LoadSnapshot | null)[] = [];
  #changed: PromiseWithResolvers<void> | null = null;
  #isLooking = false;
  #lookedAtMs = -Infinity;

  /** @param source What is watched. */
  constructor(source: WatchSource) {
    this.#source = source;
  }

  /** Whether anything new can still come. */
  get isOpen(): boolean {
    return this.#source.isOpen;
  }

  /** Starts an iteration for one more watcher. */
  iterate(options: WatchOptions): LoadIterator {
    return new LoadIterator(this, options.signal ?? null);
  }

  /** How old a rank's snapshot is, in ms. */
  ageMs(dpRank: number): number | null {
    return this.#source.ageMs(dpRank);
  }

  /** Looks, unless that was done a moment ago. */
  lookAgain(): void {
    if (performance.now() - this.#lookedAtMs >= FRESH_MS) this.#look();
  }

  #look(): void {
    const { newest } = this;
    this.#lookedAtMs = performance.now();
    this.#source.look(newest);
    let hasChanged = newest.length !== this.#known.length;
    this.#known.length = newest.length;
    for (let dpRank = 0; dpRank < newest.length; dpRank++) {
      if (newest[dpRank] === this.#known[dpRank]) continue;
      this.#known[dpRank] = newest[dpRank]!;
      hasChanged = true;
    }
    // Whoever looked, all who wait are told: the next look will not find it any more.
    if (hasChanged) this.#settle();
  }

  /** Resolves when a look finds a change, when the reader closes, or when {@linkcode rouse} says so. */
  nextChange(): Promise<void> {
    this.#changed ??= Promise.withResolvers();
    const { promise } = this.#changed;
    if (!this.#isLooking) void this.#lookWhileAwaited();
    return promise;
  }

  /** Has all who wait look at how things are; they wait again if nothing is there for them. */
  rouse(): void {
    this.#settle();
    // Nobody may want the next look, and the wait for it would keep the process alive.
    this.#source.wake();
  }

  async #lookWhileAwaited(): Promise<void> {
    this.#isLooking = true;
    while (this.#changed !== null) {
      await this.#source.wait();
      if (this.#changed === null) break;
      try {
        if (this.isOpen) this.#look();
        else this.#settle();
      } catch (error) {
        // Those who wait are told, as who looks by himself is.
        const changed: PromiseWithResolvers<void> | null = this.#changed;
        this.#changed = null;
        changed?.reject(error);
      }
    }
    this.#isLooking = false;
  }

  #settle(): void {
    const changed = this.#changed;
    this.#changed = null;
    changed?.resolve();
  }
}
