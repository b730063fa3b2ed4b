/**
 * What the main isolate and any worker share: a few words that say stop, alive, and look.
 *
 * A worker that blocks in `zmq_poll` gets no messages, so everything between the two goes through
 * shared memory.
 */

const STOP = 0;
const HEARTBEAT = 1;
const DOORBELL = 2;

/** How many bytes of a block the words take; what stands behind them is aligned. */
export const CONTROL_BYTES = 16;

/** The first words of a block; each side makes its own view. */
export class ControlWords {
  /** The memory, to hand to the other side. */
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array<SharedArrayBuffer>;

  /** @param buffer The block. */
  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#words = new Int32Array(buffer, 0, CONTROL_BYTES / 4);
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
}

/** Counters in a block. Only the worker counts; a word of 8 bytes is never seen by halves. */
export class SharedCounters<Name extends string> {
  readonly #names: readonly Name[];
  readonly #index: Readonly<Record<Name, number>>;
  readonly #values: Float64Array<SharedArrayBuffer>;

  /**
   * @param names What is counted.
   * @param buffer The block.
   * @param offset Where the counters stand in it, 8 bytes for each.
   */
  constructor(names: readonly Name[], buffer: SharedArrayBuffer, offset: number) {
    this.#names = names;
    this.#index = Object.fromEntries(names.map((name, n) => [name, n])) as Record<Name, number>;
    this.#values = new Float64Array(buffer, offset, names.length);
  }

  /** Counts. Only in the worker. */
  count(name: Name, by: number = 1): void {
    this.#values[this.#index[name]]! += by;
  }

  /** Sets a counter that is counted elsewhere. Only in the worker. */
  set(name: Name, value: number): void {
    this.#values[this.#index[name]] = value;
  }

  /** One counter as it is now. */
  get(name: Name): number {
    return this.#values[this.#index[name]]!;
  }

  /** All counters as they are now. */
  all(): Record<Name, number> {
    const counts = this.#names.map((name, n) => [name, this.#values[n]!]);
    return Object.fromEntries(counts) as Record<Name, number>;
  }
}
