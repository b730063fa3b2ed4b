/** Which engine a command looks at: a real one that its flags name, or a simulated one of its own. */

import { ShmLoadSnapshotReader, shmPathFor, SlotFileError } from "../mod.ts";
import { numberFlag, slotPathFlag, UsageError } from "./command_line.ts";
import { SimulatedEngine } from "./engine.ts";
import { explain } from "./terminal/slot_view.ts";

/** The flags that choose the engine. */
export const ENGINE_FLAGS = { "instance-id": "string", path: "string", ranks: "string" } as const;

/** What a command's help says of {@linkcode ENGINE_FLAGS}. */
export const ENGINE_USAGE = `\
  --instance-id X   show the engine with this instance id
  --path P          show the engine that publishes to this slot file
  --ranks N         ranks of the simulated engine, 1 to 512 (default 8)`;

/** The values of {@linkcode ENGINE_FLAGS}. */
export type EngineFlagValues = {
  readonly [Name in keyof typeof ENGINE_FLAGS]?: string | undefined;
};

/** What the flags ask for. */
export interface ChosenEngine {
  /** The slot file of a real engine, or `null` for a simulated one. */
  readonly path: string | null;
  /** Ranks of the simulated one. */
  readonly ranks: number;
}

/** The simulated engine has some past when it is first shown; the more ranks, the less. */
const WARM_UP_RANK_MS = 800_000;

/** @throws {UsageError} If they contradict each other, or one is out of range. */
export function chosenEngine(flags: EngineFlagValues): ChosenEngine {
  const path = slotPathFlag(flags);
  if (path !== null && flags.ranks !== undefined) {
    throw new UsageError("--ranks is for the simulated engine; a real one says how many it has");
  }
  const range = { low: 1, high: 512, whole: true };
  return { path, ranks: numberFlag("ranks", flags.ranks, range, 8) };
}

/** A path for an engine of one's own, as random as an instance id: two of us do not meet. */
export function ownPath(): string {
  return shmPathFor(crypto.randomUUID().replaceAll("-", "").slice(0, 12));
}

/** A simulated engine that has run for a while. It removes its file when it is disposed of. */
export function ownEngine(path: string, ranks: number): SimulatedEngine {
  const warmUpMs = Math.min(100_000, WARM_UP_RANK_MS / ranks);
  const engine = SimulatedEngine.publishingTo(path, {
    dpSize: ranks,
    startMs: Date.now() - warmUpMs,
  });
  engine.step(warmUpMs);
  return engine;
}

/** @throws {Error} In words for the user, if what is at the path is not to be read. */
export function openReader(path: string): ShmLoadSnapshotReader {
  try {
    return new ShmLoadSnapshotReader(path);
  } catch (error) {
    if (!(error instanceof SlotFileError)) throw error;
    throw new Error(explain(error), { cause: error });
  }
}

/** Runs the engine for as long as the work takes. Whichever fails ends the other. */
export async function whileRunning(
  engine: SimulatedEngine,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const ended = new AbortController();
  const both = AbortSignal.any([signal, ended.signal]);
  const running = engine.run({ signal: both }).finally(() => ended.abort());
  running.catch(() => {}); // it is told below, when the work is in order again
  try {
    return await work(both);
  } finally {
    ended.abort();
    await running;
  }
}
