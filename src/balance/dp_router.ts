/** Hands out ranks by the loads that a reader sees. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import { NoRankAvailableError } from "../errors.ts";
import type { LoadReader, LoadUpdate } from "../load_reader.ts";
import {
  checkOptions,
  type DispatchMethod,
  type DispatchOptions,
  type DpBudgetOptions,
} from "./dispatch_options.ts";
import { DpBudget, type DpBudgetStats } from "./dp_budget.ts";
import type { DispatchExplanation } from "./explanation.ts";

/** Options of {@linkcode DpRouter}. */
export interface DpRouterOptions extends DpBudgetOptions {
  /**
   * How a rank is chosen.
   *
   * @default {"expected_wait"}
   */
  readonly method?: DispatchMethod;
  /**
   * When the loads are read: `"dispatch"`, before a dispatch, as SGLang's controller does;
   * `"watch"`, as soon as they change.
   *
   * @default {"dispatch"}
   */
  readonly refresh?: "dispatch" | "watch";
  /**
   * Loads, and the ranks' health, are not read again within this time, in milliseconds.
   *
   * @default {20}
   */
  readonly refreshMs?: number;
}

/** A request that was given a rank. It counts there until it is complete. */
export class RoutedRequest implements Disposable {
  /** The rank that is to serve it. */
  readonly dpRank: number;
  /** The number of its dispatch, from 1: its sequence number, for engines that report those. */
  readonly ticket: number;
  readonly #budget: DpBudget;

  /** Made by {@linkcode DpRouter.dispatch} only. */
  constructor(dpRank: number, ticket: number, budget: DpBudget) {
    this.dpRank = dpRank;
    this.ticket = ticket;
    this.#budget = budget;
  }

  /** Says that it is complete, failed or given up. Saying it again changes nothing. */
  complete(): void {
    this.#budget.complete(this.ticket);
  }

  /** As {@linkcode complete}. */
  [Symbol.dispose](): void {
    this.complete();
  }
}

/**
 * Chooses the rank for each request of an engine, with a {@linkcode DpBudget} that it keeps up to
 * date. It follows an engine that restarts with more or fewer ranks. The reader stays its owner's.
 *
 * @example
 * ```ts
 * import { DpRouter, ShmLoadSnapshotReader, shmPathFor } from "./mod.ts";
 *
 * using reader = new ShmLoadSnapshotReader(shmPathFor("my-engine"));
 * using router = new DpRouter(reader);
 * using request = router.dispatch({ estimatedTokens: 800 });
 * console.log(request.dpRank); // send it there; it is complete at the end of the scope
 * ```
 */
export class DpRouter implements Disposable {
  readonly #reader: LoadReader;
  readonly #options: DpRouterOptions;
  readonly #refreshMs: number;
  readonly #drained = new Set<number>();
  readonly #abort = new AbortController();
  #budget: DpBudget | null = null;
  #refreshedAtMs = -Infinity;
  #isWatching = false;

