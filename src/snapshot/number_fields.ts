/** All numbers of a load, as metrics name and describe them. */

import { CORE_FIELDS, type FieldSpec, SECTIONS } from "./fields.ts";
import type { LoadSnapshot } from "./load_snapshot.ts";

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
