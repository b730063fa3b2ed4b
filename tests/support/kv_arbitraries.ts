/** Generated KvMetrics, with every extreme. */

import fc from "npm:fast-check@4.11.0";
import { KV_FIELDS } from "../../src/kv_metrics/fields.ts";
import type { KvMetricsMessage } from "../../src/kv_metrics/kv_metrics.ts";

/** Where one form of an integer ends and the next begins, in either encoding. */
const INT_EDGES: readonly number[] = [0, 5, 7, 8, 15, 16, 23, 24, 31, 32, 39, 40, 47, 48, 53]
  .flatMap((bits) => [2 ** bits - 1, 2 ** bits, 2 ** bits + 1])
  .flatMap((value) => [value, -value])
  .filter((value) => Number.isSafeInteger(value) && !Object.is(value, -0));

const FLOAT_EDGES: readonly number[] = [
  ...[0, -0, 1, -1, 0.1, 5e-324, -5e-324, 2 ** -1022, 2 ** 53, 1e308],
  ...[Number.MAX_VALUE, Infinity, -Infinity, NaN],
];

/** Counts of every size. */
export const aCount: fc.Arbitrary<number> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...INT_EDGES) },
  { weight: 3, arbitrary: fc.nat({ max: 1_000_000 }) },
  fc.maxSafeInteger(),
);

/** Shares, and floats of every other kind. */
export const aShare: fc.Arbitrary<number> = fc.oneof(
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.constantFrom(...FLOAT_EDGES),
  fc.double(),
);

/** Messages as senders can write them. */
export const aMessage: fc.Arbitrary<KvMetricsMessage> = messages(0);

/** Messages in which values are missing. */
export const aPartialMessage: fc.Arbitrary<KvMetricsMessage> = messages(3);

/** @param some How many in ten values are missing. */
function messages(some: number): fc.Arbitrary<KvMetricsMessage> {
  const fields = KV_FIELDS.map(({ name, type }) => {
    const arbitrary = type === "int" ? aCount : aShare;
    return [
      name,
      fc.oneof({ weight: 10 - some, arbitrary }, { weight: some, arbitrary: fc.constant(null) }),
    ];
  });
  // The table has every name of a message.
  return fc.record(Object.fromEntries(fields), { noNullPrototype: true }) as fc.Arbitrary<
    KvMetricsMessage
  >;
}
