/** One publisher's end of a relay: when it is told, and what happens if it fails. */

import { messageOf } from "../../errors.ts";
import type { ReceivedKvMetrics } from "../received_kv_metrics.ts";
import type { KvMetricsOutlet, KvMetricsOutletStats, KvMetricsPublisher } from "./publisher.ts";

/** Is told of each failure. */
export type OnFailure = (name: string, error: unknown) => void;

/** What is known of one rank. */
class Rank {
  /** The message that is held back, or is being published. */
  waiting: ReceivedKvMetrics | null = null;
  /** What was published last. */
  published: ReceivedKvMetrics | null = null;
  /** When the next one may be published, in milliseconds of `performance.now`. */
  dueMs = 0;
}

/**
 * Hands messages to one publisher, one at a time. While it is busy, or a rank's interval is not
 * over, the newest message of each rank is held back: a slow publisher holds up nobody, and keeps
 * no more than that.
 */
export class Outlet {
  readonly #publisher: KvMetricsPublisher;
  readonly #onlyChanges: boolean;
  readonly #minIntervalMs: number;
  readonly #onFailure: OnFailure;
  readonly #ranks: Map<number, Rank> = new Map();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isBusy = false;
  #isClosed = false;
  #hasEnded = false;
  #published = 0;
  #unchanged = 0;
  #superseded = 0;
  #failed = 0;
  #lastError: string | null = null;

  constructor(outlet: KvMetricsOutlet, onFailure: OnFailure) {
    const { publisher, onlyChanges = false, minIntervalMs = 0 } = outlet;
    if (!(minIntervalMs >= 0 && minIntervalMs < 2 ** 31)) {
      throw new RangeError(
        `Cannot use minIntervalMs ${minIntervalMs}: not a number of milliseconds`,
      );
    }
    this.#publisher = typeof publisher === "function"
      ? { name: publisher.name || "callback", publish: publisher }
      : publisher;
    this.#onlyChanges = onlyChanges;
    this.#minIntervalMs = minIntervalMs;
    this.#onFailure = onFailure;
  }

  /** Takes a message. It never throws. */
  offer(message: ReceivedKvMetrics): void {
    const rank = this.#rankOf(message.metrics.dataParallelRank);
    if (rank.waiting !== null) this.#superseded++;
    rank.waiting = message;
    this.#pass(rank);
  }

  /** Nothing comes any more: what is held back need not wait for its time. */
  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.#passAll();
  }

  /** Gives up what is held back. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const rank of this.#ranks.values()) {
      if (rank.waiting !== null) this.#superseded++;
      rank.waiting = null;
    }
  }

  stats(): KvMetricsOutletStats {
    return {
      name: this.#publisher.name,
      published: this.#published,
      unchanged: this.#unchanged,
      superseded: this.#superseded,
      failed: this.#failed,
      lastError: this.#lastError,
    };
  }

  #rankOf(dpRank: number): Rank {
    let rank = this.#ranks.get(dpRank);
    if (rank === undefined) {
      rank = new Rank();
      this.#ranks.set(dpRank, rank);
    }
    return rank;
  }

  #passAll(): void {
    for (const rank of this.#ranks.values()) this.#pass(rank);
  }

  /** Publishes what is held back of a rank, if now is the time. */
  #pass(rank: Rank): void {
    const message = rank.waiting;
    if (message === null || this.#isBusy || this.#isClosed) return;
    const nowMs = performance.now();
    if (nowMs < rank.dueMs && !this.#hasEnded) return this.#wakeAt(rank.dueMs - nowMs);
    rank.waiting = null;
    if (this.#onlyChanges && rank.published !== null && !isChange(rank.published, message)) {
      this.#unchanged++;
      return;
    }
    rank.dueMs = nowMs + this.#minIntervalMs;
    this.#publish(rank, message);
  }

  #publish(rank: Rank, message: ReceivedKvMetrics): void {
    let result: void | PromiseLike<void>;
    try {
      result = this.#publisher.publish(message);
      if (!isPromise(result)) return this.#succeed(rank, message);
    } catch (error) {
      return this.#fail(error);
    }
    this.#isBusy = true;
    void this.#settle(rank, message, result);
  }

  async #settle(rank: Rank, message: ReceivedKvMetrics, result: PromiseLike<void>): Promise<void> {
    try {
      await result;
      this.#succeed(rank, message);
    } catch (error) {
      this.#fail(error);
    }
    this.#isBusy = false;
    this.#passAll();
  }

  #succeed(rank: Rank, message: ReceivedKvMetrics): void {
    this.#published++;
    rank.published = message;
  }

  #fail(error: unknown): void {
    this.#failed++;
    this.#lastError = messageOf(error);
    this.#onFailure(this.#publisher.name, error);
  }

  /** Looks again when the first rank's time has come. */
  #wakeAt(inMs: number): void {
    // All intervals are the same, so who waits already is due no later.
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#passAll();
    }, Math.ceil(inMs));
  }
}

function isPromise(result: void | PromiseLike<void>): result is PromiseLike<void> {
  return typeof (result as PromiseLike<void> | undefined)?.then === "function";
}

/** Whether a planner would act on it: Dynamo's worker compares the same two. */
function isChange(before: ReceivedKvMetrics, after: ReceivedKvMetrics): boolean {
  return before.metrics.kvActiveBlocks !== after.metrics.kvActiveBlocks ||
    before.metrics.numRequestsWaiting !== after.metrics.numRequestsWaiting;
}
