/** What the main isolate and a collector share: words, counters, and when each rank arrived. */

import { CONTROL_BYTES, ControlWords, SharedCounters } from "./control_words.ts";

/** What the worker of a collector counts; each starts at 0 and only grows. */
export interface DrainCounts {
  /** Messages received. */
  readonly received: number;
  /** Snapshots published in the slot file. */
  readonly published: number;
  /** Good snapshots that a newer one of the same rank overtook before they were published. */
  readonly superseded: number;
  /** Messages refused because they cannot fit a slot, or are empty. */
  readonly refusedSize: number;
  /** Messages of several parts, refused whole. */
  readonly refusedMultipart: number;
  /** Messages that are no load snapshot. */
  readonly refusedSchema: number;
  /** Snapshots of a rank that the group does not have. */
  readonly refusedRank: number;
  /** Connections that were refused because their CURVE key is not a known one. */
  readonly refusedPeers: number;
  /** Batches published: one lock of the slot file each. */
  readonly batches: number;
  /** Batches put off because another process kept the lock. */
  readonly lockMisses: number;
  /** Batches put off because the slot file was lost and could not be restored. */
  readonly fileFaults: number;
  /** How often the slot file's path had to be restored. */
  readonly restores: number;
}

/** The name of a count. */
export type Counter = keyof DrainCounts;

const COUNTERS: readonly Counter[] = [
  "received",
  "published",
  "superseded",
  "refusedSize",
  "refusedMultipart",
  "refusedSchema",
  "refusedRank",
  "refusedPeers",
  "batches",
  "lockMisses",
  "fileFaults",
  "restores",
];

const POLL_ASKED = 0;
const POLL_DONE = 1;
const POLL_WORDS = 2; // Even, so that the counters are aligned.

/** One view of the block; each side makes its own. */
export class ControlBlock extends ControlWords {
  readonly #polls: Int32Array<SharedArrayBuffer>;
  readonly #counters: SharedCounters<Counter>;
  readonly #arrivedAtMs: Float64Array<SharedArrayBuffer>;

  /**
   * @param dpSize How many ranks the group has.
   * @param buffer The memory of the other side, or none to make it.
   */
  constructor(dpSize: number, buffer?: SharedArrayBuffer) {
    const counters = CONTROL_BYTES + POLL_WORDS * 4;
    const arrivedAt = counters + COUNTERS.length * 8;
    super(buffer ?? new SharedArrayBuffer(arrivedAt + dpSize * 8));
    this.#polls = new Int32Array(this.buffer, CONTROL_BYTES, POLL_WORDS);
    this.#counters = new SharedCounters(COUNTERS, this.buffer, counters);
    this.#arrivedAtMs = new Float64Array(this.buffer, arrivedAt, dpSize);
  }

  /** Asks the worker to drain; returns the ticket. Pairs with {@linkcode pollAsked}. */
  askPoll(): number {
    return Atomics.add(this.#polls, POLL_ASKED, 1) + 1;
  }

  /** The last ticket. Pairs with the add in {@linkcode askPoll}. */
  get pollAsked(): number {
    return Atomics.load(this.#polls, POLL_ASKED);
  }

  /** Says that what was there when `ticket` was asked for is readable. */
  donePoll(ticket: number): void {
    Atomics.store(this.#polls, POLL_DONE, ticket);
    Atomics.notify(this.#polls, POLL_DONE);
  }

  /** The last ticket that is done. Pairs with the store in {@linkcode donePoll}. */
  get pollDone(): number {
    return Atomics.load(this.#polls, POLL_DONE);
  }

  /** Resolves when a ticket after `done` is done, or after `timeoutMs`. */
  async nextPoll(done: number, timeoutMs: number): Promise<void> {
    await Atomics.waitAsync(this.#polls, POLL_DONE, done, timeoutMs).value;
  }

  /** Counts. Only in the worker. */
  count(counter: Counter, by: number = 1): void {
    this.#counters.count(counter, by);
  }

  /** Sets a counter that is counted elsewhere. Only in the worker. */
  set(counter: Counter, value: number): void {
    this.#counters.set(counter, value);
  }

  /** How often the path was restored; `ring` makes it visible. */
  get restores(): number {
    return this.#counters.get("restores");
  }

  /** All counters as they are now. */
  counts(): DrainCounts {
    return this.#counters.all();
  }

  /**
   * Notes when a rank's newest published snapshot arrived, in ms of CoarseClock. Only in the worker,
   * and only when it is readable; `ring` makes it visible.
   */
  arrive(dpRank: number, nowMs: number): void {
    this.#arrivedAtMs[dpRank] = nowMs;
  }

  /** Gives when each rank's newest published snapshot arrived; 0 before the first. */
  copyArrivals(target: Float64Array<ArrayBuffer>): void {
    target.set(this.#arrivedAtMs);
  }
}
