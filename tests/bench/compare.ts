/** One case, side by side: ours, SGLang's and the limit, each in a process of its own. */

import { fileURLToPath } from "node:url";
import { TempShm } from "../peers/temp_shm.ts";
import { alternate } from "./alternate.ts";
import { type BenchContext, pathIn } from "./bench_context.ts";
import { LIMIT_CASES } from "./limit.ts";
import { type Course, writePublications, writeSlotFile } from "./payloads.ts";
import type { GrowthPoint, Result, Target } from "./results.ts";
import { SideProcess } from "./side_process.ts";
import { ratiosOf } from "./statistics.ts";

/** The names of the series. */
export const OURS = "ours";
export const REFERENCE = "reference";
export const LIMIT = "limit in C";

/** The names of the ratios. */
export const TIMES_AS_FAST = "times as fast";
export const OF_LIMIT = "of the limit";

/** The table's columns. */
export const COLUMNS = {
  series: [OURS, REFERENCE, LIMIT],
  ratios: [TIMES_AS_FAST, OF_LIMIT],
} as const;

/** A case of ours_cases.ts and what to expect of it. */
export interface ComparedCase {
  /** As the table calls it. */
  readonly name: string;
  /** As ours.ts, reference.py and limit.c call it. */
  readonly id: string;
  readonly ranks: number;
  readonly course: Course;
  readonly needsSlotFile: boolean;
  readonly targets: readonly Target[];
  readonly growth?: GrowthPoint;
}

/** Runs one case. */
export async function compare(context: BenchContext, compared: ComparedCase): Promise<Result> {
  const { name, targets, growth } = compared;
  const { pace, progress } = context;
  progress.begin(name);
  await using stack = new AsyncDisposableStack();
  const sides = await startSides(context, compared, stack);
  const series = await alternate(
    sides,
    pace.rounds,
    (round) => progress.step(name, round, pace.rounds),
  );
  const ours = series[OURS]!;
  const limit = series[LIMIT];
  return {
    name,
    unit: "ns",
    series,
    ratios: {
      [TIMES_AS_FAST]: ratiosOf(series[REFERENCE]!, ours),
      ...(limit === undefined ? {} : { [OF_LIMIT]: ratiosOf(ours, limit) }),
    },
    targets,
    ...(growth === undefined ? {} : { growth }),
  };
}

/** Starts the sides, each with a slot file of its own; they warm up one after the other. */
async function startSides(
  context: BenchContext,
  { id, ranks, course, needsSlotFile }: ComparedCase,
  stack: AsyncDisposableStack,
): Promise<Map<string, SideProcess>> {
  const { peers, limit, pace, signal } = context;
  const publications = pathIn(context, `publications-${course}-${ranks}`);
  await writePublications(publications, ranks, course);
  const argsOf = async () => {
    const shm = needsSlotFile ? stack.use(new TempShm()).path : "-";
    if (needsSlotFile) await writeSlotFile(shm, ranks, course);
    return [id, shm, publications, ...[ranks, pace.roundMs, pace.warmMs].map(String)];
  };
  const sides = new Map<string, SideProcess>();
  const start = async (side: string, starting: Promise<SideProcess>) => {
    sides.set(side, stack.use(await starting));
  };
  await start(OURS, SideProcess.startScript("ours.ts", await argsOf(), signal));
  const script = fileURLToPath(new URL("reference.py", import.meta.url));
  // Nothing of the user's own Python settings, and no bytecode in this folder.
  const python = ["-E", "-s", "-B", script, peers.moduleDir, ...await argsOf()];
  await start(REFERENCE, SideProcess.start("reference.py", peers.python, python, signal));
  if (limit.state === "ready" && LIMIT_CASES.has(id)) {
    await start(LIMIT, SideProcess.start("limit", limit.program, await argsOf(), signal));
  }
  return sides;
}
