/** What can be said of a slot file at a moment: the ranks, how often they publish, what is wrong. */

import { ShmLoadSnapshotReader, type SlotFileError } from "../../mod.ts";
import type { RankRow } from "../terminal_table.ts";
import { age } from "./text.ts";

/** The rate is that of the last seconds, so that it neither jumps nor lags. */
const RATE_WINDOW_MS = 2_000;
const SHORTEST_WINDOW_MS = 250;

/** A slot file at a moment. */
export interface SlotView {
  readonly path: string;
  /** The ranks, in order; none while no engine was seen. */
  readonly rows: readonly RankRow[];
  /** Publications a second that were seen, over all ranks, or `null` while it is too early to say. */
  readonly publicationsPerSecond: number | null;
  /** What is wrong, in a sentence, or `null`. */
  readonly trouble: string | null;
}

/** Watches one slot file. */
export class SlotWatch implements Disposable {
  readonly #reader: ShmLoadSnapshotReader;
  #samples: { readonly atMs: number; readonly publications: number }[] = [];
  #attaches = 0;

  /**
   * @param path The slot file. It need not be there yet.
   * @throws {SlotFileError} If a file is there that cannot be used.
   */
  constructor(path: string) {
    this.#reader = new ShmLoadSnapshotReader(path);
  }

  /** Looks at all ranks. The more often it is called, the fewer publications are overlooked. */
  poll(): void {
    this.#reader.readAll();
    const { attaches, publications } = this.#reader.stats();
    // What stands in a file when it is attached was published before, nobody knows when.
    if (attaches !== this.#attaches) this.#samples = [];
    this.#attaches = attaches;
    const atMs = performance.now();
    this.#samples.push({ atMs, publications });
    while (this.#samples[0]!.atMs < atMs - RATE_WINDOW_MS) this.#samples.shift();
  }

  /** @returns The slot file as it is now. */
  view(): SlotView {
    const rows = this.#reader.health().map((health) => ({
      ...health,
      load: this.#loadOf(health.dpRank),
    }));
    return {
      path: this.#reader.path,
      rows,
      publicationsPerSecond: rows.length === 0 ? null : this.#rate(),
      trouble: troubleOf(this.#reader.fault, rows),
    };
  }

  [Symbol.dispose](): void {
    this.#reader.close();
  }

  #loadOf(dpRank: number): RankRow["load"] {
    try {
      return this.#reader.read(dpRank);
    } catch (error) {
      // The engine was restarted with fewer ranks a moment ago.
      if (error instanceof RangeError) return null;
      throw error;
    }
  }

  #rate(): number | null {
    const first = this.#samples[0];
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined) return null;
    const ms = last.atMs - first.atMs;
    return ms < SHORTEST_WINDOW_MS ? null : (last.publications - first.publications) / ms * 1000;
  }
}

function troubleOf(fault: SlotFileError | null, rows: readonly RankRow[]): string | null {
  if (fault !== null) {
    return rows.length === 0
      ? explain(fault)
      : `The engine is gone or restarts; these are its last values. ${explain(fault)}`;
  }
  const ages = rows.map(({ ageMs }) => ageMs ?? Infinity);
  const silent = rows.length > 0 && rows.every(({ state }) => state === "stale");
  return silent
    ? `The engine is gone or hangs: nothing was published for ${age(Math.min(...ages))}`
    : null;
}

/** @returns Why a slot file cannot be watched, in words for who started the command. */
export function explain(fault: SlotFileError): string {
  switch (fault.reason) {
    case "absent":
      return `No engine publishes at ${fault.path}`;
    case "unfinished":
      return `No engine publishes at ${fault.path} yet: its file is being made`;
    case "permission":
      return `${fault.path} may not be opened: only the user who runs the engine can`;
    case "foreign-owner":
      return `${fault.path} is not opened: it belongs to another user than you and root`;
    default:
      return fault.message;
  }
}
