/** How cost grows along ranks, bytes or readers: the fitted slope of each curve. */

import type { GrowthPoint, Unit } from "./results.ts";
import { median, type Spread, spreadOf } from "./statistics.ts";
import { amount, lines, short } from "./table.ts";

/** What growth is found in. */
export interface Grown {
  readonly unit: Unit;
  readonly series: Readonly<Record<string, readonly number[]>>;
  readonly growth?: GrowthPoint;
}

/** One curve: one side of one kind of case. */
export interface Growth {
  readonly kind: string;
  readonly axis: GrowthPoint["axis"];
  readonly side: string;
  readonly unit: Unit;
  /** The medians, by what they are plotted over. */
  readonly points: readonly (readonly [value: number, cost: number])[];
  /** The slope on two logarithmic axes, round by round: 0 costs the same everywhere, 1 grows alike. */
  readonly exponent: Spread;
  /** `fixed + perUnit * value`, fitted so that each point counts by its relative error. */
  readonly fixed: number;
  readonly perUnit: number;
}

type Point = readonly [value: number, cost: number];

/** A slope needs so many points. */
const LEAST_POINTS = 3;

/** Finds the curves, in the order of their first points. */
export function growthOf(results: readonly Grown[]): Growth[] {
  const kinds = Map.groupBy(
    results.filter(({ growth }) => growth !== undefined),
    ({ growth }) => `${growth!.axis} ${growth!.kind}`,
  );
  return Array.from(kinds.values(), (cases) => {
    const { kind, axis } = cases[0]!.growth!;
    const ordered = cases.toSorted((a, b) => a.growth!.value - b.growth!.value);
    const sides = new Set(ordered.flatMap(({ series }) => Object.keys(series)));
    return Array.from(sides, (side): Growth | null => {
      const there = ordered.filter(({ series }) => (series[side]?.length ?? 0) > 0);
      const along = (cost: (samples: readonly number[]) => number): Point[] =>
        there.map(({ growth, series }) => [growth!.value, cost(series[side]!)]);
      const points = along(median);
      const rounds = Math.min(...there.map(({ series }) => series[side]!.length));
      const exponents = Array.from(
        { length: rounds },
        (_, round) => exponentOf(along((samples) => samples[round]!)),
      ).filter(Number.isFinite);
      if (points.length < LEAST_POINTS || exponents.length === 0) return null;
      const exponent = spreadOf(exponents);
      return { kind, axis, side, unit: there[0]!.unit, points, exponent, ...lineOf(points) };
    }).filter((growth) => growth !== null);
  }).flat();
}

/** The slope of logarithm over logarithm by least squares; points at 0 have none and are left out. */
export function exponentOf(points: readonly Point[]): number {
  const logs = points.filter(([value, cost]) => value > 0 && cost > 0)
    .map(([value, cost]) => [Math.log(value), Math.log(cost), 1] as const);
  return logs.length < 2 ? NaN : leastSquares(logs).perUnit;
}

/** The line by least squares of relative errors. */
export function lineOf(points: readonly Point[]): { fixed: number; perUnit: number } {
  return leastSquares(
    points.filter(([, cost]) => cost > 0).map(([value, cost]) =>
      [value, cost, cost ** -2] as const
    ),
  );
}

function leastSquares(
  points: readonly (readonly [x: number, y: number, weight: number])[],
): { fixed: number; perUnit: number } {
  const sum = (of: (x: number, y: number) => number) =>
    points.reduce((total, [x, y, weight]) => total + weight * of(x, y), 0);
  const all = sum(() => 1);
  const middleX = sum((x) => x) / all;
  const middleY = sum((_, y) => y) / all;
  const perUnit = sum((x, y) => (x - middleX) * (y - middleY)) / sum((x) => (x - middleX) ** 2);
  return { fixed: middleY - perUnit * middleX, perUnit };
}

/** Renders the curves as a section of the report; "" if there is none. */
export function renderGrowth(growths: readonly Growth[]): string {
  if (growths.length === 0) return "";
  const rows = growths.map(({ kind, axis, side, unit, points, exponent, fixed, perUnit }) => [
    kind,
    side,
    `${Math.round(points[0]![0])}..${Math.round(points.at(-1)![0])} ${axis}`,
    `${exponent.median.toFixed(2)} (${exponent.low.toFixed(2)}..${exponent.high.toFixed(2)})`,
    Math.abs(perUnit) < 10 ? `${short(perUnit)} ${unit}` : amount(perUnit, unit),
    amount(fixed, unit),
    "",
  ]);
  return [
    "How cost grows",
    "",
    ...lines([["case", "side", "from..to", "exponent", "of each", "fixed", ""], ...rows]),
    "  exponent: the slope on two logarithmic axes, with its quartiles over the rounds: 0 is a cost",
    "  that stays, 1 one that grows with the ranks, bytes or readers (0 readers are left out of it);",
    "  of each and fixed: the straight line through the same points, by relative errors.",
    "",
  ].join("\n");
}
