/** What must hold of everything that a reader says of one engine. */

import type { LoadReader, LoadSnapshot, RankHealth } from "../../../mod.ts";
import { isBlank, PublicationCheck, publicationOf } from "../publication.ts";
import type { Tally } from "./lines.ts";
import type { Reached, SourceOrder } from "./orders.ts";

const STALE_AFTER_MS = 10_000;
/** A timestamp further ahead than this is none. */
const AHEAD_MS = 1000;
/**
 * Ages are told in ticks of the kernel's coarse clock, and between two looks at the wall clock. On two
 * cores that twenty processes wanted, ticks came up to 30 ms late.
 */
const AGE_SLACK_MS = 60;
/** A look that took longer says nothing about ages. */
const LONG_LOOK_MS = 50;

/** Who is told. */
export interface Told {
  broken(invariant: string, detail: string): void;
  followed(ms: number): void;
}

interface Rank {
  readonly check: PublicationCheck;
  /** When the newest snapshot was seen first, and when it was not there yet, by our clock. */
  seenAtMs: number;
  unseenAtMs: number;
}

/** Checks one engine. */
export class SourceCheck {
  readonly #order: SourceOrder;
  readonly #reader: LoadReader;
  readonly #states: Tally;
  readonly #told: Told;
  #ranks: Rank[] = [];
  // Of ranks that a restart took away.
  #seenBefore = 0;
  #lateBefore = 0;
  #dpSize: number | null = null;
  #lastLookMs = performance.now();

  constructor(order: SourceOrder, reader: LoadReader, states: Tally, told: Told) {
    this.#order = order;
    this.#reader = reader;
    this.#states = states;
    this.#told = told;
  }

  /** How many different snapshots came. */
  get seen(): number {
    return this.#ranks.reduce((sum, { check }) => sum + check.seen, this.#seenBefore);
  }

  /** How many of them were the last words of a writer that another one had overtaken. */
  get late(): number {
    return this.#ranks.reduce((sum, { check }) => sum + check.late, this.#lateBefore);
  }

  /** How far each rank has come. */
  reached(): Record<string, Reached> {
    const entries: [string, Reached][] = [];
    this.#ranks.forEach(({ check: { newest } }, dpRank) => {
      if (newest === null) return;
      entries.push([`${this.#order.name}/${dpRank}`, [newest.incarnation, newest.number]]);
    });
    return Object.fromEntries(entries);
  }

  /** Takes what the reader says of all ranks. */
  take(loads: readonly LoadSnapshot[]): void {
    this.#followSize();
    const now = performance.now();
    let next = 0;
    for (let dpRank = 0; dpRank < (this.#dpSize ?? 0); dpRank++) {
      const load = loads[next]?.dpRank === dpRank ? loads[next++]! : null;
      this.#takeOf(dpRank, load, now);
    }
    if (next < loads.length) {
      const names = loads.map(({ dpRank }) => dpRank).join(", ");
      this.#told.broken("ranks", `of ${this.#dpSize} ranks it gives ${names}`);
    }
    this.#lastLookMs = now;
  }

  /** Takes what the reader says of one rank. */
  takeOne(dpRank: number, load: LoadSnapshot): void {
    this.#followSize();
    this.#takeOf(dpRank, load, performance.now());
  }

  /** Asks for health, and compares it with what is read before and after. */
  judgeHealth(): void {
    const beforeMs = Date.now();
    const first = this.#reader.readAll();
    const health = this.#reader.health();
    const second = this.#reader.readAll();
    const afterMs = Date.now();
    this.take(second);
    const took = afterMs - beforeMs;
    if (took < 0 || took > LONG_LOOK_MS) return;
    for (const rank of health) {
      this.#states.add(rank.state);
      const load = first.find(({ dpRank }) => dpRank === rank.dpRank) ?? null;
      if (load !== (second.find(({ dpRank }) => dpRank === rank.dpRank) ?? null)) continue;
      const fault = this.#faultOf(rank, load, beforeMs, afterMs);
      if (fault !== null) {
        this.#told.broken(
          "age",
          `rank ${rank.dpRank} is ${rank.state}, ${rank.ageMs} ms: ${fault}`,
        );
      }
    }
  }

  #faultOf(rank: RankHealth, load: LoadSnapshot | null, beforeMs: number, afterMs: number) {
    const { state, ageMs } = rank;
    if (load === null || (isBlank(load) && this.#order.endpoint === undefined)) {
      const isUnreported = state === "unreported" || state === "corrupt";
      return isUnreported && ageMs === null ? null : "it has told nothing";
    }
    if (isBlank(load)) return null;
    if (ageMs === null || !(ageMs >= 0)) return "no age";
    if (state !== "corrupt" && this.#order.endpoint === undefined) {
      if (state !== (ageMs > STALE_AFTER_MS ? "stale" : "live")) {
        return "the state is not the age's";
      }
    }
    const fresh = this.#ranks[rank.dpRank];
    const sinceSeenMs = performance.now() - (fresh?.seenAtMs ?? performance.now());
    const sinceUnseenMs = performance.now() - (fresh?.unseenAtMs ?? 0);
    if (this.#order.endpoint !== undefined) {
      // By arrival, which was before it was seen.
      return ageMs < sinceSeenMs - AGE_SLACK_MS ? `seen for ${sinceSeenMs} ms` : null;
    }
    const saidAtMs = publicationOf(load).micros / 1000;
    if (saidAtMs > afterMs + AHEAD_MS + AGE_SLACK_MS) {
      // A timestamp of the future: by when it was first seen.
      return ageMs > sinceUnseenMs + AGE_SLACK_MS ? `unseen until ${sinceUnseenMs} ms ago` : null;
    }
    if (saidAtMs > beforeMs + AHEAD_MS - AGE_SLACK_MS) return null;
    const least = beforeMs - saidAtMs - AGE_SLACK_MS;
    const most = Math.max(0, afterMs - saidAtMs) + AGE_SLACK_MS;
    return ageMs >= least && ageMs <= most ? null : `it should be ${least} to ${most} ms`;
  }

  #takeOf(dpRank: number, load: LoadSnapshot | null, nowMs: number): void {
    const rank = this.#ranks[dpRank] ??= {
      check: new PublicationCheck(this.#order.isRemote),
      seenAtMs: nowMs,
      unseenAtMs: this.#lastLookMs,
    };
    const { check } = rank;
    const { last, newest } = check;
    const fault = check.take(load, dpRank);
    if (fault !== null) this.#told.broken(invariantOf(fault), `rank ${dpRank}: ${fault}`);
    if (check.last === last) return;
    rank.seenAtMs = nowMs;
    rank.unseenAtMs = this.#lastLookMs;
    const now = check.newest;
    if (newest === null || now === null || now.incarnation <= newest.incarnation) return;
    this.#told.followed(performance.timeOrigin + nowMs - now.firstMicros / 1000);
  }

  /** A restart with fewer ranks takes the others away, with what they said. */
  #followSize(): void {
    const { dpSize } = this.#reader;
    if (dpSize === this.#dpSize) return;
    if (dpSize === null) this.#told.broken("ranks", "the number of ranks was lost");
    this.#dpSize = dpSize;
    for (const { check } of this.#ranks.splice(dpSize ?? 0)) {
      this.#seenBefore += check.seen;
      this.#lateBefore += check.late;
    }
  }
}

function invariantOf(fault: string): string {
  if (fault.startsWith("torn")) return "torn";
  return fault.includes("came after") ? "order" : fault.includes("lost") ? "lost" : "ranks";
}
