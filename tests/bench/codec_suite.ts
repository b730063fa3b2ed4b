/** The codec beside msgspec, called from Python as SGLang calls it. */

import type { BenchContext } from "./bench_context.ts";
import { COLUMNS, compare, type ComparedCase, OF_LIMIT, TIMES_AS_FAST } from "./compare.ts";
import type { Result, Section } from "./results.ts";

// Each rank has a decoder and an encoder of its own, and they take turns.
const SHARED = { ranks: 8, needsSlotFile: false } as const;

const CASES: readonly ComparedCase[] = [
  {
    ...SHARED,
    name: "decode, a rank's next publication",
    id: "decode",
    course: "trace",
    targets: [{ of: TIMES_AS_FAST, atLeast: 2 }, { of: OF_LIMIT, atMost: 2.5 }],
  },
  {
    ...SHARED,
    name: "decode, changed in values only",
    id: "decode",
    course: "steady",
    targets: [],
  },
  {
    ...SHARED,
    name: "decodeLoadSnapshot, of any rank",
    id: "decode-once",
    course: "trace",
    targets: [],
  },
  {
    ...SHARED,
    name: "encode, a rank's next publication",
    id: "encode",
    course: "trace",
    targets: [],
  },
  {
    ...SHARED,
    name: "encode, changed in values only",
    id: "encode",
    course: "steady",
    targets: [],
  },
  {
    ...SHARED,
    name: "encodeLoadSnapshot, of any rank",
    id: "encode-once",
    course: "trace",
    targets: [],
  },
];

/** Runs the cases that were asked for. */
export async function codecSuite(context: BenchContext): Promise<Section | null> {
  const results: Result[] = [];
  for (const compared of CASES.filter(({ name }) => context.wants(name))) {
    results.push(await compare(context, compared));
  }
  if (results.length === 0) return null;
  return { title: "Codec", ...COLUMNS, results, notes: [] };
}
