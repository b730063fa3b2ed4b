/** How the cost of one snapshot grows with its size, from a few keys to thousands of bytes. */

import { encodeLoadSnapshot } from "../../mod.ts";
import type { BenchContext, Pace } from "./bench_context.ts";
import { COLUMNS, compare } from "./compare.ts";
import { type Course, loadsOf } from "./payloads.ts";
import type { Result, Section } from "./results.ts";

/** The last comes close to what a slot of 16 KiB holds. */
const COURSES: readonly Course[] = ["few-keys", "moments-0", "moments-160", "moments-1600"];

/** The kinds of a case: its name in the table, and its name for the sides. */
const KINDS = [
  { name: "decode, changed in values only", id: "decode", needsSlotFile: false },
  { name: "encode, changed in values only", id: "encode", needsSlotFile: false },
  { name: "write of one rank", id: "write", needsSlotFile: true },
  { name: "read of one rank, changed", id: "read-changed", needsSlotFile: true },
] as const;

/** Runs the cases that were asked for. */
export async function sizeSuite(context: BenchContext): Promise<Section | null> {
  const { pace } = context;
  // A slope takes all of its points together: each needs fewer samples than a figure by itself.
  const shorter: Pace = {
    ...pace,
    rounds: Math.min(pace.rounds, 7),
    roundMs: Math.ceil(pace.roundMs / 2),
    warmMs: Math.ceil(pace.warmMs / 2),
  };
  const results: Result[] = [];
  for (const kind of KINDS) {
    for (const course of COURSES) {
      const bytes = meanSize(course);
      const name = `${kind.name}, ${bytes} bytes`;
      if (!context.wants(name)) continue;
      const growth = { kind: kind.name, axis: "bytes", value: bytes } as const;
      const compared = { ...kind, name, course, ranks: 1, targets: [], growth };
      results.push(await compare({ ...context, pace: shorter }, compared));
    }
  }
  if (results.length === 0) return null;
  return {
    title: "Size of a snapshot",
    ...COLUMNS,
    results,
    notes: ["beyond some 500 bytes it is decode_moments that grows, 9 bytes a number."],
  };
}

function meanSize(course: Course): number {
  const sizes = loadsOf(0, course).map((load) => encodeLoadSnapshot(load).length);
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / sizes.length);
}
