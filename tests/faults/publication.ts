/**
 * Publications that say whether they are whole: each number of a payload follows from which
 * publication it is, so that any mixture of two of them shows. publication.py makes the same ones.
 */

import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";

/** What a publication is told apart by. */
export interface Publication {
  readonly dpRank: number;
  /** Which of the processes that ever wrote this rank wrote it, from 1; no two of them wrote at once. */
  readonly incarnation: number;
  /** Counts what that process published, from 1. */
  readonly number: number;
  /** What the payload's timestamp says, in microseconds; a fault may have it wrong. */
  readonly micros: number;
  /** When the process published first, in microseconds of the true clock. */
  readonly firstMicros: number;
}

const PRIME = 2_147_483_647;

/** The number that stands for a whole publication. */
function checkValue(publication: Publication): number {
  const { dpRank, incarnation, number, micros, firstMicros } = publication;
  let check = 7;
  for (const value of [dpRank, incarnation, number, micros, firstMicros]) {
    check = (check * 31 + value) % PRIME;
  }
  return check;
}

const NO_TAIL = { extra: null, missing: 0 };

/** The snapshot of a publication. Length and sections change from one to the next. */
export function snapshotOf(publication: Publication): LoadSnapshot {
  const { dpRank, incarnation, number, micros, firstMicros } = publication;
  const check = checkValue(publication);
  return createLoadSnapshot({
    timestamp: micros / 1e6,
    dpRank,
    numRunningReqs: number,
    numWaitingReqs: incarnation,
    numUsedTokens: check,
    numTotalTokens: check + 1,
    numActiveTokens: firstMicros,
    maxTotalNumTokens: check + 2,
    tokenUsage: (check % 1000) / 1024,
    decodeMoments: number % 8 === 0 ? null : new Array<number>(number % 8).fill(check + 0.5),
    memory: number % 3 === 1
      ? {
        weightGb: check + 0.25,
        kvCacheGb: number + 0.25,
        graphGb: 0.25,
        tokenCapacity: check,
        ...NO_TAIL,
      }
      : null,
    queues: number % 2 === 1
      ? {
        waiting: number,
        grammar: incarnation,
        paused: check,
        retracted: 0,
        preallocReady: check,
        ...NO_TAIL,
      }
      : null,
  });
}

/** What a snapshot says that it is; whether that is true, {@linkcode isWhole} tells. */
export function publicationOf(load: LoadSnapshot): Publication {
  return {
    dpRank: load.dpRank,
    incarnation: load.numWaitingReqs,
    number: load.numRunningReqs,
    micros: Math.round(load.timestamp * 1e6),
    firstMicros: load.numActiveTokens,
  };
}

/** Whether a snapshot is what a writer publishes before it has measured anything. */
export function isBlank(load: LoadSnapshot): boolean {
  return load.timestamp === 0 &&
    JSON.stringify(load) === JSON.stringify(createLoadSnapshot({ dpRank: load.dpRank }));
}

/** Whether a snapshot is one publication, and nothing of another one. */
export function isWhole(load: LoadSnapshot): boolean {
  return JSON.stringify(load) === JSON.stringify(snapshotOf(publicationOf(load)));
}

/** Watches what a reader says of one rank. */
export class PublicationCheck {
  /** The newest publication that was seen, or `null`. */
  newest: Publication | null = null;
  /** How many different snapshots came. */
  seen = 0;
  /** How often a writer's first words came after those of the one that followed it. */
  late = 0;
  #last: LoadSnapshot | null = null;
  readonly #newestOf: Map<number, number> | null;

  /**
   * @param mayOvertake Whether a dead writer's last words may still be on their way when the next
   *   writer speaks, as over a network: then only what each of them says has to be in order.
   */
  constructor(mayOvertake: boolean) {
    this.#newestOf = mayOvertake ? new Map() : null;
  }

  /** The snapshot that came last. */
  get last(): LoadSnapshot | null {
    return this.#last;
  }

  /**
   * Takes what the reader says now.
   *
   * @returns What is wrong with it, or `null`.
   */
  take(load: LoadSnapshot | null, dpRank: number): string | null {
    const last = this.#last;
    if (load === last) return null;
    if (load === null) return "the last good value was lost";
    this.#last = load;
    this.seen++;
    if (load.dpRank !== dpRank) return `rank ${dpRank} says that it is rank ${load.dpRank}`;
    if (isBlank(load)) return null;
    if (!isWhole(load)) return `torn: ${JSON.stringify(load)}`;
    const now = publicationOf(load);
    const fault = this.#newestOf === null
      ? this.#checkOrder(now)
      : this.#checkOrderOfEach(now, this.#newestOf);
    this.newest = now;
    return fault;
  }

  #checkOrder(now: Publication): string | null {
    const before = this.newest;
    if (before === null || now.incarnation > before.incarnation) return null;
    const isNewer = now.incarnation === before.incarnation && now.number >= before.number;
    return isNewer ? null : `${nameOf(now)} came after ${nameOf(before)}`;
  }

  #checkOrderOfEach(now: Publication, newestOf: Map<number, number>): string | null {
    const before = newestOf.get(now.incarnation) ?? 0;
    if (this.newest !== null && now.incarnation < this.newest.incarnation) this.late++;
    newestOf.set(now.incarnation, Math.max(before, now.number));
    // Those long dead do not speak any more.
    newestOf.delete(now.incarnation - 100);
    if (now.number >= before) return null;
    return `${nameOf(now)} came after number ${before} of the same writer`;
  }
}

function nameOf({ incarnation, number }: Publication): string {
  return `number ${number} of writer ${incarnation}`;
}
