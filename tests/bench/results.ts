/** What a benchmark found: samples by round, ratios, and whether they meet their targets. */

import { median } from "./statistics.ts";

/** What the samples count. */
export type Unit = "ns" | "bytes";

/** What a figure has to reach; it names a ratio or a series. */
export type Target =
  & { readonly of: string }
  & ({ readonly atLeast: number } | { readonly atMost: number });

/** Where a case stands on a curve: the cases of one kind differ in this only. */
export interface GrowthPoint {
  readonly kind: string;
  readonly axis: "ranks" | "bytes" | "readers";
  readonly value: number;
}

/** One case. */
export interface Result {
  readonly name: string;
  readonly unit: Unit;
  /** Samples by series, one for each round; a series that was left out is missing. */
  readonly series: Readonly<Record<string, readonly number[]>>;
  /** Ratios by title, one for each round. */
  readonly ratios: Readonly<Record<string, readonly number[]>>;
  readonly targets: readonly Target[];
  /** Left out of a case that is no point of a curve. */
  readonly growth?: GrowthPoint;
}

/** Cases that share a table. */
export interface Section {
  readonly title: string;
  /** The series and the ratios, in the order of their columns. */
  readonly series: readonly string[];
  readonly ratios: readonly string[];
  readonly results: readonly Result[];
  /** What to know when reading the table. */
  readonly notes: readonly string[];
}

/** A target that was looked at. */
export interface Verdict {
  readonly target: Target;
  /** The median that was found. */
  readonly found: number;
  readonly met: boolean;
}

/** Looks at a case's targets; one whose figure was not measured is left out. */
export function verdictsOf(result: Result): Verdict[] {
  return result.targets.flatMap((target) => {
    const samples = result.ratios[target.of] ?? result.series[target.of];
    if (samples === undefined || samples.length === 0) return [];
    const found = median(samples);
    const met = "atLeast" in target ? found >= target.atLeast : found <= target.atMost;
    return [{ target, found, met }];
  });
}
