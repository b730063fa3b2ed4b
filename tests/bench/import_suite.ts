/** What importing the package costs: the time from start to end of a process, and its memory. */

import type { BenchContext } from "./bench_context.ts";
import type { Section } from "./results.ts";
import { ratiosOf } from "./statistics.ts";

const CASE = "import mod.ts";
const NOTHING = "an empty program";
const MOD = "one that imports mod.ts";
const ADDED = "added";
const RATIO = "times the empty one";

interface Start {
  readonly ns: number;
  readonly rss: number;
}

/** Runs the case, if it was asked for. */
export async function importSuite(context: BenchContext): Promise<Section | null> {
  if (!context.wants(CASE)) return null;
  const { pace: { starts }, progress, signal } = context;
  progress.begin(CASE);
  const nothing: Start[] = [];
  const mod: Start[] = [];
  // The first start of each fills the caches of compiled code.
  for (let round = 0; round <= starts; round++) {
    const pair = [await start("import/nothing.ts", signal), await start("import/mod.ts", signal)];
    if (round === 0) continue;
    nothing.push(pair[0]!);
    mod.push(pair[1]!);
    progress.step(CASE, round, starts);
  }
  const result = (name: string, key: keyof Start, atMost: number) => {
    const empty = nothing.map((one) => one[key]);
    const full = mod.map((one) => one[key]);
    const added = full.map((value, round) => value - empty[round]!);
    return {
      name: `${CASE}, ${name}`,
      unit: key === "ns" ? "ns" : "bytes",
      series: { [NOTHING]: empty, [MOD]: full, [ADDED]: added },
      ratios: { [RATIO]: ratiosOf(full, empty) },
      targets: [{ of: ADDED, atMost }],
    } as const;
  };
  return {
    title: "Import, with compiled code in the cache",
    series: [NOTHING, MOD, ADDED],
    ratios: [RATIO],
    results: [result("start to end", "ns", 60e6), result("resident memory", "rss", 60 * 2 ** 20)],
    notes: [],
  };
}

async function start(script: string, signal: AbortSignal): Promise<Start> {
  signal.throwIfAborted();
  const begin = performance.now();
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", new URL(script, import.meta.url).href],
    stdin: "null",
    signal,
  }).output();
  const ns = (performance.now() - begin) * 1e6;
  signal.throwIfAborted();
  if (!success) throw new Error(`${script} failed: ${new TextDecoder().decode(stderr).trim()}`);
  return { ns, rss: Number(new TextDecoder().decode(stdout)) };
}
