/** What a load is: the record that each data-parallel rank publishes. */

import type { RawMsgpack } from "./raw_msgpack.ts";

/** What every section carries besides its values. */
export interface SectionTail {
  /** Elements that a newer engine appended, in order, or `null`. They survive a round trip. */
  readonly extra: readonly RawMsgpack[] | null;
  /**
   * How many of the last values the engine did not send (an older one has fewer); they hold their
   * defaults. 0 when all were there.
   */
  readonly missing: number;
}

/** Where the accelerator's memory went. Wire: `memory`. */
export interface MemoryMetrics extends SectionTail {
  /** Weights, in GB. Wire: `weight_gb`. */
  readonly weightGb: number;
  /** KV cache, in GB. Wire: `kv_cache_gb`. */
  readonly kvCacheGb: number;
  /** CUDA graphs, in GB. Wire: `graph_gb`. */
  readonly graphGb: number;
  /** Tokens that fit the KV cache. Wire: `token_capacity`. */
  readonly tokenCapacity: number;
}

/** Speculative decoding. Wire: `speculative`. */
export interface SpeculativeMetrics extends SectionTail {
  /** Mean number of accepted draft tokens. Wire: `accept_length`. */
  readonly acceptLength: number;
  /** Accepted share of the draft tokens, 0..1; moves only under `--enable-metrics`. Wire: `accept_rate`. */
  readonly acceptRate: number;
}

/** The pool of LoRA adapters. Wire: `lora`. */
export interface LoRAMetrics extends SectionTail {
  /** Adapter slots in use. Wire: `slots_used`. */
  readonly slotsUsed: number;
  /** Adapter slots. Wire: `slots_total`. */
  readonly slotsTotal: number;
  /** Used share of the slots, 0..1. Wire: `utilization`. */
  readonly utilization: number;
}

/** Prefill and decode on different engines. Wire: `disaggregation`. */
export interface DisaggregationMetrics extends SectionTail {
  /** `"prefill"`, `"decode"` or `"null"`; a newer engine may say another. Wire: `mode`. */
  readonly mode: string;
  /** Wire: `prefill_bootstrap_queue_reqs`. */
  readonly prefillBootstrapQueueReqs: number;
  /** Wire: `prefill_inflight_queue_reqs`. */
  readonly prefillInflightQueueReqs: number;
  /** Wire: `decode_prealloc_queue_reqs`. */
  readonly decodePreallocQueueReqs: number;
  /** Wire: `decode_transfer_queue_reqs`. */
  readonly decodeTransferQueueReqs: number;
  /** Wire: `decode_retracted_queue_reqs`. */
  readonly decodeRetractedQueueReqs: number;
  /** Speed of KV transfers, in GB/s. Wire: `kv_transfer_speed_gb_s`. */
  readonly kvTransferSpeedGbS: number;
  /** Latency of KV transfers, in milliseconds. Wire: `kv_transfer_latency_ms`. */
  readonly kvTransferLatencyMs: number;
}

/** Requests by queue. Wire: `queues`. */
export interface QueueMetrics extends SectionTail {
  /** Wire: `waiting`. */
  readonly waiting: number;
  /** Waiting for a grammar. Wire: `grammar`. */
  readonly grammar: number;
  /** Wire: `paused`. */
  readonly paused: number;
  /** Wire: `retracted`. */
  readonly retracted: number;
  /** Preallocated and ready to decode; not sent before #33133. Wire: `prealloc_ready`. */
  readonly preallocReady: number;
}

/**
 * The load of one data-parallel rank.
 *
 * Integers are exact up to 2^53 - 1. Floats may be NaN or infinite: the engine can send that.
 * Treat a snapshot as immutable: a reader hands out the same object until the rank publishes again.
 */
export interface LoadSnapshot {
  /** Unix time of the measurement, in seconds; 0 when nothing was measured yet. Wire: `timestamp`. */
  readonly timestamp: number;
  /** Data-parallel rank, from 0. Wire: `dp_rank`. */
  readonly dpRank: number;
  /** Requests that run. Wire: `num_running_reqs`. */
  readonly numRunningReqs: number;
  /** Requests in all queues ahead of running. Wire: `num_waiting_reqs`. */
  readonly numWaitingReqs: number;
  /** Tokens of waiting requests that the prefix cache does not hold. Wire: `num_waiting_uncached_tokens`. */
  readonly numWaitingUncachedTokens: number;
  /** Tokens in the KV pool. Wire: `num_used_tokens`. */
  readonly numUsedTokens: number;
  /** Used tokens and pending prompt tokens. Wire: `num_total_tokens`. */
  readonly numTotalTokens: number;
  /** Total tokens less those that await a KV transfer. Wire: `num_active_tokens`. */
  readonly numActiveTokens: number;
  /** Preallocated tokens that are ready to decode. Wire: `num_prealloc_ready_tokens`. */
  readonly numPreallocReadyTokens: number;
  /** Size of the KV pool, in tokens. Wire: `max_total_num_tokens`. */
  readonly maxTotalNumTokens: number;
  /** Most requests that may run at once. Wire: `max_running_requests`. */
  readonly maxRunningRequests: number;
  /** Used share of the KV pool, 0..1, rounded to 4 places by SGLang. Wire: `token_usage`. */
  readonly tokenUsage: number;
  /** Generated tokens per second; keeps its last value while idle. Wire: `gen_throughput`. */
  readonly genThroughput: number;
  /** Prefix cache hit rate, 0..1; 0 on decode logs. Wire: `cache_hit_rate`. */
  readonly cacheHitRate: number;
  /** 0..1, or -1 on prefill engines. Wire: `utilization`. */
  readonly utilization: number;
  /** Uncached tokens prefilled since the engine started. Wire: `total_prefill_uncached_tokens`. */
  readonly totalPrefillUncachedTokens: number;
  /** Time spent in prefill since the engine started, in microseconds. Wire: `total_prefill_busy_us`. */
  readonly totalPrefillBusyUs: number;
  /** Moment sums of the decode step time, or `null`. Wire: `decode_moments`. */
  readonly decodeMoments: readonly number[] | null;
  /** Wire: `memory`. */
  readonly memory: MemoryMetrics | null;
  /** Wire: `speculative`. */
  readonly speculative: SpeculativeMetrics | null;
  /** Wire: `lora`. */
  readonly lora: LoRAMetrics | null;
  /** Wire: `disaggregation`. */
  readonly disaggregation: DisaggregationMetrics | null;
  /** Wire: `queues`. */
  readonly queues: QueueMetrics | null;
  /**
   * Keys that this release does not know, from a newer engine or a fork, or `null`. They survive a
   * round trip byte for byte.
   */
  readonly extra: Readonly<Record<string, RawMsgpack>> | null;
}

