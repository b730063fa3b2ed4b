/** A few figures for many samples. */

/** A median with the quartiles around it. */
export interface Spread {
  readonly low: number;
  readonly median: number;
  readonly high: number;
}

/** The value below which a share of the samples lies, between samples by proportion. */
export function quantile(samples: readonly number[], share: number): number {
  const ordered = samples.toSorted((a, b) => a - b);
  const at = (ordered.length - 1) * share;
  const below = ordered[Math.floor(at)] ?? NaN;
  const above = ordered[Math.ceil(at)] ?? NaN;
  return below + (above - below) * (at - Math.floor(at));
}

/** The median. */
export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

/** The median and the quartiles. */
export function spreadOf(samples: readonly number[]): Spread {
  return { low: quantile(samples, 0.25), median: median(samples), high: quantile(samples, 0.75) };
}

/** Divides round by round: what one round had to suffer, both of its sides had. */
export function ratiosOf(above: readonly number[], below: readonly number[]): number[] {
  return above.map((value, round) => value / (below[round] ?? NaN));
}
