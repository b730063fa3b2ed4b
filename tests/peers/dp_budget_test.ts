// deno-lint-ignore-file no-console -- the reason for a test that is left out is printed
/** SGLang's three methods against its own DPBudget and round robin, out of the pinned wheel. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import fc from "npm:fast-check@4.11.0";
import { DpBudget } from "../../src/balance/dp_budget.ts";
import type { DispatchMethod } from "../../src/balance/dispatch_options.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { batches, SEED } from "./generated.ts";
import { ensurePeers, type ReadyPeers } from "./setup.ts";

const SEQUENCES = 10_000;

type LoadStep = readonly (readonly [number, number, number, number, number])[];

interface DispatchStep {
  readonly method: DispatchMethod;
  readonly tokens: number | null;
}

interface ActiveStep {
  readonly active: readonly number[];
}

type Step = LoadStep | DispatchStep | ActiveStep;

interface Sequence {
  readonly ranks: number;
  readonly steps: readonly Step[];
}

interface Answer {
  readonly chosen: readonly number[];
  readonly requests: readonly number[];
  readonly tokens: readonly number[];
}

/** Round robin among ranks that come and go. */
const aTurn: fc.Arbitrary<Sequence> = fc.integer({ min: 1, max: 9 }).chain((ranks) => {
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  const active = fc.record({ active: fc.subarray(all, { minLength: 1 }) });
  const dispatch = fc.record({
    method: fc.constant<DispatchMethod>("round_robin"),
    tokens: fc.constant(null),
  });
  const steps = fc.array(
    fc.oneof({ weight: 1, arbitrary: active }, { weight: 6, arbitrary: dispatch }),
    { maxLength: 40, size: "max" },
  );
  return fc.record({ ranks: fc.constant(ranks), steps });
});

/** Small numbers, so that ties are common; few times, so that reports are seen twice. */
const aSequence: fc.Arbitrary<Sequence> = fc.integer({ min: 1, max: 9 }).chain((ranks) => {
  const few = fc.oneof(
    { weight: 4, arbitrary: fc.nat(3) },
    { weight: 1, arbitrary: fc.integer({ min: -5, max: 2 ** 40 }) },
  );
  const time = fc.oneof(fc.nat(4), fc.double({ noNaN: true, min: -1, max: 2e9 }));
  const load = fc.tuple(fc.nat(ranks - 1), time, few, few, few);
  const dispatch = fc.record({
    method: fc.constantFrom<DispatchMethod>("total_requests", "total_tokens"),
    tokens: fc.option(fc.nat(5)),
  });
  const steps = fc.array(
    fc.oneof(
      { weight: 1, arbitrary: fc.array(load, { maxLength: 2 * ranks }) },
      { weight: 3, arbitrary: dispatch },
    ),
    { maxLength: 30, size: "max" },
  );
  return fc.record({ ranks: fc.constant(ranks), steps });
});

function isLoads(step: Step): step is LoadStep {
  return Array.isArray(step);
}

/** What ours does with a sequence. */
function ours(
  { ranks, steps }: Sequence,
): { chosen: number[]; requests: number[]; tokens: number[] } {
  const budget = new DpBudget(ranks, { now: () => 0, ledgerSize: 16 });
  const chosen: number[] = [];
  for (const step of steps) {
    if (isLoads(step)) {
      budget.update(step.map(([dpRank, timestamp, running, waiting, tokens]) =>
        createLoadSnapshot({
          dpRank,
          timestamp,
          numRunningReqs: running,
          numWaitingReqs: waiting,
          numTotalTokens: tokens,
        })
      ));
    } else if ("active" in step) {
      for (let rank = 0; rank < ranks; rank++) {
        if (step.active.includes(rank)) budget.undrain(rank);
        else budget.drain(rank);
      }
    } else {
      const estimatedTokens = step.tokens ?? undefined;
      chosen.push(budget.dispatch(step.method, { estimatedTokens }));
    }
  }
  for (let rank = 0; rank < ranks; rank++) budget.undrain(rank);
  // One more choice, which leaves the counts in the explanation as they were before it.
  budget.dispatch("total_requests");
  const explained = budget.explain()!.ranks;
  return {
    chosen,
    requests: explained.map(({ requests }) => requests),
    tokens: explained.map(({ tokens }) => tokens),
  };
}

/** What SGLang's does with the sequences. */
async function theirs(peers: ReadyPeers, all: readonly Sequence[][]): Promise<Answer[]> {
  const script = fileURLToPath(new URL("dp_budget.py", import.meta.url));
  const child = new Deno.Command(peers.python, {
    args: ["-E", "-s", "-B", script, peers.moduleDir],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const output = child.output();
  const input = child.stdin.getWriter();
  const lines = all.map((sequences) => `${JSON.stringify(sequences)}\n`).join("");
  await input.write(new TextEncoder().encode(lines));
  await input.close();
  const { success, stdout, stderr } = await output;
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout).trim().split("\n").flatMap((line) => JSON.parse(line));
}

const peers = await ensurePeers();

function test(name: string, aSequenceOfThem: fc.Arbitrary<Sequence>, count: number): void {
  const ignore = peers.state === "missing";
  if (ignore) console.error(`left out: "${name}": no Python peers: ${peers.reason}`);
  Deno.test({
    name,
    ignore,
    fn: async () => {
      assert(peers.state === "ready");
      const all = batches(aSequenceOfThem, count);
      const answers = await theirs(peers, all);
      assert.equal(answers.length, count);
      let dispatches = 0;
      all.flat().forEach((sequence, n) => {
        assert.deepEqual(ours(sequence), answers[n], JSON.stringify(sequence));
        dispatches += answers[n]!.chosen.length;
      });
      // Sequences without choices would compare nothing.
      assert(dispatches > count * 5, `${dispatches} dispatches`);
    },
  });
}

test(
  `total_requests and total_tokens choose as SGLang's DPBudget in ${SEQUENCES} sequences (seed ${SEED})`,
  aSequence,
  SEQUENCES,
);

test(
  `round robin takes turns as SGLang's controller in ${SEQUENCES / 5} sequences (seed ${SEED})`,
  aTurn,
  SEQUENCES / 5,
);
