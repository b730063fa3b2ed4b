/** Loads as `GET /v1/loads?format=prometheus` shows them. */

import { CORE_FIELDS, type FieldSpec, SECTIONS } from "../snapshot/fields.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import type { Sections } from "./load_json.ts";

/** One value of a load that is a number, and what its metric is called after the prefix. */
export interface NumberField {
  readonly metric: string;
  readonly spec: FieldSpec;
  /** The section's place in the table; `null` for core values. */
  readonly section: number | null;
  /** Its value, or `null` if the rank does not send that section. */
  valueIn(load: LoadSnapshot): number | null;
}

/** All numbers of a load, in the table's order. The rank is each metric's label, not one itself. */
export const NUMBER_FIELDS: readonly NumberField[] = [
  ...numbersOf(CORE_FIELDS, null, "", (load) => load),
  ...SECTIONS.flatMap(({ name, include, fields }, section) =>
    numbersOf(fields, section, `${include}_`, (load) => load[name])
  ),
];

/** Shows loads by SGLang's rules: gauges that are called `sglang_...`, one sample for each rank. */
export function prometheusText(loads: readonly LoadSnapshot[], sections: Sections): string {
  const lines: string[] = [];
  for (const { metric, section, valueIn } of NUMBER_FIELDS) {
    if (section !== null && (sections & (1 << section)) === 0) continue;
    let hasType = false;
    for (const load of loads) {
      const value = valueIn(load);
      if (value === null) continue;
      if (!hasType) lines.push(`# TYPE sglang_${metric} gauge`);
      hasType = true;
      lines.push(`sglang_${metric}{dp_rank="${load.dpRank}"} ${sampleText(value)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function numbersOf(
  fields: readonly FieldSpec[],
  section: number | null,
  prefix: string,
  valuesOf: (load: LoadSnapshot) => object | null,
): NumberField[] {
  return fields
    .filter(({ type, wire }) => (type === "int" || type === "float") && wire !== "dp_rank")
    .map((spec) => ({
      metric: `${prefix}${spec.wire}`,
      spec,
      section,
      valueIn: (load) =>
        // The table has the name, and says that it is a number.
        (valuesOf(load) as Readonly<Record<string, number>> | null)?.[spec.name] ?? null,
    }));
}

function sampleText(value: number): string {
  if (Number.isFinite(value)) return `${value}`;
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
