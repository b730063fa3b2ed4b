/** What a scheduler tells a Dynamo worker about one data-parallel rank. */

import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";

/**
 * The KvMetrics of one data-parallel rank.
 *
 * **The two "blocks" count tokens, not pages**, whatever their names say: that is what SGLang puts
 * there. {@linkcode usedPages} and {@linkcode totalPages} give pages. There is no time in it, so
 * whoever receives one has to stamp it.
 */
export interface KvMetrics {
  /** Requests that run. Wire: `request_active_slots`. */
  readonly requestActiveSlots: number;
  /** Most requests that may run at once. Wire: `request_total_slots`. */
  readonly requestTotalSlots: number;
  /** Tokens in the KV pool. Wire: `kv_active_blocks`. */
  readonly kvActiveBlocks: number;
  /** Size of the KV pool, in tokens. Wire: `kv_total_blocks`. */
  readonly kvTotalBlocks: number;
  /** Requests in the waiting queue. Wire: `num_requests_waiting`. */
  readonly numRequestsWaiting: number;
  /** Used share of the KV pool, 0..1 despite its name. Wire: `gpu_cache_usage_perc`. */
  readonly gpuCacheUsagePerc: number;
  /** Prefix cache hit rate, 0..1; 0 on decode messages. Wire: `gpu_prefix_cache_hit_rate`. */
  readonly gpuPrefixCacheHitRate: number;
  /** Data-parallel rank, from 0. Wire: `data_parallel_rank`. */
  readonly dataParallelRank: number;
}

/**
 * A KvMetrics as a message holds it: `null` where the sender said nothing.
 *
 * A sender of 2025 starts with None in every field and sends what it has set by then, so any value
 * can be missing. That is not a zero, and a planner must not take it for one: `null` keeps the two
 * apart until {@linkcode checkKvMetrics} has looked.
 */
export type KvMetricsMessage = { readonly [Key in keyof KvMetrics]: KvMetrics[Key] | null };

/** What {@linkcode createKvMetrics} takes: what is left out gets its default. */
export type KvMetricsInit = { readonly [Key in keyof KvMetrics]?: KvMetrics[Key] };

/** Options of {@linkcode kvMetricsFrom}. */
export interface KvMetricsFromOptions {
  /**
   * Most requests that may run at once, for engines whose snapshots do not tell.
   *
   * @default {snapshot.maxRunningRequests}
   */
  readonly maxRunningRequests?: number;
}

/**
 * Makes whole metrics out of the values that are known.
 *
 * @param init The known values; the rest are 0, as in SGLang's class.
 * @returns Metrics with every value present.
 *
 * @example
 * ```ts
 * import { createKvMetrics } from "./mod.ts";
 *
 * const metrics = createKvMetrics({ dataParallelRank: 1, requestActiveSlots: 3 });
 * console.log(metrics.numRequestsWaiting); // 0
 * ```
 */
export function createKvMetrics(init: KvMetricsInit = {}): KvMetrics {
  // One by one: the order of the properties is the wire's, and nothing else gets in.
  return {
    requestActiveSlots: init.requestActiveSlots ?? 0,
    requestTotalSlots: init.requestTotalSlots ?? 0,
    kvActiveBlocks: init.kvActiveBlocks ?? 0,
    kvTotalBlocks: init.kvTotalBlocks ?? 0,
    numRequestsWaiting: init.numRequestsWaiting ?? 0,
    gpuCacheUsagePerc: init.gpuCacheUsagePerc ?? 0,
    gpuPrefixCacheHitRate: init.gpuPrefixCacheHitRate ?? 0,
    dataParallelRank: init.dataParallelRank ?? 0,
  };
}

/**
 * Computes the metrics that the scheduler would send for a load.
 *
 * The used tokens are `tokenUsage` times the size of the pool, cut to a whole number, as SGLang
 * computes them; a snapshot's usage is rounded to four places, so they are exact to a
 * ten-thousandth of the pool. The waiting requests are those of the waiting queue alone, where the
 * snapshot has its queues: its `numWaitingReqs` also counts the queues of a disaggregated engine.
 *
 * @param snapshot The load.
 * @param options See {@linkcode KvMetricsFromOptions}.
 * @returns The metrics.
 * @throws {RangeError} If the usage is NaN or infinite: SGLang cannot send that either.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot, kvMetricsFrom } from "./mod.ts";
 *
 * const load = createLoadSnapshot({ tokenUsage: 0.25, maxTotalNumTokens: 8192 });
 * console.log(kvMetricsFrom(load, { maxRunningRequests: 128 }).kvActiveBlocks); // 2048
 * ```
 */
export function kvMetricsFrom(
  snapshot: LoadSnapshot,
  options: KvMetricsFromOptions = {},
): KvMetrics {
  const { tokenUsage, maxTotalNumTokens } = snapshot;
  if (!Number.isFinite(tokenUsage)) {
    throw new RangeError(`Cannot compute kvActiveBlocks: tokenUsage is ${tokenUsage}`);
  }
  return {
    requestActiveSlots: snapshot.numRunningReqs,
    requestTotalSlots: options.maxRunningRequests ?? snapshot.maxRunningRequests,
    // Plus zero: a tiny negative usage would leave -0, which Python's int() does not know.
    kvActiveBlocks: Math.trunc(tokenUsage * maxTotalNumTokens) + 0,
    kvTotalBlocks: maxTotalNumTokens,
    numRequestsWaiting: snapshot.queues?.waiting ?? snapshot.numWaitingReqs,
    gpuCacheUsagePerc: tokenUsage,
    gpuPrefixCacheHitRate: snapshot.cacheHitRate,
    dataParallelRank: snapshot.dpRank,
  };
}

/**
 * The pages of the KV pool that are in use, as Dynamo's router counts them.
 *
 * @param metrics The metrics, whose blocks count tokens.
 * @param pageSize Tokens of a page: the engine's `--page-size`.
 * @returns Pages; one that is used in part counts as one.
 * @throws {RangeError} If the page size is no positive integer.
 *
 * @example
 * ```ts
 * import { createKvMetrics, usedPages } from "./mod.ts";
 *
 * console.log(usedPages(createKvMetrics({ kvActiveBlocks: 513 }), 64)); // 9
 * ```
 */
export function usedPages(metrics: KvMetrics, pageSize: number): number {
  return pagesOf(metrics.kvActiveBlocks, pageSize);
}

/**
 * The pages of the whole KV pool.
 *
 * @param metrics The metrics, whose blocks count tokens.
 * @param pageSize Tokens of a page: the engine's `--page-size`.
 * @returns Pages; a last one that is not whole counts as one.
 * @throws {RangeError} If the page size is no positive integer.
 */
export function totalPages(metrics: KvMetrics, pageSize: number): number {
  return pagesOf(metrics.kvTotalBlocks, pageSize);
}

function pagesOf(tokens: number, pageSize: number): number {
  if (!Number.isSafeInteger(pageSize) || pageSize < 1) {
    throw new RangeError(`Cannot count pages of ${pageSize} tokens: not a positive integer`);
  }
  // Not Math.ceil of the quotient: that is rounded, and can lose the one token of a last page.
  const rest = tokens % pageSize;
  return (tokens - rest) / pageSize + (rest > 0 ? 1 : 0);
}
