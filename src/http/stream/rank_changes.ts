/** Which rank changed when: what turns "since then" into an event. */

import type { RankHealth } from "../../slotfile/rank_health.ts";
import type { LoadSnapshot } from "../../snapshot/load_snapshot.ts";
import { freshness, isoTime, type LoadJson } from "../load_json.ts";
import { ALL_SECTIONS } from "../load_query.ts";
import { eventText, markText } from "./event_text.ts";

interface RankChange {
  readonly snapshot: LoadSnapshot;
  /** The number of the change that brought it. */
  readonly seq: number;
}

/**
 * The newest snapshot of each rank, and the number of its last change. Whoever was told everything up
 * to some number is told, in one event, what has a higher one: nothing is queued for anybody.
 */
export class RankChanges {
  /** Told apart from the numbers of another run. */
  readonly epoch: string = crypto.randomUUID().replaceAll("-", "").slice(0, 12);
  readonly #json: LoadJson;
  readonly #ranks: (RankChange | null)[] = [];
  #seq = 0;
  #health: readonly RankHealth[] = [];
  #dpSize: number | null = null;
  #states = "";
  #healthSeq = 0;

  constructor(json: LoadJson) {
    this.#json = json;
  }

  /** The number of the newest change. */
  get seq(): number {
    return this.#seq;
  }

  /** Goes up whenever all clients are to be told the ranks' states. */
  get healthSeq(): number {
    return this.#healthSeq;
  }

  /** Takes a rank's snapshot. @returns Whether it is new. */
  put(snapshot: LoadSnapshot, dpRank: number = snapshot.dpRank): boolean {
    if (this.#ranks[dpRank]?.snapshot === snapshot) return false;
    while (this.#ranks.length < dpRank) this.#ranks.push(null);
    this.#ranks[dpRank] = { snapshot, seq: ++this.#seq };
    return true;
  }

  /** Takes how far each rank can be trusted. @returns Whether a state, or their number, is new. */
  putHealth(health: readonly RankHealth[], dpSize: number | null): boolean {
    this.#health = health;
    this.#dpSize = dpSize;
    // Ranks of an engine that came back with fewer.
    if (dpSize !== null && dpSize < this.#ranks.length) this.#ranks.length = dpSize;
    const states = `${dpSize}:${health.map(({ state }) => state[0]).join("")}`;
    if (states === this.#states) return false;
    this.#states = states;
    this.#healthSeq++;
    return true;
  }

  /** Has all clients told the ranks' states though none changed. */
  repeatHealth(): void {
    this.#healthSeq++;
  }

  /** The event with the ranks that changed after `seen`, or with all for -1. */
  loadsEvent(seen: number): string {
    const loads: string[] = [];
    for (let dpRank = 0; dpRank < this.#ranks.length; dpRank++) {
      const rank = this.#ranks[dpRank] ?? null;
      if (rank === null || rank.seq <= seen) continue;
      loads.push(this.#json.freshLoad(rank.snapshot, ALL_SECTIONS, this.#health[dpRank]));
    }
    const data = `{"timestamp":"${isoTime()}","loads":[${loads.join()}]}`;
    return eventText("loads", data, markText(this.epoch, this.#seq));
  }

  /** The event with all ranks' states. */
  healthEvent(): string {
    const ranks = this.#health.map((rank) => `{"dp_rank":${rank.dpRank},${freshness(rank)}}`);
    const data = `{"timestamp":"${isoTime()}","dp_size":${this.#dpSize},"ranks":[${ranks.join()}]}`;
    return eventText("health", data);
  }
}
