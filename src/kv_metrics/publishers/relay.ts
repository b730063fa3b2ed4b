/** From one receiver to any number of publishers. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import { messageOf } from "../../errors.ts";
import type { ReceivedKvMetrics } from "../received_kv_metrics.ts";
import { Outlet } from "./outlet.ts";
import type { KvMetricsOutlet, KvMetricsOutletStats } from "./publisher.ts";

/** Options of {@linkcode KvMetricsRelay}. */
export interface KvMetricsRelayOptions {
  /**
   * Is told each time that a publisher fails. Without it a failure is logged, in LogTape's category
   * `loadslots.kv_metrics`, unless it is the same as the one before.
   */
  readonly onFailure?: (publisher: string, error: unknown) => void;
}

/**
 * Takes every message of a receiver and hands it to publishers: a function, a {@linkcode
 * PrometheusPublisher}, a {@linkcode SlotFilePublisher}, a {@linkcode LoadEventPublisher}, or what
 * else has a `publish`.
 *
 * A publisher that fails is reported, and one that is slow gets the newest message of each rank when
 * it is ready. Neither holds up the receiver or other publishers.
 *
 * @example
 * ```ts
 * import { KvMetricsReceiver, KvMetricsRelay } from "./mod.ts";
 *
 * await using receiver = await KvMetricsReceiver.open("tcp://127.0.0.1:5557");
 * await using relay = new KvMetricsRelay(receiver, [
 *   { publisher: ({ metrics }) => console.log(metrics), onlyChanges: true, minIntervalMs: 1000 },
 * ]);
 * await relay.ended;
 * ```
 */
export class KvMetricsRelay implements AsyncDisposable {
  /**
   * Resolves when the receiver has no more messages, or when the relay is closed. Never rejects; the
   * receiver's `closed` tells why.
   */
  readonly ended: Promise<void>;

  readonly #messages: AsyncIterator<ReceivedKvMetrics, unknown>;
  readonly #outlets: readonly Outlet[];
  readonly #onFailure: ((publisher: string, error: unknown) => void) | null;
  /** What was logged last of each publisher. */
  readonly #logged: Map<string, string> = new Map();

  /**
   * Starts to take messages.
   *
   * @param receiver The receiver, which gives its messages to one taker at a time.
   * @param outlets The publishers, each with its terms.
   * @param options Who is told of failures.
   * @throws {RangeError} If an interval is no number of milliseconds.
   * @throws {TypeError} If another loop takes the receiver's messages, or the receiver is closed.
   */
  constructor(
    receiver: AsyncIterable<ReceivedKvMetrics>,
    outlets: readonly KvMetricsOutlet[],
    options: KvMetricsRelayOptions = {},
  ) {
    this.#onFailure = options.onFailure ?? null;
    this.#outlets = outlets.map((outlet) =>
      new Outlet(outlet, (name, error) => this.#report(name, error))
    );
    this.#messages = receiver[Symbol.asyncIterator]();
    this.ended = this.#run();
  }

  /** Tells what has become of the messages, for each publisher in order. */
  stats(): readonly KvMetricsOutletStats[] {
    return this.#outlets.map((outlet) => outlet.stats());
  }

  /**
   * Takes no more messages, and gives up those that are held back. What a publisher has under way is
   * not waited for. The receiver stays open. Twice is fine.
   */
  async close(): Promise<void> {
    for (const outlet of this.#outlets) outlet.close();
    await this.#messages.return?.();
    await this.ended;
  }

  /** Closes the relay at the end of an `await using` scope. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #run(): Promise<void> {
    try {
      for (;;) {
        const next = await this.#messages.next();
        if (next.done === true) break;
        for (const outlet of this.#outlets) outlet.offer(next.value);
      }
    } catch (error) {
      this.#report("receiver", error);
      // Another loop can take the messages.
      await this.#messages.return?.();
    }
    for (const outlet of this.#outlets) outlet.end();
  }

  /** Reports a failure; what listens to that cannot break anything either. */
  #report(name: string, error: unknown): void {
    try {
      if (this.#onFailure !== null) this.#onFailure(name, error);
      else this.#log(name, error);
    } catch (second) {
      this.#log(name, second);
    }
  }

  #log(name: string, error: unknown): void {
    const message = messageOf(error);
    // Who fails at each message says the same each time.
    if (this.#logged.get(name) === message) return;
    this.#logged.set(name, message);
    getLogger(["loadslots", "kv_metrics"]).warn("Publisher {name} failed: {message}", {
      name,
      message,
    });
  }
}
