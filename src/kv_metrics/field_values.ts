/** The values of a message as a list in the table's order, which is what both encodings work on. */

import { KV_FIELDS, type KvFieldSpec } from "./fields.ts";
import type { KvMetricsMessage } from "./kv_metrics.ts";

/** One value for each field of the table, in its order. */
export type FieldValues = (number | null)[];

const NONE: Readonly<FieldValues> = KV_FIELDS.map(() => null);

/** Values of which none was sent. */
export function noValues(): FieldValues {
  return NONE.slice();
}

/** Makes a message of a list. The names stand here once more: so every message has one shape. */
export function messageOf(values: Readonly<FieldValues>): KvMetricsMessage {
  return {
    requestActiveSlots: values[0]!,
    requestTotalSlots: values[1]!,
    kvActiveBlocks: values[2]!,
    kvTotalBlocks: values[3]!,
    numRequestsWaiting: values[4]!,
    gpuCacheUsagePerc: values[5]!,
    gpuPrefixCacheHitRate: values[6]!,
    dataParallelRank: values[7]!,
  };
}

/**
 * Takes the values out of a message that is to be encoded.
 *
 * @param message The message.
 * @returns The values; a count is a safe integer.
 * @throws {TypeError} If one is neither a number nor `null`.
 * @throws {RangeError} If a count has a fraction, or is beyond 2^53.
 */
export function valuesToEncode(message: KvMetricsMessage): FieldValues {
  const values: FieldValues = [
    message.requestActiveSlots,
    message.requestTotalSlots,
    message.kvActiveBlocks,
    message.kvTotalBlocks,
    message.numRequestsWaiting,
    message.gpuCacheUsagePerc,
    message.gpuPrefixCacheHitRate,
    message.dataParallelRank,
  ];
  for (let n = 0; n < values.length; n++) checkValue(values[n], KV_FIELDS[n]!);
  return values;
}

function checkValue(value: unknown, { name, type }: KvFieldSpec): void {
  if (value === null) return;
  if (typeof value !== "number") {
    throw new TypeError(`Cannot encode ${name}: ${typeof value} is not a number`);
  }
  if (type === "int" && !Number.isSafeInteger(value)) {
    throw new RangeError(`Cannot encode ${name}: ${value} is not a safe integer`);
  }
}
