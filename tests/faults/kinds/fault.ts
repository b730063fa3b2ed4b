/** What a kind of fault is, and what many of them are made of. */

import type { Random } from "../../../examples/engine/random.ts";
import { sleep } from "../../support/wait.ts";
import type { Stage } from "../stage.ts";

/** One kind of fault. Whatever it breaks, it mends, and then waits until all is followed again. */
export interface FaultKind {
  readonly name: string;
  /** How often it comes, beside the others of its lane. */
  readonly weight: number;
  /** Why it cannot be done here, or `null`. */
  whyNot?(stage: Stage): string | null;
  run(stage: Stage, random: Random): Promise<void>;
}

/** Picks one. */
export function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[random.index(items.length)]!;
}

/** Kills somebody, and after a while starts the next one. */
export async function killAndRestart(stage: Stage, random: Random, name: string): Promise<void> {
  await sleep(random.between(0, 40));
  await stage.kill(name);
  await sleep(random.chance(0.5) ? 0 : random.between(0, 500));
  await stage.start(name);
}

/** Stops somebody, and lets it go on. */
export async function stopAndContinue(stage: Stage, name: string, ms: number): Promise<void> {
  await sleep(Math.min(ms, 20));
  const actor = stage.actor(name);
  actor.signal("SIGSTOP");
  try {
    await sleep(ms);
  } finally {
    actor.signal("SIGCONT");
  }
}

/** SGLang's writers go on with a file that has no name any more: an engine is restarted then. */
export async function restartSglangWriters(stage: Stage): Promise<void> {
  if (stage.options.peers === null) return;
  const writers = stage.writersOf("alpha").slice(0, 2);
  await Promise.all(writers.map((name) => stage.kill(name)));
  await Promise.all(writers.map((name) => stage.start(name)));
}
