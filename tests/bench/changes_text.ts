/** A comparison of two runs as text. */

import type { Change, Comparison, Verdict } from "./changes.ts";
import { lines } from "./table.ts";

/** Renders what became slower, what faster, and what cannot be told. */
export function renderComparison(comparison: Comparison): string {
  const { versions, differences, changes, onlyBefore, onlyAfter } = comparison;
  const of = (verdict: Verdict) => changes.filter((change) => change.verdict === verdict);
  const slower = of("slower").toSorted((a, b) => b.factor - a.factor);
  const faster = of("faster").toSorted((a, b) => a.factor - b.factor);
  return [
    "Compared with the earlier run",
    "",
    versions === null ? "Same version of loadslots." : `Versions: ${versions}`,
    ...(differences.length === 0 ? ["Same machine."] : [
      "NOT THE SAME in both runs, which changes figures by itself:",
      ...differences.map((difference) => `  ${difference}`),
    ]),
    "",
    ...tableOf("Slower", slower),
    ...tableOf("Faster", faster),
    `${slower.length} slower, ${faster.length} faster, ${of("same").length} within the noise, ` +
    `${of("unclear").length} with too few samples`,
    ...listOf("  too few samples", of("unclear").map(({ name }) => name)),
    ...listOf("  only in the earlier run", onlyBefore),
    ...listOf("  only in this run", onlyAfter),
    "",
  ].join("\n");
}

function tableOf(title: string, changes: readonly Change[]): string[] {
  if (changes.length === 0) return [];
  const rows = changes.map(({ name, factor, low, high, by }) => [
    name,
    `${factor.toFixed(2)}x`,
    `${low.toFixed(2)}..${high.toFixed(2)}`,
    by,
  ]);
  return [`${title}:`, "", ...lines([["case", "cost now", "noise leaves", "by"], ...rows]), ""];
}

function listOf(title: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${title}: ${names.join("; ")}`];
}
