/** The script of faults: from one seed always the same kinds, in the same order, with the same numbers. */

import { Random } from "../../examples/engine/random.ts";
import { sleep } from "../support/wait.ts";
import { ALPHA_FAULTS } from "./kinds/alpha.ts";
import { BETA_FAULTS } from "./kinds/beta.ts";
import type { FaultKind } from "./kinds/fault.ts";
import { GAMMA_FAULTS, READER_FAULTS } from "./kinds/gamma.ts";
import type { Stage } from "./stage.ts";

interface Lane {
  readonly kinds: readonly FaultKind[];
  /** The mean time from the end of one fault to the next, in milliseconds. */
  readonly pauseMs: number;
}

/** In each lane one fault comes after the other; lanes do not wait for each other. */
const LANES: readonly Lane[] = [
  { kinds: ALPHA_FAULTS, pauseMs: 1500 },
  { kinds: BETA_FAULTS, pauseMs: 2000 },
  { kinds: GAMMA_FAULTS, pauseMs: 5000 },
  { kinds: READER_FAULTS, pauseMs: 4000 },
];

/** Which script it is. */
export interface Script {
  readonly seed: number;
  /** What the names of faults have to contain. */
  readonly only: string;
}

/** Lets faults happen until the time is over; the last ones are mended by then. */
export async function runFaults(
  stage: Stage,
  { seed, only }: Script,
  isOver: () => boolean,
): Promise<void> {
  const { record } = stage.options;
  await Promise.all(LANES.map(async ({ kinds, pauseMs }, index) => {
    const random = new Random(seed, index);
    const possible = kinds.filter((kind) => {
      if (!kind.name.includes(only)) return false;
      const why = kind.whyNot?.(stage) ?? null;
      if (why !== null) record.leaveOut(`${kind.name}: ${why}`);
      return why === null;
    });
    while (possible.length > 0 && !isOver()) {
      await pause(Math.min(4 * pauseMs, random.exponential(pauseMs)), isOver);
      if (isOver()) return;
      const kind = choose(random, possible);
      record.faults.add(kind.name);
      try {
        await kind.run(stage, random);
      } catch (error) {
        record.breaks("harness", `${kind.name}: ${error instanceof Error ? error.stack : error}`);
      }
    }
  }));
}

async function pause(ms: number, isOver: () => boolean): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end && !isOver()) await sleep(Math.min(200, end - performance.now()));
}

function choose(random: Random, kinds: readonly FaultKind[]): FaultKind {
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0);
  let at = random.uniform() * total;
  for (const kind of kinds) {
    at -= kind.weight;
    if (at < 0) return kind;
  }
  return kinds.at(-1)!;
}
