/** A message with what its receiver knows of it. */

import type { KvMetrics } from "./kv_metrics.ts";
import { ARRIVED_AT, metricsOf, SEQUENCE, UNIX_TIME } from "./message_record.ts";

/** Metrics that arrived. The message has no time of its own, so its receiver stamped it. */
export interface ReceivedKvMetrics {
  /** What the scheduler told. */
  readonly metrics: KvMetrics;
  /** When it arrived: Unix time in milliseconds, by this machine's clock. */
  readonly arrivedAtMs: number;
  /**
   * How old it was when it was handed out, in milliseconds since its arrival; by a clock that nobody
   * adjusts. How long it was under way, or kept by its sender, nobody can know.
   */
  readonly ageMs: number;
  /**
   * Which of the good messages it is, counted over all ranks from 1. A gap between two messages of
   * the iterator is what was overtaken in the queue.
   */
  readonly sequence: number;
}

/**
 * Makes an object of a record.
 *
 * @param record The record.
 * @param nowMs The time by the clock that stamped it.
 * @param metrics Its metrics, if they were made before.
 */
export function receivedOf(
  record: Float64Array,
  nowMs: number,
  metrics: KvMetrics = metricsOf(record),
): ReceivedKvMetrics {
  return {
    metrics,
    arrivedAtMs: record[UNIX_TIME]!,
    ageMs: Math.max(0, nowMs - record[ARRIVED_AT]!),
    sequence: record[SEQUENCE]!,
  };
}
