/** Every message of a receiver, one after the other. */

import { setImmediate } from "node:timers";
import type { ReceivedKvMetrics } from "./received_kv_metrics.ts";

/** Where an iterator takes messages, and how it waits for more. */
export interface MessageFeed {
  /** Whether no message is to be given out any more, and whether none will come. */
  readonly state: "open" | "ended" | "closed";
  /** Takes the oldest message, or `null`. */
  take(): ReceivedKvMetrics | null;
  /** How many batches were shown: what {@linkcode next} waits after. */
  readonly batches: number;
  /** Resolves after the `seen`th batch, or when the state may have changed. */
  next(seen: number): Promise<void>;
  /** Has {@linkcode next} resolve. */
  wake(): void;
  /** The iterator is done; another one may start. */
  release(): void;
}

/**
 * So many messages are given out in a row before everything else in the isolate has its turn.
 * Otherwise a flood would keep timers and signals from ever being heard: what is there at once costs a
 * loop no more than a microtask.
 */
const IN_A_ROW = 256;

type Next = IteratorResult<ReceivedKvMetrics, undefined>;

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The one iterator that a receiver has at a time. */
export class MessageIterator implements AsyncIterableIterator<ReceivedKvMetrics, undefined> {
  readonly #feed: MessageFeed;
  /** The last call that had to wait; who calls meanwhile comes after it. */
  #waiting: Promise<unknown> | null = null;
  #inARow = 0;
  #isDone = false;

  constructor(feed: MessageFeed) {
    this.#feed = feed;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Next> {
    const before = this.#waiting;
    if (before === null && this.#inARow < IN_A_ROW) {
      const result = this.#take();
      if (result !== null) return Promise.resolve(result);
    }
    const call = before === null ? this.#wait() : before.then(() => this.#wait());
    this.#waiting = call;
    return call.finally(() => {
      if (this.#waiting === call) this.#waiting = null;
    });
  }

  /** Ends the iteration; a message that is waited for does not come any more. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#end();
    this.#feed.wake();
    return Promise.resolve(DONE);
  }

  /** Takes what is there: a message, the end, or `null`. */
  #take(): Next | null {
    if (this.#isDone) return DONE;
    // Before the feed is asked: it may end just then, with a message that came last.
    const { state } = this.#feed;
    const value = state === "closed" ? null : this.#feed.take();
    if (value !== null) {
      this.#inARow++;
      return { done: false, value };
    }
    if (state === "open") return null;
    this.#end();
    return DONE;
  }

  async #wait(): Promise<Next> {
    if (this.#inARow >= IN_A_ROW) await new Promise<void>((resolve) => setImmediate(resolve));
    this.#inARow = 0;
    for (;;) {
      // Before the feed is asked: a message that comes after the answer ends the wait.
      const seen = this.#feed.batches;
      const result = this.#take();
      if (result !== null) return result;
      await this.#feed.next(seen);
    }
  }

  #end(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#feed.release();
  }
}
