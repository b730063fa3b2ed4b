/** A reader as the routes ask it: whatever becomes of it, they get an answer. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import { messageOf } from "../errors.ts";
import type { LoadReader } from "../load_reader.ts";
import type { RankHealth } from "../slotfile/rank_health.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";

/** What was asked for, or why it cannot be had. */
export type Asked<Value> =
  | { readonly state: "ok"; readonly value: Value }
  | { readonly state: "failed"; readonly reason: string };

/** Turns what a reader throws, when it was closed or its worker died, into a reason to tell. */
export class GuardedReader {
  readonly #reader: LoadReader;
  #toldReason: string | null = null;

  constructor(reader: LoadReader) {
    this.#reader = reader;
  }

  /** How many ranks the group has, or `null`. */
  get dpSize(): number | null {
    return this.#reader.dpSize;
  }

  /** The newest good snapshots: of all ranks, or of one; none for a rank that the group has not. */
  loads(dpRank: number | null): Asked<readonly LoadSnapshot[]> {
    return this.#ask(() => {
      if (dpRank === null) return this.#reader.readAll();
      const { dpSize } = this.#reader;
      if (dpSize === null || !(dpRank >= 0 && dpRank < dpSize)) {
        // A closed reader has to say so here as well.
        this.#reader.health();
        return [];
      }
      const snapshot = this.#reader.read(dpRank);
      return snapshot === null ? [] : [snapshot];
    });
  }

  /** How far each rank's snapshot can be trusted. */
  health(): Asked<readonly RankHealth[]> {
    return this.#ask(() => this.#reader.health());
  }

  #ask<Value>(question: () => Value): Asked<Value> {
    try {
      const value = question();
      this.#toldReason = null;
      return { state: "ok", value };
    } catch (error) {
      const reason = messageOf(error);
      // Once, and not for each request.
      if (reason !== this.#toldReason) {
        this.#toldReason = reason;
        getLogger(["loadslots", "http"]).warn("Cannot serve load: {reason}", { reason });
      }
      return { state: "failed", reason };
    }
  }
}
