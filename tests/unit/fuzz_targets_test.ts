/** Each parser under changed inputs of one seed: what must hold for all bytes holds for these. */

import assert from "node:assert/strict";
import { FuzzFailure, fuzzTarget } from "../fuzz/fuzz_target.ts";
import { NOTHING_HELD } from "../fuzz/target.ts";
import { corpusOf, TARGETS } from "../fuzz/targets.ts";

const SEED = 20_261_201;
/** Of a target with share 1: about 60,000 over all. */
const EXECUTIONS = 3_000;

for (const [name, make] of Object.entries(TARGETS)) {
  Deno.test(`${name} keeps its word for changed inputs of seed ${SEED}`, async () => {
    using target = make();
    assert.equal(target.name, name);
    const count = Math.ceil(EXECUTIONS * target.share);
    const { executions, outcomes } = await fuzzTarget(target, corpusOf(name), count, SEED);
    assert.equal(executions, count);
    // Inputs that all come to the same would show nothing.
    assert(outcomes.size >= 5, `only ${outcomes.size} outcomes`);
  });
}

Deno.test("a parser that breaks its word is found, with the input and how to repeat it", async () => {
  const target = {
    ...NOTHING_HELD,
    name: "broken",
    seeds: [Uint8Array.of(1, 2, 3, 4)],
    share: 1,
    // Found in two steps only: an input with the first byte right is kept and changed again.
    execute(input: Uint8Array): string {
      if (input[0] !== 0x7f) return "none";
      assert(input[1] !== 0x7e, "both");
      return "one";
    },
  };
  const find = () => fuzzTarget(target, [], 1_000_000, SEED).then(() => null, (error) => error);
  const failure = await find();
  assert(failure instanceof FuzzFailure);
  assert.match(failure.message, /--target broken --input 7f7e[0-9a-f]*$/);
  assert.equal((await find()).message, failure.message, "a seed is a sequence");
});
