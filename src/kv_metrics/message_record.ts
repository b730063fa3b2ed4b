/**
 * A checked message as it lies in shared memory: its values in the table's order, then what its
 * receiver knows of it. All are float64; the counts were found to be safe integers.
 */

import { KV_FIELD_COUNT, KV_FIELDS } from "./fields.ts";
import type { KvMetrics } from "./kv_metrics.ts";

/** When it arrived, in milliseconds of CoarseClock: what ages are computed from. */
export const ARRIVED_AT: number = KV_FIELD_COUNT;
/** When it arrived, in milliseconds of Unix time: what people and other machines are told. */
export const UNIX_TIME: number = KV_FIELD_COUNT + 1;
/** Which good message it is, from 1. */
export const SEQUENCE: number = KV_FIELD_COUNT + 2;
/** How many numbers a record has. */
export const RECORD_LENGTH: number = KV_FIELD_COUNT + 3;

/** Puts the values of a message into a record. */
export function putMetrics(record: Float64Array, metrics: KvMetrics): void {
  for (let n = 0; n < KV_FIELD_COUNT; n++) record[n] = metrics[KV_FIELDS[n]!.name];
}

/** Takes the message out of a record. */
export function metricsOf(record: Float64Array): KvMetrics {
  return {
    requestActiveSlots: record[0]!,
    requestTotalSlots: record[1]!,
    kvActiveBlocks: record[2]!,
    kvTotalBlocks: record[3]!,
    numRequestsWaiting: record[4]!,
    gpuCacheUsagePerc: record[5]!,
    gpuPrefixCacheHitRate: record[6]!,
    dataParallelRank: record[7]!,
  };
}
