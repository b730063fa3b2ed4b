/** What can be said of a collector at a moment: its ranks, how often they push, what is wrong. */

import type {
  WorkerFailedError,
  ZmqShmLoadSnapshotReader,
  ZmqShmLoadSnapshotReaderStats,
} from "../../mod.ts";
import type { SlotView } from "../terminal/slot_view.ts";
import { age } from "../terminal/text.ts";

/** The rate is that of the last seconds, so that it neither jumps nor lags. */
const RATE_WINDOW_MS = 2_000;
const SHORTEST_WINDOW_MS = 250;

/** Why messages were refused, in words for who looks at the table. */
const REFUSALS = {
  refusedSize: "empty or longer than a slot",
  refusedMultipart: "of several parts",
  refusedSchema: "no load snapshot",
  refusedRank: "of a rank that is not in the group: is --ranks right?",
} as const satisfies Partial<Record<keyof ZmqShmLoadSnapshotReaderStats, string>>;

/** Watches one collector. */
export class CollectorWatch {
  readonly #reader: ZmqShmLoadSnapshotReader;
  #samples: { readonly atMs: number; readonly received: number }[] = [];
  #failure: WorkerFailedError | null = null;

  /** @param reader The collector; it stays its owner's. */
  constructor(reader: ZmqShmLoadSnapshotReader) {
    this.#reader = reader;
    void reader.closed.then((reason) => {
      this.#failure = reason;
    });
  }

  /** How many ranks were heard so far. */
  get heard(): number {
    return this.#reader.health().filter(({ state }) => state === "live").length;
  }

  /** Notes how much has arrived. */
  poll(): void {
    const atMs = performance.now();
    this.#samples.push({ atMs, received: this.#reader.stats().received });
    while (this.#samples[0]!.atMs < atMs - RATE_WINDOW_MS) this.#samples.shift();
  }

  /** @returns The collector as it is now. */
  view(): SlotView {
    const rows = this.#reader.health().map((health) => ({
      ...health,
      load: this.#reader.read(health.dpRank),
    }));
    return {
      path: `${this.#reader.endpoint} -> ${this.#reader.path}`,
      rows,
      publicationsPerSecond: this.#rate(),
      trouble: this.#trouble(rows),
    };
  }

  #rate(): number | null {
    const first = this.#samples[0];
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined) return null;
    const ms = last.atMs - first.atMs;
    return ms < SHORTEST_WINDOW_MS ? null : (last.received - first.received) / ms * 1000;
  }

  #trouble(rows: SlotView["rows"]): string | null {
    if (this.#failure !== null) return `${this.#failure.message}; these are the last values`;
    const stats = this.#reader.stats();
    const refused = Object.entries(REFUSALS)
      .map(([name, why]) => ({ why, count: stats[name as keyof typeof REFUSALS] }))
      .filter(({ count }) => count > 0);
    if (refused.length > 0) {
      return `Messages were refused: ${
        refused.map(({ count, why }) => `${count} ${why}`).join(", ")
      }`;
    }
    if (stats.received === 0) return `Nobody has pushed to ${this.#reader.endpoint} yet`;
    if (rows.some(({ state }) => state === "live")) return null;
    const youngest = Math.min(...rows.map(({ ageMs }) => ageMs ?? Infinity));
    return `Nothing has arrived for ${age(youngest)}`;
  }
}
