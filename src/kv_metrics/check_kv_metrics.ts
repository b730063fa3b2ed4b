/** What a receiver has to check before it believes a message. */

import { MAX_DP_SIZE } from "../slotfile/layout.ts";
import { KV_FIELDS, type KvFieldSpec } from "./fields.ts";
import type { KvMetrics, KvMetricsMessage } from "./kv_metrics.ts";

/** What is wrong with a value; see {@linkcode checkKvMetrics}. */
export type KvMetricsFault =
  /** The sender said nothing. */
  | "missing"
  /** NaN or infinite. */
  | "not-finite"
  /** A count with a fraction. */
  | "not-integer"
  /** A count below 0. */
  | "negative"
  /** A share that is too far from 0..1, or a rank that is not among the expected ones. */
  | "out-of-range";

/** What {@linkcode checkKvMetrics} found. */
export type KvMetricsCheck =
  | {
    readonly state: "ok";
    /** The same object; every value is there. */
    readonly metrics: KvMetrics;
  }
  | {
    readonly state: "faulty";
    readonly fault: KvMetricsFault;
    /** The first field that is wrong, in wire order. */
    readonly field: keyof KvMetrics;
    readonly value: number | null;
  };

/** Options of {@linkcode checkKvMetrics}. */
export interface KvMetricsCheckOptions {
  /**
   * How many ranks there are; a message of another one is refused. Receivers keep something for each
   * rank, so this also bounds what a sender can make them keep.
   *
   * @default {65_535, as many as a slot file can have}
   */
  readonly dpSize?: number;
}

/**
 * How far a share may lie outside of 0..1. The engine computes usage from free and evictable tokens,
 * which are counted one after the other: for a moment they can add up to more than the pool, or
 * miss a page of it.
 */
const SHARE_SLACK = 0.05;

/**
 * Checks the values of a message: all are there, counts are whole and not negative, shares are
 * finite and within 0..1, give or take 0.05, and the rank is one of those that there are.
 *
 * Decoding says nothing about that: it takes whatever numbers a message holds.
 *
 * @param message The message.
 * @param options See {@linkcode KvMetricsCheckOptions}.
 * @returns The metrics, or the first fault.
 *
 * @example
 * ```ts
 * import { checkKvMetrics, createKvMetrics } from "./mod.ts";
 *
 * const check = checkKvMetrics({ ...createKvMetrics(), kvTotalBlocks: null });
 * if (check.state === "faulty") console.log(check.field, check.fault); // kvTotalBlocks missing
 * ```
 */
export function checkKvMetrics(
  message: KvMetricsMessage,
  options: KvMetricsCheckOptions = {},
): KvMetricsCheck {
  for (let n = 0; n < KV_FIELDS.length; n++) {
    const spec = KV_FIELDS[n]!;
    const value = message[spec.name];
    const fault = faultOf(value, spec);
    if (fault !== null) return { state: "faulty", fault, field: spec.name, value };
  }
  // Every value was found to be a number.
  const metrics = message as KvMetrics;
  const { dataParallelRank } = metrics;
  if (dataParallelRank >= (options.dpSize ?? MAX_DP_SIZE)) {
    return {
      state: "faulty",
      fault: "out-of-range",
      field: "dataParallelRank",
      value: dataParallelRank,
    };
  }
  return { state: "ok", metrics };
}

function faultOf(value: number | null, spec: KvFieldSpec): KvMetricsFault | null {
  if (value === null) return "missing";
  if (!Number.isFinite(value)) return "not-finite";
  if (spec.type === "share") {
    return value < -SHARE_SLACK || value > 1 + SHARE_SLACK ? "out-of-range" : null;
  }
  if (!Number.isSafeInteger(value)) return "not-integer";
  return value < 0 ? "negative" : null;
}
