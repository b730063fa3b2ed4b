/**
 * A bounded queue of messages in shared memory: one producer, one consumer, and the oldest message
 * gives way where there is no room.
 *
 * HEAD counts what was put in; only the producer moves it. TAIL counts what is gone, taken or
 * overtaken; both move it, by compare-and-exchange. Who moves TAIL past a message owns it. So the
 * consumer copies a message first and then tries to own it: if it does, the producer, which has to
 * move TAIL before it writes there anew, had not begun to; if it does not, the copy is worth nothing
 * and is made again of the next one. The messages themselves need no atomics for that.
 */

import { RECORD_LENGTH } from "./message_record.ts";

const HEAD = 0;
const TAIL = 1;
const WORDS = 2;

/** The most messages that a queue may be asked to hold. */
export const MAX_QUEUE_SIZE = 2 ** 20;

/** One view of the queue; each side makes its own. */
export class MessageRing {
  readonly #size: number;
  readonly #mask: number;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #records: Float64Array<SharedArrayBuffer>;
  /** The producer's own copy of HEAD. */
  #head: number;

  /** How many bytes a queue takes. */
  static byteLength(size: number): number {
    return WORDS * 4 + placesFor(size) * RECORD_LENGTH * 8;
  }

  /**
   * @param size How many messages it holds; 0 is none.
   * @param buffer The block.
   * @param offset Where the queue stands in it.
   */
  constructor(size: number, buffer: SharedArrayBuffer, offset: number) {
    const places = placesFor(size);
    this.#size = size;
    // Counts wrap around, which only a power of two survives.
    this.#mask = places - 1;
    this.#words = new Int32Array(buffer, offset, WORDS);
    this.#head = Atomics.load(this.#words, HEAD);
    this.#records = new Float64Array(buffer, offset + WORDS * 4, places * RECORD_LENGTH);
  }

  /**
   * Puts a message in. Only in the worker.
   *
   * @returns How many older messages had to give way: 0 or 1.
   */
  put(record: Float64Array): number {
    if (this.#size === 0) return 1;
    const head = this.#head;
    let overtaken = 0;
    // Pairs with the exchange in `take`: what the consumer has taken may be written over.
    const tail = Atomics.load(this.#words, TAIL);
    if (((head - tail) | 0) >= this.#size) {
      // If it fails, the consumer has just taken that message itself.
      const found = Atomics.compareExchange(this.#words, TAIL, tail, (tail + 1) | 0);
      if (found === tail) overtaken = 1;
    }
    const at = (head & this.#mask) * RECORD_LENGTH;
    for (let n = 0; n < RECORD_LENGTH; n++) this.#records[at + n] = record[n]!;
    this.#head = (head + 1) | 0;
    // Pairs with the load of HEAD in `take`: who sees it sees the message.
    Atomics.store(this.#words, HEAD, this.#head);
    return overtaken;
  }

  /**
   * Takes the oldest message. Only in the main isolate.
   *
   * @param record Gets the message.
   * @returns Whether there was one.
   */
  take(record: Float64Array): boolean {
    for (;;) {
      const tail = Atomics.load(this.#words, TAIL);
      // Pairs with the store of HEAD in `put`.
      if (Atomics.load(this.#words, HEAD) === tail) return false;
      const at = (tail & this.#mask) * RECORD_LENGTH;
      for (let n = 0; n < RECORD_LENGTH; n++) record[n] = this.#records[at + n]!;
      // Pairs with the load and the exchange of TAIL in `put`.
      if (Atomics.compareExchange(this.#words, TAIL, tail, (tail + 1) | 0) === tail) return true;
    }
  }
}

/** The least power of two that holds so many messages. */
function placesFor(size: number): number {
  let places = 1;
  while (places < size) places *= 2;
  return places;
}
