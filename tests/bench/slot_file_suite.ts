/** The slot file: write, read and readAll beside SGLang's own writer and reader. */

import type { BenchContext } from "./bench_context.ts";
import { COLUMNS, compare, type ComparedCase, OF_LIMIT, TIMES_AS_FAST } from "./compare.ts";
import { loadsOf, otherLengthShare } from "./payloads.ts";
import type { Result, Section, Target } from "./results.ts";

const RANKS = [1, 8, 64, 512, 1_024] as const;

const FOUR_TIMES: Target = { of: TIMES_AS_FAST, atLeast: 4 };
const TWELVE_TIMES: Target = { of: TIMES_AS_FAST, atLeast: 12 };
const TWICE_THE_LIMIT: Target = { of: OF_LIMIT, atMost: 2 };

/** The kinds of a case: its name in the table, its name for the sides, its targets. */
const KINDS: readonly (readonly [name: string, id: string, targets: readonly Target[]])[] = [
  ["write", "write", [FOUR_TIMES, TWICE_THE_LIMIT]],
  ["read, changed", "read-changed", [FOUR_TIMES]],
  ["read, unchanged", "read-unchanged", [TWELVE_TIMES]],
  ["readAll, changed", "read-all-changed", [FOUR_TIMES]],
  ["readAll, unchanged", "read-all-unchanged", [TWELVE_TIMES]],
];

const CASES: readonly ComparedCase[] = [
  ...KINDS.flatMap(([name, id, targets]) =>
    RANKS.map((ranks): ComparedCase => ({
      name: `${name}, ${ranks} ${ranks === 1 ? "rank" : "ranks"}`,
      id,
      ranks,
      course: "trace",
      needsSlotFile: true,
      targets,
      growth: { kind: name, axis: "ranks", value: ranks },
    }))
  ),
  // What it would be if no publication ever had other keys or widths than the one before.
  ...[8, 512].map((ranks): ComparedCase => ({
    name: `readAll, changed in values only, ${ranks} ranks`,
    id: "read-all-changed",
    ranks,
    course: "steady",
    needsSlotFile: true,
    targets: [],
  })),
];

/** Runs the cases that were asked for. */
export async function slotFileSuite(context: BenchContext): Promise<Section | null> {
  const results: Result[] = [];
  for (const compared of CASES.filter(({ name }) => context.wants(name))) {
    results.push(await compare(context, compared));
  }
  if (results.length === 0) return null;
  const share = otherLengthShare(loadsOf(0, "trace"));
  return {
    title: "Slot file",
    ...COLUMNS,
    results,
    notes: [
      "limit in C: the same work without a language around it; reads take no lock there;",
      "changed: plain bytes were put into every slot that is read, before each call and untimed;",
      `${(share * 100).toFixed(0)} % of the publications have another length than the one before.`,
    ],
  };
}