/** A section as {@linkcode createLoadSnapshot} takes it: what is left out gets its default. */
export type SectionInit<Section> = { readonly [Key in keyof Section]?: Section[Key] };

/** What {@linkcode createLoadSnapshot} takes: what is left out gets its default. */
export type LoadSnapshotInit =
  & {
    readonly [
      Key in Exclude<
        keyof LoadSnapshot,
        "memory" | "speculative" | "lora" | "disaggregation" | "queues"
      >
    ]?: LoadSnapshot[Key];
  }
  & {
    readonly memory?: SectionInit<MemoryMetrics> | null;
    readonly speculative?: SectionInit<SpeculativeMetrics> | null;
    readonly lora?: SectionInit<LoRAMetrics> | null;
    readonly disaggregation?: SectionInit<DisaggregationMetrics> | null;
    readonly queues?: SectionInit<QueueMetrics> | null;
  };

const MEMORY: MemoryMetrics = {
  weightGb: 0,
  kvCacheGb: 0,
  graphGb: 0,
  tokenCapacity: 0,
  extra: null,
  missing: 0,
};

const SPECULATIVE: SpeculativeMetrics = { acceptLength: 0, acceptRate: 0, extra: null, missing: 0 };

const LORA: LoRAMetrics = {
  slotsUsed: 0,
  slotsTotal: 0,
  utilization: 0,
  extra: null,
  missing: 0,
};

const DISAGGREGATION: DisaggregationMetrics = {
  mode: "null",
  prefillBootstrapQueueReqs: 0,
  prefillInflightQueueReqs: 0,
  decodePreallocQueueReqs: 0,
  decodeTransferQueueReqs: 0,
  decodeRetractedQueueReqs: 0,
  kvTransferSpeedGbS: 0,
  kvTransferLatencyMs: 0,
  extra: null,
  missing: 0,
};

const QUEUES: QueueMetrics = {
  waiting: 0,
  grammar: 0,
  paused: 0,
  retracted: 0,
  preallocReady: 0,
  extra: null,
  missing: 0,
};

const SNAPSHOT: LoadSnapshot = {
  timestamp: 0,
  dpRank: 0,
  numRunningReqs: 0,
  numWaitingReqs: 0,
  numWaitingUncachedTokens: 0,
  numUsedTokens: 0,
  numTotalTokens: 0,
  numActiveTokens: 0,
  numPreallocReadyTokens: 0,
  maxTotalNumTokens: 0,
  maxRunningRequests: 0,
  tokenUsage: 0,
  genThroughput: 0,
  cacheHitRate: 0,
  utilization: 0,
  totalPrefillUncachedTokens: 0,
  totalPrefillBusyUs: 0,
  decodeMoments: null,
  memory: null,
  speculative: null,
  lora: null,
  disaggregation: null,
  queues: null,
  extra: null,
};

/**
 * Makes a whole snapshot out of the values that are known.
 *
 * @param init The known values; the rest get SGLang's defaults: zeros, and no sections.
 * @returns A snapshot with every field present.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot } from "./mod.ts";
 *
 * const snapshot = createLoadSnapshot({ dpRank: 1, numRunningReqs: 3, queues: { waiting: 2 } });
 * console.log(snapshot.queues?.paused); // 0
 * ```
 */
export function createLoadSnapshot(init: LoadSnapshotInit = {}): LoadSnapshot {
  return {
    ...SNAPSHOT,
    ...init,
    memory: init.memory ? { ...MEMORY, ...init.memory } : null,
    speculative: init.speculative ? { ...SPECULATIVE, ...init.speculative } : null,
    lora: init.lora ? { ...LORA, ...init.lora } : null,
    disaggregation: init.disaggregation ? { ...DISAGGREGATION, ...init.disaggregation } : null,
    queues: init.queues ? { ...QUEUES, ...init.queues } : null,
  };
}
