/** Damaged payloads in great number: each is a snapshot or a SnapshotDecodeError, and no third. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { SnapshotDecoder } from "../../src/snapshot/decoder.ts";
import { asWritten } from "../support/known.ts";
import { Mutator } from "../support/mutator.ts";
import { Inbox, kindOf, outcomeOf, outcomeWith } from "../support/outcome.ts";
import { aStep, payloadsOf, someEntries } from "../support/payload_arbitraries.ts";
import { isSame } from "../support/same.ts";
import { aSnapshot } from "../support/snapshot_arbitraries.ts";

const SEED = 20_261_130;
const COUNT = 100_000;

/** Sound payloads, small ones mostly, so that a fault hits what matters. */
function corpusOf(seed: number): Uint8Array[] {
  const snapshots = fc.sample(aSnapshot, { seed, numRuns: 150 });
  const payloads = fc.sample(fc.tuple(someEntries, fc.array(aStep)), { seed, numRuns: 20 })
    .flatMap(([entries, steps]) => payloadsOf(entries, steps));
  return [...snapshots.map((snapshot) => encodeLoadSnapshot(snapshot)), ...payloads]
    .filter((payload) => payload.length < 2000);
}

Deno.test(`${COUNT} damaged payloads of seed ${SEED} are told or refused, and nothing else`, () => {
  const mutator = new Mutator(corpusOf(SEED), SEED);
  // One that has seen them all must say what one says that has seen none.
  const decoder = new SnapshotDecoder();
  const inbox = new Inbox();
  let decoded = 0;
  for (let number = 0; number < COUNT; number++) {
    const payload = mutator.next();
    const outcome = outcomeOf(payload);
    const told = () => `payload ${number} of seed ${SEED}: ${payload.toHex()}`;
    if (!isSame(kindOf(outcomeWith(decoder, inbox, payload)), kindOf(outcome))) {
      assert.fail(`decoded in another way after others, ${told()}`);
    }
    if (outcome.ok) {
      decoded++;
      const again = decodeLoadSnapshot(encodeLoadSnapshot(outcome.snapshot));
      if (!isSame(again, asWritten(outcome.snapshot))) assert.fail(`lost in encoding, ${told()}`);
    } else if (outcome.error !== "SnapshotDecodeError") {
      assert.fail(`${outcome.error}: ${outcome.message}, ${told()}`);
    }
  }
  // Both happen often, or the damage is too great or too small to find anything.
  assert(decoded > COUNT / 20 && decoded < COUNT / 2, `${decoded} of ${COUNT} were decoded`);
});