  /**
   * Makes a router.
   *
   * @param reader Where the loads come from. It is not closed by the router.
   * @param options How to choose.
   * @throws {RangeError} If a number is out of range.
   * @throws {TypeError} If the reader is closed.
   */
  constructor(reader: LoadReader, options: DpRouterOptions = {}) {
    this.#reader = reader;
    this.#options = options;
    this.#refreshMs = options.refreshMs ?? 20;
    if (!(this.#refreshMs >= 0)) {
      throw new RangeError(`Cannot use refreshMs ${options.refreshMs}: below 0`);
    }
    // Options that cannot be are told now, not with the first request.
    checkOptions(reader.dpSize ?? options.weights?.length ?? 1, options);
    if (reader.dpSize !== null) this.#budgetFor(reader.dpSize);
    if (options.refresh === "watch") void this.#watch();
  }

  /** How many ranks the group has; `null` while that is unknown. */
  get dpSize(): number | null {
    return this.#reader.dpSize;
  }

  /**
   * Chooses the rank for a request.
   *
   * @param options What is known of it.
   * @returns The rank, and what is to be told when the request is complete.
   * @throws {NoRankAvailableError} If no rank can be chosen; see `whenNone`.
   * @throws {TypeError} If the router or its reader is closed.
   */
  dispatch(options?: DispatchOptions): RoutedRequest {
    if (this.#abort.signal.aborted) throw new TypeError("Cannot dispatch: the router is closed");
    const budget = this.#refresh();
    const dpRank = budget.dispatch(this.#options.method, options);
    return new RoutedRequest(dpRank, budget.lastTicket, budget);
  }

  /**
   * Gives a rank no more requests; those that it has go on.
   *
   * @param dpRank The rank. It may be one that the group does not have yet.
   * @throws {RangeError} If it is no rank.
   */
  drain(dpRank: number): void {
    if (!(Number.isInteger(dpRank) && dpRank >= 0)) {
      throw new RangeError(`Cannot drain rank ${dpRank}: not a whole number from 0`);
    }
    this.#drained.add(dpRank);
    if (this.#budget !== null && dpRank < this.#budget.dpSize) this.#budget.drain(dpRank);
  }

  /** Takes a rank in again. */
  undrain(dpRank: number): void {
    if (!this.#drained.delete(dpRank)) return;
    if (this.#budget !== null && dpRank < this.#budget.dpSize) this.#budget.undrain(dpRank);
  }

  /**
   * Tells for the last dispatch what each rank counted for; `null` before the first, and after one
   * that found no rank: its error tells why.
   */
  explain(): DispatchExplanation | null {
    return this.#budget?.explain() ?? null;
  }

  /** Tells what was done since the group has its present size; `null` while that is unknown. */
  stats(): DpBudgetStats | null {
    return this.#budget?.stats() ?? null;
  }

  /** Ends the router; the reader stays open. Closing twice is fine. */
  close(): void {
    this.#abort.abort();
  }

  /** As {@linkcode close}. */
  [Symbol.dispose](): void {
    this.close();
  }

  #refresh(): DpBudget {
    const nowMs = performance.now();
    const isDue = this.#budget === null || nowMs - this.#refreshedAtMs >= this.#refreshMs;
    if (!isDue) return this.#budget!;
    const loads = this.#isWatching ? [] : this.#reader.readAll();
    const health = this.#reader.health();
    const { dpSize } = this.#reader;
    if (dpSize === null) throw new NoRankAvailableError([]);
    const budget = this.#budgetFor(dpSize);
    budget.update(loads, { health });
    this.#refreshedAtMs = nowMs;
    return budget;
  }

  #budgetFor(dpSize: number): DpBudget {
    if (this.#budget?.dpSize === dpSize) return this.#budget;
    const { weights } = this.#options;
    const budget = new DpBudget(
      dpSize,
      weights === undefined || weights.length === dpSize ? this.#options : {
        ...this.#options,
        // Of a group that has another size now: what was said of a rank still holds.
        weights: Array.from({ length: dpSize }, (_, dpRank) => weights[dpRank] ?? 1),
      },
    );
    for (const dpRank of this.#drained) if (dpRank < dpSize) budget.drain(dpRank);
    this.#budget = budget;
    return budget;
  }

  async #watch(): Promise<void> {
    try {
      for await (const update of this.#reader.watch({ signal: this.#abort.signal })) {
        this.#isWatching = true;
        this.#take(update);
      }
    } catch (error) {
      getLogger(["loadslots", "router"]).error(
        "Watching has ended, loads are read before each dispatch: {error}",
        { error },
      );
    } finally {
      this.#isWatching = false;
    }
  }

  #take({ dpRank, snapshot, ageMs }: LoadUpdate): void {
    const { dpSize } = this.#reader;
    if (dpSize === null) return;
    const state = ageMs === null ? "unreported" : "live";
    this.#budgetFor(dpSize).update([snapshot], { health: [{ dpRank, state, ageMs }] });
  }
}
