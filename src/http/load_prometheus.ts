/** Loads as `GET /v1/loads?format=prometheus` shows them. */

import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { NUMBER_FIELDS } from "../snapshot/number_fields.ts";
import type { Sections } from "./load_json.ts";

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

function sampleText(value: number): string {
  if (Number.isFinite(value)) return `${value}`;
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
