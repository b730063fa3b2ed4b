// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * Fuzzes the parsers: `deno task fuzz [--target NAME] [--executions N] [--seed S] [--keep]`, or one
 * input that failed: `deno task fuzz --target NAME --input HEX`. With `--keep` the shortest inputs
 * of the outcomes become the corpus, at most 100 of each target.
 */

import { parseArgs } from "node:util";
import { fuzzTarget } from "./fuzz_target.ts";
import { corpusOf, corpusUrl, TARGETS } from "./targets.ts";

const KEPT = 100;
const KEPT_BYTES = 400;

async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      target: { type: "string" },
      executions: { type: "string", default: "1000000" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      input: { type: "string" },
      keep: { type: "boolean", default: false },
    },
  });
  const names = values.target === undefined ? Object.keys(TARGETS) : [values.target];
  const [executions, seed] = [Number(values.executions), Number(values.seed)];
  if (!(executions > 0) || !Number.isInteger(seed)) throw new RangeError("Cannot count so");
  const made = names.map((name) => {
    const make = TARGETS[name];
    if (make === undefined) throw new RangeError(`Cannot fuzz ${name}: no such target`);
    return make;
  });
  if (values.input !== undefined) {
    using target = made[0]!();
    console.log(await target.execute(Uint8Array.fromHex(values.input)));
    return;
  }
  console.log(`seed ${seed}`);
  let [total, seconds] = [0, 0];
  const shares = made.map((make) => {
    using target = make();
    return target.share;
  });
  const sum = shares.reduce((all, share) => all + share, 0);
  for (const [at, make] of made.entries()) {
    using target = make();
    const count = Math.ceil(executions * shares[at]! / sum);
    const result = await fuzzTarget(target, corpusOf(target.name), count, seed);
    const { outcomes, pool } = result;
    console.log(
      `${target.name}: ${count} executions, ${Math.round(count / result.seconds)} a second, ` +
        `${outcomes.size} outcomes, corpus ${pool}`,
    );
    if (values.keep) keep(target.name, outcomes);
    total += count;
    seconds += result.seconds;
  }
  console.log(`${total} executions in ${seconds.toFixed(1)} s, nothing broken; seed ${seed}`);
}

function keep(name: string, outcomes: ReadonlyMap<string, Uint8Array>): void {
  const inputs = [...outcomes.values()].filter(({ length }) => length > 0 && length <= KEPT_BYTES);
  const step = Math.max(1, inputs.length / KEPT);
  const kept = inputs.filter((_, at) => Math.floor(at / step) > Math.floor((at - 1) / step));
  const lines = kept.map((input) => `${input.toHex()}\n`).sort();
  Deno.writeTextFileSync(corpusUrl(name), lines.join(""));
}

if (import.meta.main) await main(Deno.args);
