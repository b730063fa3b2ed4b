/** Choosing a rank beside SGLang's own DPBudget. */

import { fileURLToPath } from "node:url";
import type { DispatchMethod } from "../../src/balance/dispatch_options.ts";
import { alternate } from "./alternate.ts";
import type { BenchContext } from "./bench_context.ts";
import { OURS, REFERENCE, TIMES_AS_FAST } from "./compare.ts";
import type { Result, Section, Target } from "./results.ts";
import { SideProcess } from "./side_process.ts";
import { ratiosOf } from "./statistics.ts";

/** A case. */
interface BalanceCase {
  readonly ranks: number;
  readonly method: DispatchMethod;
  readonly targets: readonly Target[];
}

const CASES: readonly BalanceCase[] = [
  { ranks: 8, method: "expected_wait", targets: [{ of: OURS, atMost: 1_000 }] },
  { ranks: 64, method: "expected_wait", targets: [] },
  { ranks: 512, method: "expected_wait", targets: [{ of: OURS, atMost: 20_000 }] },
  { ranks: 1_024, method: "expected_wait", targets: [] },
  { ranks: 8, method: "total_tokens", targets: [{ of: OURS, atMost: 1_000 }] },
  { ranks: 64, method: "total_tokens", targets: [] },
  { ranks: 512, method: "total_tokens", targets: [{ of: OURS, atMost: 20_000 }] },
  { ranks: 1_024, method: "total_tokens", targets: [] },
];

/** Runs the cases that were asked for. */
export async function balanceSuite(context: BenchContext): Promise<Section | null> {
  const results: Result[] = [];
  for (const which of CASES) {
    const name = `dispatch, ${which.method}, ${which.ranks} ranks`;
    if (context.wants(name)) results.push(await compareDispatch(context, name, which));
  }
  if (results.length === 0) return null;
  return {
    title: "Choosing a rank, beside SGLang's DPBudget",
    series: [OURS, REFERENCE],
    ratios: [TIMES_AS_FAST],
    results,
    notes: ["SGLang knows no expected_wait: there, its total_tokens stands beside it."],
  };
}

async function compareDispatch(
  { pace: { rounds, roundMs, warmMs }, peers, progress, signal }: BenchContext,
  name: string,
  { ranks, method, targets }: BalanceCase,
): Promise<Result> {
  progress.begin(name);
  await using stack = new AsyncDisposableStack();
  const args = [String(ranks), String(roundMs), String(warmMs)];
  const ours = stack.use(
    await SideProcess.startScript("balance_ours.ts", [method, ...args], signal),
  );
  const script = fileURLToPath(new URL("balance_reference.py", import.meta.url));
  const theirs = method === "expected_wait" ? "total_tokens" : method;
  // Nothing of the user's own Python settings, and no bytecode in this folder.
  const python = ["-E", "-s", "-B", script, peers.moduleDir, theirs, ...args];
  const reference = stack.use(
    await SideProcess.start("balance_reference.py", peers.python, python, signal),
  );
  const series = await alternate(
    new Map([[OURS, ours], [REFERENCE, reference]]),
    rounds,
    (round) => progress.step(name, round, rounds),
  );
  return {
    name,
    unit: "ns",
    series,
    ratios: { [TIMES_AS_FAST]: ratiosOf(series[REFERENCE]!, series[OURS]!) },
    targets,
    growth: { kind: `dispatch, ${method}`, axis: "ranks", value: ranks },
  };
}
