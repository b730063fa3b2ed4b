/** The event by which Dynamo's workers of 2025 told their load. */

import { type KvMetrics, totalPages, usedPages } from "../kv_metrics.ts";
import type { ReceivedKvMetrics } from "../received_kv_metrics.ts";
import type { KvMetricsPublisher } from "./publisher.ts";

/** Dynamo's `ForwardPassMetrics`, with the names that its JSON has. */
export interface ForwardPassMetrics {
  /** Requests. */
  readonly worker_stats: {
    readonly data_parallel_rank: number;
    readonly request_active_slots: number;
    readonly request_total_slots: number;
    readonly num_requests_waiting: number;
  };
  /** The KV pool. */
  readonly kv_stats: {
    readonly kv_active_blocks: number;
    readonly kv_total_blocks: number;
    /** 0..1, despite its name. */
    readonly gpu_cache_usage_perc: number;
    readonly gpu_prefix_cache_hit_rate: number;
  };
  /** Speculative decoding, of which KvMetrics tell nothing. */
  readonly spec_decode_stats: null;
}

/** Dynamo's `LoadEvent`, with the names that its JSON has. */
export interface LoadEvent {
  /** The worker's id in Dynamo: a lease, of which many are beyond 2^53. */
  readonly worker_id: number | bigint;
  /** The load of one rank. */
  readonly data: ForwardPassMetrics;
}

/** Options of {@linkcode loadEventOf}. */
export interface LoadEventOptions {
  /** The worker's id in Dynamo. */
  readonly workerId: number | bigint;
  /**
   * Tokens of a page, the engine's `--page-size`: the event then counts blocks as Dynamo does, in
   * pages. Without it the blocks are passed on as they came, in tokens, as the workers of 2025 did.
   */
  readonly pageSize?: number;
}

/**
 * Makes Dynamo's older load event of metrics.
 *
 * @param metrics The metrics of one rank.
 * @param options The worker, and the unit of its blocks.
 * @returns The event; see {@linkcode loadEventJson}.
 * @throws {RangeError} If the page size is no positive integer.
 *
 * @example
 * ```ts
 * import { createKvMetrics, loadEventOf } from "./mod.ts";
 *
 * const metrics = createKvMetrics({ kvActiveBlocks: 513, kvTotalBlocks: 8192 });
 * const event = loadEventOf(metrics, { workerId: 7, pageSize: 64 });
 * console.log(event.data.kv_stats.kv_active_blocks); // 9
 * ```
 */
export function loadEventOf(metrics: KvMetrics, options: LoadEventOptions): LoadEvent {
  const { workerId, pageSize } = options;
  return {
    worker_id: workerId,
    data: {
      worker_stats: {
        data_parallel_rank: metrics.dataParallelRank,
        request_active_slots: metrics.requestActiveSlots,
        request_total_slots: metrics.requestTotalSlots,
        num_requests_waiting: metrics.numRequestsWaiting,
      },
      kv_stats: {
        kv_active_blocks: pageSize === undefined
          ? metrics.kvActiveBlocks
          : usedPages(metrics, pageSize),
        kv_total_blocks: pageSize === undefined
          ? metrics.kvTotalBlocks
          : totalPages(metrics, pageSize),
        gpu_cache_usage_perc: metrics.gpuCacheUsagePerc,
        gpu_prefix_cache_hit_rate: metrics.gpuPrefixCacheHitRate,
      },
      spec_decode_stats: null,
    },
  };
}

/**
 * Writes an event as Dynamo reads it: `JSON.stringify` refuses a worker id that is a bigint.
 *
 * @param event The event.
 * @returns Its JSON.
 */
export function loadEventJson(event: LoadEvent): string {
  return `{"worker_id":${event.worker_id},"data":${JSON.stringify(event.data)}}`;
}

/** Options of {@linkcode LoadEventPublisher}. */
export interface LoadEventPublisherOptions extends LoadEventOptions {
  /** Dynamo's namespace, which is part of the subject. @default {"dynamo"} */
  readonly namespace?: string;
}

/**
 * Publishes load events, over a connection that is the caller's: to NATS, for example.
 *
 * Dynamo's worker publishes only changes, at least a millisecond apart; `onlyChanges` and
 * `minIntervalMs` of {@linkcode KvMetricsOutlet} do that.
 *
 * @example
 * ```ts
 * import { LoadEventPublisher, loadEventJson } from "./mod.ts";
 *
 * const publisher = new LoadEventPublisher(
 *   (subject, event) => console.log(subject, loadEventJson(event)),
 *   { workerId: 7587888100n },
 * );
 * console.log(publisher.subject); // namespace.dynamo.kv_metrics
 * ```
 */
export class LoadEventPublisher implements KvMetricsPublisher {
  readonly name = "load events";
  /** The subject on which Dynamo's planner and router listen. */
  readonly subject: string;
  readonly #send: (subject: string, event: LoadEvent) => void | PromiseLike<void>;
  readonly #options: LoadEventOptions;

  /**
   * Makes a publisher.
   *
   * @param send Sends an event.
   * @param options The worker, the unit of its blocks, and the namespace.
   */
  constructor(
    send: (subject: string, event: LoadEvent) => void | PromiseLike<void>,
    options: LoadEventPublisherOptions,
  ) {
    this.subject = `namespace.${options.namespace ?? "dynamo"}.kv_metrics`;
    this.#send = send;
    this.#options = options;
  }

  /** Sends one message as an event. */
  publish({ metrics }: ReceivedKvMetrics): void | PromiseLike<void> {
    return this.#send(this.subject, loadEventOf(metrics, this.#options));
  }
}
