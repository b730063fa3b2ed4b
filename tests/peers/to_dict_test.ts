/** The JSON view against SGLang's own `to_dict`. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { INCLUDE_NAMES } from "../../src/snapshot/fields.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { toDict } from "../../src/snapshot/to_dict.ts";
import { assertSame } from "../support/same.ts";
import { aPlainSnapshot } from "../support/snapshot_arbitraries.ts";
import { batches, SEED } from "./generated.ts";
import { peerTests } from "./peer_tests.ts";

const COUNT = 2_000;

const test = await peerTests();

const someParts = fc.option(fc.subarray(INCLUDE_NAMES), { freq: 8 });

test(`both show ${COUNT} snapshots alike, whatever is asked for (seed ${SEED})`, async (peer) => {
  for (const requests of batches(fc.tuple(aPlainSnapshot, someParts), COUNT)) {
    const theirs = await peer.toDict(requests);
    requests.forEach(([snapshot, include], at) => {
      const ours = include === null ? toDict(snapshot) : toDict(snapshot, include);
      const dict = theirs[at]?.ok ? theirs[at].dict : theirs[at];
      assertSame(ours, dict, `${include}`);
      // JSON keeps the order, and people read it.
      assert.deepEqual(Object.keys(ours), Object.keys(dict ?? {}));
    });
  }
});

test("every set of sections is shown alike", async (peer) => {
  const snapshot = createLoadSnapshot(
    { memory: {}, speculative: {}, lora: {}, disaggregation: {}, queues: {} },
  );
  const sets = Array.from(
    { length: 2 ** INCLUDE_NAMES.length },
    (_, bits) => INCLUDE_NAMES.filter((_, at) => (bits & (1 << at)) !== 0),
  );
  const theirs = await peer.toDict(sets.map((include) => [snapshot, include] as const));
  sets.forEach((include, at) => {
    assert(theirs[at]?.ok);
    assertSame(toDict(snapshot, include), theirs[at].dict, `${include}`);
  });
});

test("both refuse unknown sections, unless everything is asked for", async (peer) => {
  const snapshot = createLoadSnapshot({ dpRank: 1, queues: {} });
  const sets = [["gpu"], ["core", "gpu"], ["Core"], ["speculative"], [""], ["gpu", "queues"]];
  const refused = await peer.toDict(sets.map((include) => [snapshot, include] as const));
  sets.forEach((include, at) => {
    assert.throws(() => toDict(snapshot, include), RangeError);
    const one = refused[at];
    assert(one !== undefined && !one.ok, `${include}`);
    const valid = /Valid options: \[(.*)\]/.exec(one.error)?.[1]?.replaceAll("'", "").split(", ");
    assert.deepEqual(valid, INCLUDE_NAMES);
  });
  const [all] = await peer.toDict([[snapshot, ["gpu", "all"]]]);
  assert(all?.ok);
  assertSame(toDict(snapshot, ["gpu", "all"]), all.dict);
});
