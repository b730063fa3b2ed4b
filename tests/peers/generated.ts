/** What the codec is tried with against SGLang's module: another lot in each run, from one seed. */

import fc from "npm:fast-check@4.11.0";

/**
 * Chosen anew in each run; `LOADSLOTS_SEED` repeats one. It stands in the names of the tests that
 * depend on it, so that a run which failed tells it.
 */
export const SEED: number = Number(
  Deno.env.get("LOADSLOTS_SEED") ?? crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1,
);

/** Requests to the peer are of this many items. */
const BATCH = 250;

/** So many values of a kind, in batches. */
export function batches<Value>(arbitrary: fc.Arbitrary<Value>, count: number): Value[][] {
  const values = fc.sample(arbitrary, { seed: SEED, numRuns: count });
  return Array.from(
    { length: Math.ceil(count / BATCH) },
    (_, number) => values.slice(number * BATCH, (number + 1) * BATCH),
  );
}
