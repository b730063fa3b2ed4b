/** What became slower or faster from one run to another, by more than both runs' own noise. */

import { TIMES_AS_FAST } from "./compare.ts";
import type { SavedCase, SavedRun } from "./run_file.ts";
import { median, quantile } from "./statistics.ts";

/** What was found of a case. */
export type Verdict = "slower" | "faster" | "same" | "unclear";

/** One case of both runs. */
export interface Change {
  readonly name: string;
  /** The ratio or the series that was compared. */
  readonly by: string;
  /** How many times the earlier cost: above 1 is slower; with the interval that the noise leaves. */
  readonly factor: number;
  readonly low: number;
  readonly high: number;
  /** `"unclear"`: too few samples to know the noise. */
  readonly verdict: Verdict;
}

/** All that can be said about two runs. */
export interface Comparison {
  /** Which versions were measured, `null` where both runs say the same. */
  readonly versions: string | null;
  /** What differs besides the code that was measured; figures differ for that alone. */
  readonly differences: readonly string[];
  readonly changes: readonly Change[];
  readonly onlyBefore: readonly string[];
  readonly onlyAfter: readonly string[];
}

/**
 * So many standard errors: with a hundred cases compared at once, fewer would report several changes
 * where there are none.
 */
const DEVIATIONS = 3;

/**
 * No smaller change is reported. Samples of one process share what differs between processes, such
 * as where its memory lies, so that their spread alone tells too little.
 */
const LEAST_CHANGE = 0.05;

/** Fewer samples have no quartiles to speak of. */
const LEAST_SAMPLES = 3;

/** Compares two runs. */
export function compareRuns(before: SavedRun, after: SavedRun): Comparison {
  const earlier = new Map(before.results.map((one) => [one.name, one]));
  const later = new Set(after.results.map(({ name }) => name));
  return {
    versions: versionsOf(before, after),
    differences: differencesOf(before, after),
    changes: after.results.flatMap((now) => {
      const then = earlier.get(now.name);
      return then === undefined ? [] : [changeOf(then, now)];
    }),
    onlyBefore: before.results.map(({ name }) => name).filter((name) => !later.has(name)),
    onlyAfter: [...later].filter((name) => !earlier.has(name)),
  };
}

/** How a figure is turned into a cost. */
interface Measure {
  readonly of: string;
  readonly isRatio: boolean;
  readonly sign: 1 | -1;
}

/**
 * What to compare: our cost beside the reference, measured in the same rounds, for this cancels the
 * machine's mood; else another ratio of ours; else the time itself.
 */
function measuresOf({ series, ratios }: SavedCase): Measure[] {
  const others = Object.keys(ratios).filter((name) =>
    name !== TIMES_AS_FAST && !name.startsWith("SGLang's")
  );
  const names = Object.keys(series);
  // Each of several sides is ours where a case has no reference.
  const ours = names.filter((name) => /\bours\b|^added$/.test(name));
  return [
    ...(TIMES_AS_FAST in ratios ? [{ of: TIMES_AS_FAST, isRatio: true, sign: -1 } as const] : []),
    ...others.map((of): Measure => ({ of, isRatio: true, sign: 1 })),
    ...(ours.length > 0 ? ours : names.slice(0, 1)).map((of): Measure => ({
      of,
      isRatio: false,
      sign: 1,
    })),
  ];
}

function changeOf(before: SavedCase, after: SavedCase): Change {
  const samplesOf = (one: SavedCase, { of, isRatio }: Measure) =>
    ((isRatio ? one.ratios : one.series)[of] ?? []).filter((value) => value > 0);
  const measures = measuresOf(after);
  const measure = measures.find((one) =>
    samplesOf(before, one).length > 0 && samplesOf(after, one).length > 0
  );
  const nothing = { factor: NaN, low: NaN, high: NaN, verdict: "unclear" } as const;
  if (measure === undefined) return { name: after.name, by: measures[0]?.of ?? "", ...nothing };
  const logs = [before, after].map((one) =>
    samplesOf(one, measure).map((value) => measure.sign * Math.log(value))
  );
  const [then, now] = [logs[0]!, logs[1]!];
  const middle = median(now) - median(then);
  const factor = Math.exp(middle);
  const base = { name: after.name, by: measure.of };
  if (Math.min(then.length, now.length) < LEAST_SAMPLES) return { ...base, ...nothing, factor };
  const error = Math.hypot(medianError(then), medianError(now));
  const margin = error * studentFactor(then.length + now.length - 2);
  const low = Math.exp(middle - margin);
  const high = Math.exp(middle + margin);
  return { ...base, factor, low, high, verdict: verdictOf(factor, low, high) };
}

function verdictOf(factor: number, low: number, high: number): Verdict {
  if (low > 1 && factor >= 1 + LEAST_CHANGE) return "slower";
  if (high < 1 && factor <= 1 / (1 + LEAST_CHANGE)) return "faster";
  return "same";
}

/** The standard error of a median, from the quartiles: one odd round does not widen it. */
function medianError(samples: readonly number[]): number {
  const width = quantile(samples, 0.75) - quantile(samples, 0.25);
  // A normal distribution's quartiles lie 1.349 deviations apart, and its median errs by
  // sqrt(pi / 2) times as much as its mean.
  return Math.sqrt(Math.PI / 2) * width / 1.349 / Math.sqrt(samples.length);
}

/** How many standard errors Student's distribution asks for, by Cornish and Fisher's series. */
function studentFactor(freedom: number): number {
  const z = DEVIATIONS;
  return z + (z ** 3 + z) / (4 * freedom) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2);
}

function versionsOf(...runs: readonly [SavedRun, SavedRun]): string | null {
  const [then, now] = runs.map(({ machine: { loadslots, commit } }) =>
    `loadslots ${say(loadslots)}, commit ${say(commit)}`
  );
  return then === now ? null : `${then} before; ${now} now`;
}

function say(value: string | number | null | undefined): string {
  return String(value ?? "unknown");
}

/** What makes runs hard to compare, in the order of how much it matters. */
function differencesOf(before: SavedRun, after: SavedRun): string[] {
  const keys = [
    ["processor", "processor"],
    ["cores", "cores"],
    ["architecture", "architecture"],
    ["kernel", "Linux"],
    ["deno", "Deno"],
    ["v8", "V8"],
    ["python", "Python"],
    ["compiler", "C compiler"],
  ] as const;
  const differing = keys.flatMap(([key, name]) => {
    const [then, now] = [say(before.machine[key]), say(after.machine[key])];
    return then === now ? [] : [`${name}: ${then} before, ${now} now`];
  });
  const quick = [["before", before.quick], ["now", after.quick]].filter(([, is]) => is)
    .map(([when]) => `quick ${when}: its figures mean little`);
  const loads = [before, after].map(({ machine }) => machine.loadBefore ?? 0);
  const cores = after.machine.cores ?? 1;
  const busy = Math.max(...loads) > cores / 2
    ? [`busy machine: load ${loads.map((load) => load.toFixed(1)).join(" before, ")} now`]
    : [];
  return [...differing, ...quick, ...busy];
}
