/**
 * What the main isolate and a worker share: a few words, counters, and when each rank arrived.
 *
 * A worker that blocks in `zmq_poll` gets no messages, so everything between the two goes through
 * this block. Each counter has one writer, the worker; a word of 8 bytes is never seen by halves.
 */

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
];

const STOP = 0;
const HEARTBEAT = 1;
const DOORBELL = 2;
const POLL_ASKED = 3;
const POLL_DONE = 4;
const WORDS = 6; // Even, so that the counters are aligned.

const INDEX = Object.fromEntries(COUNTERS.map((name, n) => [name, n])) as Record<Counter, number>;

/** One view of the block; each side makes its own. */
export class ControlBlock {
  /** The memory, to hand to the other side. */
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #counters: Float64Array<SharedArrayBuffer>;
  readonly #arrivedAtMs: Float64Array<SharedArrayBuffer>;
  readonly #arrivals: Float64Array<SharedArrayBuffer>;

  /**
   * @param dpSize How many ranks the group has.
   * @param buffer The memory of the other side, or none to make it.
   */
  constructor(dpSize: number, buffer?: SharedArrayBuffer) {
    const counters = WORDS * 4;
    const arrivedAt = counters + COUNTERS.length * 8;
    const arrivals = arrivedAt + dpSize * 8;
    this.buffer = buffer ?? new SharedArrayBuffer(arrivals + dpSize * 8);
    this.#words = new Int32Array(this.buffer, 0, WORDS);
    this.#counters = new Float64Array(this.buffer, counters, COUNTERS.length);
    this.#arrivedAtMs = new Float64Array(this.buffer, arrivedAt, dpSize);
    this.#arrivals = new Float64Array(this.buffer, arrivals, dpSize);
  }

  /** Asks the worker to end; the caller wakes it. Pairs with {@linkcode isStopping}. */
  stop(): void {
    Atomics.store(this.#words, STOP, 1);
  }

  /** Whether the worker was asked to end. Pairs with {@linkcode stop}. */
  get isStopping(): boolean {
    return Atomics.load(this.#words, STOP) === 1;
  }

  /** Says that the worker is alive. Pairs with the load in {@linkcode heartbeat}. */
  beat(): void {
    Atomics.add(this.#words, HEARTBEAT, 1);
  }

  /** Changes as long as the worker is alive. Pairs with the add in {@linkcode beat}. */
  get heartbeat(): number {
    return Atomics.load(this.#words, HEARTBEAT);
  }

  /** Tells the main isolate that a batch is readable. Pairs with {@linkcode nextBatch}. */
  ring(): void {
    Atomics.add(this.#words, DOORBELL, 1);
    Atomics.notify(this.#words, DOORBELL);
  }

  /** How many batches were published. Pairs with the add in {@linkcode ring}. */
  get doorbell(): number {
    return Atomics.load(this.#words, DOORBELL);
  }

  /** Resolves when a batch after the `seen`th is readable, or after `timeoutMs`. */
  async nextBatch(seen: number, timeoutMs: number): Promise<void> {
    await Atomics.waitAsync(this.#words, DOORBELL, seen, timeoutMs).value;
  }

  /** Asks the worker to drain; returns the ticket. Pairs with {@linkcode pollAsked}. */
  askPoll(): number {
    return Atomics.add(this.#words, POLL_ASKED, 1) + 1;
  }

  /** The last ticket. Pairs with the add in {@linkcode askPoll}. */
  get pollAsked(): number {
    return Atomics.load(this.#words, POLL_ASKED);
  }

  /** Says that what was there when `ticket` was asked for is readable. */
  donePoll(ticket: number): void {
    Atomics.store(this.#words, POLL_DONE, ticket);
    Atomics.notify(this.#words, POLL_DONE);
  }

  /** The last ticket that is done. Pairs with the store in {@linkcode donePoll}. */
  get pollDone(): number {
    return Atomics.load(this.#words, POLL_DONE);
  }

  /** Resolves when a ticket after `done` is done, or after `timeoutMs`. */
  async nextPoll(done: number, timeoutMs: number): Promise<void> {
    await Atomics.waitAsync(this.#words, POLL_DONE, done, timeoutMs).value;
  }

  /** Counts. Only in the worker. */
  count(counter: Counter, by: number = 1): void {
    this.#counters[INDEX[counter]]! += by;
  }

  /** Sets a counter that is counted elsewhere. Only in the worker. */
  set(counter: Counter, value: number): void {
    this.#counters[INDEX[counter]] = value;
  }

  /** All counters as they are now. */
  counts(): DrainCounts {
    const counts = COUNTERS.map((name, n) => [name, this.#counters[n]!]);
    return Object.fromEntries(counts) as DrainCounts;
  }

  /** Notes that a rank's snapshot arrived. Only in the worker; `ring` makes it visible. */
  arrive(dpRank: number, nowMs: number): void {
    this.#arrivedAtMs[dpRank] = nowMs;
    this.#arrivals[dpRank]! += 1;
  }

  /** When a rank's newest published snapshot arrived, in ms of CoarseClock; 0 before the first. */
  arrivedAtMs(dpRank: number): number {
    return this.#arrivedAtMs[dpRank] ?? 0;
  }

  /** How many of a rank's snapshots arrived. */
  arrivals(dpRank: number): number {
    return this.#arrivals[dpRank] ?? 0;
  }
}
