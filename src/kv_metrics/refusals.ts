/** Why a receiver refuses a message, and how it counts that. */

import type { KvMetricsRefusal } from "../errors.ts";
import type { KvMetricsFault } from "./check_kv_metrics.ts";

/**
 * Why a message was refused: the reason of a {@linkcode KvMetricsDecodeError}, the fault that
 * {@linkcode checkKvMetrics} found, or what the receiver itself does not take.
 */
export type KvMetricsRefusalKind =
  | KvMetricsRefusal
  | KvMetricsFault
  /** It came in several parts. */
  | "multipart"
  /** It is of a rank that the receiver does not expect. */
  | "rank"
  /** Decoding it failed as nothing may: a fault of this package, and no reason to stop receiving. */
  | "internal";

// An object, so that the compiler sees to it that none is left out.
const KINDS: Readonly<Record<KvMetricsRefusalKind, true>> = {
  "size": true,
  "multipart": true,
  "encoding": true,
  "protocol": true,
  "frame": true,
  "truncated": true,
  "trailing": true,
  "opcode": true,
  "global": true,
  "call": true,
  "build": true,
  "memo": true,
  "depth": true,
  "stack": true,
  "dict": true,
  "text": true,
  "integer": true,
  "numpy": true,
  "value": true,
  "result": true,
  "class": true,
  "missing": true,
  "not-finite": true,
  "not-integer": true,
  "negative": true,
  "out-of-range": true,
  "rank": true,
  "internal": true,
};

/** All kinds, in the order in which a message meets the checks. */
export const REFUSAL_KINDS: readonly KvMetricsRefusalKind[] = Object.keys(
  KINDS,
) as KvMetricsRefusalKind[];
