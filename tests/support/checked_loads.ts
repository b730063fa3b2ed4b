/** Snapshots that say whether they are whole, and whether they went back. */

import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";

/** How the number of decode moments depends on the step; also what Python's write loop is told. */
export const MOMENTS = 7;

/** Every second step is padded to that length, where a test asks for it. */
const LONG = RawMsgpack.from(new Uint8Array(900_000).fill(7));

/**
 * The snapshot of one step, as the driver's write loop makes it: the step's number stands in several
 * places, and the payload's length changes from step to step.
 */
export function stepLoad(step: number, dpRank = 0, isPadded = false): LoadSnapshot {
  return createLoadSnapshot({
    timestamp: Date.now() / 1000,
    dpRank,
    numRunningReqs: step,
    numWaitingReqs: step,
    numTotalTokens: step,
    decodeMoments: new Array<number>(step % (MOMENTS + 1)).fill(step),
    extra: isPadded && step % 2 === 0 ? { pad: LONG } : null,
  });
}

/** Watches the snapshots of one rank. */
export class LoadCheck {
  #last: LoadSnapshot | null = null;
  #seen = 0;

  /** How many different snapshots came. */
  get seen(): number {
    return this.#seen;
  }

  /** The last step. */
  get step(): number | null {
    return this.#last?.numRunningReqs ?? null;
  }

  /**
   * Takes the next snapshot.
   *
   * @throws {Error} If it is torn, or older than the one before, or if there is none any more.
   */
  take(load: LoadSnapshot | null): void {
    const last = this.#last;
    if (load === last) return;
    if (load === null) throw new Error(`step ${last?.numRunningReqs} was lost`);
    const step = load.numRunningReqs;
    const moments = load.decodeMoments ?? [];
    const isWhole = load.numWaitingReqs === step && load.numTotalTokens === step &&
      moments.every((moment) => moment === step) &&
      (load.extra?.["pad"]?.bytes.every((byte, at) => byte === LONG.bytes[at]) ?? true) &&
      (step === 0 || moments.length === step % (MOMENTS + 1));
    if (!isWhole) throw new Error(`torn: ${JSON.stringify(load)}`);
    // A writer that starts publishes a default snapshot, and counts from 1. A reader that attaches
    // the file anew also makes a new object of a snapshot that it had read.
    const goesOn = last === null || step === 0 || load.timestamp > last.timestamp ||
      (load.timestamp === last.timestamp && step >= last.numRunningReqs);
    if (!goesOn) throw new Error(`step ${step} came after ${last?.numRunningReqs}`);
    this.#last = load;
    this.#seen++;
  }
}

/**
 * Reads as fast as can be, but lets other work go on.
 *
 * @returns When `isDone` says so, which is asked now and then.
 */
export async function readHot(read: () => void, isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    const pause = performance.now() + 2;
    while (performance.now() < pause) for (let n = 0; n < 50; n++) read();
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}
