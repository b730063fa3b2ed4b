/** What a receiver can feed, and on what terms. */

import type { ReceivedKvMetrics } from "../received_kv_metrics.ts";

/** Something that is told of metrics. */
export interface KvMetricsPublisher {
  /** What it is called in reports. */
  readonly name: string;
  /**
   * Publishes one message. It may fail, by throwing or rejecting: that is reported, and the next
   * message is the next try.
   */
  publish(message: ReceivedKvMetrics): void | PromiseLike<void>;
}

/** When a publisher is told. */
export interface KvMetricsTerms {
  /**
   * Tells only what a planner acts on: a change of the rank's active blocks or waiting requests since
   * its last publication, as Dynamo's worker does. A rank whose load stays the same then falls silent;
   * whoever judges it by age takes it for stale.
   *
   * @default {false}
   */
  readonly onlyChanges?: boolean;
  /**
   * The least time between two publications of a rank, in milliseconds. What comes earlier is held
   * back, and the newest of it is published when the time has come.
   *
   * @default {0}
   */
  readonly minIntervalMs?: number;
}

/** A publisher, or a function to call; and its terms. */
export interface KvMetricsOutlet extends KvMetricsTerms {
  /** Who is told. */
  readonly publisher:
    | KvMetricsPublisher
    | ((message: ReceivedKvMetrics) => void | PromiseLike<void>);
}

/** What has become of the messages that one publisher was offered; each is counted once. */
export interface KvMetricsOutletStats {
  /** The publisher's name. */
  readonly name: string;
  /** Messages that it published. */
  readonly published: number;
  /** Messages that told no change. */
  readonly unchanged: number;
  /** Messages that a newer one of their rank overtook while they were held back. */
  readonly superseded: number;
  /** Messages at which it failed. */
  readonly failed: number;
  /** What it said when it failed last; `null` if it never did. */
  readonly lastError: string | null;
}
