/** A run as JSON: what `--json` writes, and what `--compare` and `--charts` read. */

import { growthOf } from "./growth.ts";
import type { Machine } from "./machine.ts";
import { type GrowthPoint, type Section, type Unit, verdictsOf } from "./results.ts";
import { spreadOf } from "./statistics.ts";

/** A case as it was saved. */
export interface SavedCase {
  readonly section: string;
  readonly name: string;
  readonly unit: Unit;
  /** Samples, one for each round. */
  readonly series: Readonly<Record<string, readonly number[]>>;
  readonly ratios: Readonly<Record<string, readonly number[]>>;
  /** `undefined` for a case that is no point of a curve. */
  readonly growth?: GrowthPoint;
}

/** A run as it was saved. An older one knows less of its machine. */
export interface SavedRun {
  readonly machine: Readonly<Partial<Machine>>;
  readonly quick: boolean;
  readonly results: readonly SavedCase[];
}

/** What was measured, with what it comes to, as JSON. */
export function runToJson(machine: Machine, sections: readonly Section[], quick: boolean): string {
  const results = sections.flatMap(({ title, results }) =>
    results.map((result) => ({
      section: title,
      ...result,
      spreads: Object.fromEntries(
        Object.entries({ ...result.series, ...result.ratios })
          .map(([name, samples]) => [name, spreadOf(samples)]),
      ),
      verdicts: verdictsOf(result),
    }))
  );
  return `${JSON.stringify({ machine, quick, results, growth: growthOf(results) }, null, 2)}\n`;
}

/**
 * Reads a run.
 *
 * @param json The text.
 * @param name What it is called in errors.
 * @throws {TypeError} If this is no run.
 */
export function runFromJson(json: string, name: string): SavedRun {
  const refuse = (reason: string) => new TypeError(`Cannot read the run ${name}: ${reason}`);
  let run: unknown;
  try {
    run = JSON.parse(json);
  } catch {
    throw refuse("not JSON");
  }
  if (!isRecord(run) || !isRecord(run.machine) || !Array.isArray(run.results)) {
    throw refuse("no machine or no results");
  }
  const results = run.results.map((one: unknown, n): SavedCase => {
    if (!isRecord(one)) throw refuse(`result ${n} is no object`);
    const { section, name, unit, series, ratios, growth } = one;
    if (typeof section !== "string" || typeof name !== "string") {
      throw refuse(`result ${n} has no name`);
    }
    if (unit !== "ns" && unit !== "bytes") throw refuse(`${name} has no unit`);
    if (!areSamples(series) || !areSamples(ratios)) throw refuse(`${name} has no samples`);
    const saved = { section, name, series: finite(series), ratios: finite(ratios) };
    return { ...saved, unit, ...(isGrowthPoint(growth) ? { growth } : {}) };
  });
  return { machine: run.machine, quick: run.quick === true, results };
}

/** Samples as they come out of JSON, which has `null` for what is no number. */
type Samples = Readonly<Record<string, readonly (number | null)[]>>;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function areSamples(value: unknown): value is Samples {
  return isRecord(value) && Object.values(value).every((samples) =>
    Array.isArray(samples) &&
    samples.every((sample) => sample === null || typeof sample === "number")
  );
}

function isGrowthPoint(value: unknown): value is GrowthPoint {
  return isRecord(value) && typeof value.kind === "string" && typeof value.value === "number" &&
    (value.axis === "ranks" || value.axis === "bytes" || value.axis === "readers");
}

function finite(samples: Samples): Record<string, number[]> {
  return Object.fromEntries(
    Object.entries(samples).map(([name, all]) => [name, all.filter((one) => one !== null)]),
  );
}
