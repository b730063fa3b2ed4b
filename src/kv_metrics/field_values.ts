/** The values of a message as a list in the table's order, which is what both encodings work on. */

import { KV_FIELDS } from "./fields.ts";
import type { KvMetricsMessage } from "./kv_metrics.ts";

/** One value for each field of the table, in its order. */
export type FieldValues = (number | null)[];

const NONE: Readonly<FieldValues> = KV_FIELDS.map(() => null);

/** Values of which none was sent. */
export function noValues(): FieldValues {
  return NONE.slice();
}

/** Makes a message of a list. The names stand here once more, so that every message has one shape. */
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
 * Takes the value of one field out of a message that is to be encoded.
 *
 * @param message The message.
 * @param field The field's number.
 * @returns The value; a count is a safe integer.
 * @throws {TypeError} If it is neither a number nor `null`.
 * @throws {RangeError} If a count has a fraction, or is beyond 2^53.
 */
export function valueToEncode(message: KvMetricsMessage, field: number): number | null {
  const { name, type } = KV_FIELDS[field]!;
  const value: unknown = message[name];
  if (value === null) return null;
  if (typeof value !== "number") {
    throw new TypeError(`Cannot encode ${name}: ${typeof value} is not a number`);
  }
  if (type === "int" && !Number.isSafeInteger(value)) {
    throw new RangeError(`Cannot encode ${name}: ${value} is not a safe integer`);
  }
  return value;
}
