/** The changes of all ranks, as one watcher takes them. */

import { setImmediate } from "node:timers";
import type { LoadUpdate } from "../load_reader.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import type { LoadWatch } from "./load_watch.ts";

/**
 * So many updates are given out in a row before everything else in the isolate has its turn: a loop
 * that always finds something new would keep timers and signals from ever being heard.
 */
const IN_A_ROW = 256;

type Next = IteratorResult<LoadUpdate, undefined>;

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** One watcher's place: what it was given of each rank. Nothing is queued for it. */
export class LoadIterator implements AsyncIterableIterator<LoadUpdate, undefined> {
  readonly #watch: LoadWatch;
  readonly #signal: AbortSignal | null;
  readonly #onAbort = (): void => this.#end();
  readonly #given: (LoadSnapshot | null)[] = [];
  // The rank to go on with, so that one that changes all the time does not hide the others.
  #cursor = 0;
  #inARow = 0;
  #isDone = false;
  /** The last call that had to wait; who calls meanwhile comes after it. */
  #waiting: Promise<unknown> | null = null;

  constructor(watch: LoadWatch, signal: AbortSignal | null) {
    this.#watch = watch;
    this.#signal = signal;
    if (signal?.aborted) this.#isDone = true;
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Next> {
    const before = this.#waiting;
    const call = before === null ? this.#next() : before.then(() => this.#next());
    this.#waiting = call;
    return call.finally(() => {
      if (this.#waiting === call) this.#waiting = null;
    });
  }

  /** Ends the iteration, also for calls that wait. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#end();
    return Promise.resolve(DONE);
  }

  async #next(): Promise<Next> {
    if (this.#inARow >= IN_A_ROW) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      this.#inARow = 0;
    }
    for (;;) {
      if (!this.#isDone && !this.#watch.isOpen) this.#end();
      if (this.#isDone) return DONE;
      const value = this.#take();
      if (value !== null) {
        this.#inARow++;
        return { done: false, value };
      }
      await this.#watch.nextChange();
      this.#inARow = 0;
    }
  }

  /** Takes the next rank that says something new. Who was slow gets what it says now. */
  #take(): LoadUpdate | null {
    this.#watch.lookAgain();
    const { newest } = this.#watch;
    for (let n = 0; n < newest.length; n++) {
      const dpRank = this.#cursor < newest.length ? this.#cursor : 0;
      this.#cursor = dpRank + 1 < newest.length ? dpRank + 1 : 0;
      const snapshot = newest[dpRank]!;
      if (snapshot === null || snapshot === this.#given[dpRank]) continue;
      this.#given[dpRank] = snapshot;
      return { dpRank, snapshot, ageMs: this.#watch.ageMs(dpRank) };
    }
    return null;
  }

  #end(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#watch.rouse();
  }
}
