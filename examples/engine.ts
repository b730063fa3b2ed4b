/**
 * A simulated engine: a group of schedulers that publish their load as SGLang's do, so that
 * everything can be tried without an accelerator.
 *
 * ```sh
 * deno run --allow-ffi --allow-read examples/engine.ts --ranks 4 --seconds 60
 * ```
 */

import {
  LockTimeoutError,
  removeSlotFile,
  ShmLoadSnapshotReader,
  ShmLoadSnapshotWriter,
  shmPathFor,
} from "../mod.ts";
import {
  numberFlag,
  readFlags,
  runCommand,
  say,
  slotPathFlag,
  stopSignal,
  withTimeLimit,
} from "./command_line.ts";
import { delay } from "./delay.ts";
import { SimulatedScheduler, type SnapshotPublisher } from "./engine/scheduler.ts";
import type { Arrivals } from "./engine/workload.ts";

export type { SnapshotPublisher } from "./engine/scheduler.ts";

/** What a {@linkcode SimulatedEngine} can be told. */
export interface SimulatedEngineOptions {
  /**
   * Names the trace: the same seed gives the same one.
   * @default {1}
   */
  readonly seed?: number;
  /**
   * The rank of the first publisher, where another process has the ranks before it.
   * @default {0}
   */
  readonly firstDpRank?: number;
  /**
   * The Unix time at which the engine starts, in milliseconds.
   * @default {Date.now()}
   */
  readonly startMs?: number;
  /**
   * The requests that come to each rank by themselves.
   * @default {a seeded `Workload` for each rank}
   */
  readonly arrivals?: Arrivals;
}

/** What {@linkcode SimulatedEngine.publishingTo} can be told. */
export interface SlotFileEngineOptions extends SimulatedEngineOptions {
  /**
   * Data-parallel ranks.
   * @default {8}
   */
  readonly dpSize?: number;
  /**
   * Decode steps between two publications of a rank.
   * @default {15}
   */
  readonly publishInterval?: number;
}

const TICK_MS = 20;
/** A process that slept goes on from there: what it missed is not caught up with. */
const LONGEST_TICK_MS = 500;

/** A group of simulated schedulers, one per rank. */
export class SimulatedEngine implements Disposable {
  /** The ranks, in order. */
  readonly schedulers: readonly SimulatedScheduler[];
  #clockMs = 0;
  #startMs: number;
  #missedPublications = 0;
  #closers: (() => void)[] = [];

  /**
   * @param publishers Where each rank tells its load.
   * @param options What else is to be known.
   */
  constructor(publishers: readonly SnapshotPublisher[], options: SimulatedEngineOptions = {}) {
    this.#startMs = options.startMs ?? Date.now();
    this.schedulers = publishers.map((publisher, index) =>
      new SimulatedScheduler({
        dpRank: (options.firstDpRank ?? 0) + index,
        seed: options.seed ?? 1,
        publisher: { publish: (make, force) => this.#publish(publisher, make, force) },
        unixTime: (clockMs) => (this.#startMs + clockMs) / 1000,
        arrivals: options.arrivals,
      })
    );
  }

  /**
   * An engine that publishes through shared memory, as on a node of its own. It removes the file
   * when it is closed.
   *
   * @param path Where its slot file goes.
   * @param options What else is to be known.
   * @throws {SlotFileError} If the file cannot be created.
   */
  static publishingTo(path: string, options: SlotFileEngineOptions = {}): SimulatedEngine {
    const { dpSize = 8, publishInterval = 15 } = options;
    using opened = new DisposableStack();
    const writers = Array.from({ length: dpSize }, (_, dpRank) => {
      const writer = opened.use(
        new ShmLoadSnapshotWriter(path, { dpSize, dpRank, publishInterval }),
      );
      // Only now there is a file that is ours to remove.
      if (dpRank === 0) opened.defer(() => removeSlotFile(path));
      return writer;
    });
    const engine = new SimulatedEngine(writers, options);
    const owned = opened.move();
    engine.#closers.push(() => owned.dispose());
    return engine;
  }

  /** How long the engine has run on its own clock, in milliseconds. */
  get clockMs(): number {
    return this.#clockMs;
  }

  /** Publications that were given up because somebody else held the file's lock. */
  get missedPublications(): number {
    return this.#missedPublications;
  }

  /**
   * Lets time pass. Everything that happens follows from the seed, however the time is cut.
   *
   * @param dtMs How much, in milliseconds.
   */
  step(dtMs: number): void {
    this.#clockMs += dtMs;
    for (const scheduler of this.schedulers) scheduler.advance(this.#clockMs);
  }

  /**
   * Runs in real time.
   *
   * @param options The signal that ends it.
   * @returns When the signal is aborted.
   */
  async run(options: { readonly signal: AbortSignal }): Promise<void> {
    let last = performance.now();
    while (!options.signal.aborted) {
      await delay(TICK_MS, options.signal);
      const now = performance.now();
      const dtMs = Math.min(now - last, LONGEST_TICK_MS);
      last = now;
      // Timestamps stay those of the wall clock, whatever sleep or an adjusted clock did to it.
      this.#startMs = Date.now() - this.#clockMs - dtMs;
      this.step(dtMs);
    }
  }

  /** Stops publishing, and removes the slot file if the engine made one. Twice is fine. */
  close(): void {
    for (const close of this.#closers.splice(0)) close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** A load that could not be told is no reason to stop serving; the next one will do. */
  #publish(publisher: SnapshotPublisher, ...args: Parameters<SnapshotPublisher["publish"]>): void {
    try {
      publisher.publish(...args);
    } catch (error) {
      if (!(error instanceof LockTimeoutError)) throw error;
      this.#missedPublications++;
    }
  }
}

const USAGE = `Runs a simulated engine that publishes its load.

  deno run --allow-ffi --allow-read examples/engine.ts [flags]

  --ranks N         data-parallel ranks, 1 to 512 (default 8)
  --instance-id X   publish where SGLang's instance X would
  --path P          publish to this slot file
  --seed S          which trace to play (default 1)
  --seconds T       end by itself
  --help            show this`;

async function main(): Promise<number> {
  const flags = readFlags(Deno.args, {
    ranks: "string",
    "instance-id": "string",
    path: "string",
    seed: "string",
    seconds: "string",
    help: "boolean",
  });
  if (flags.help) {
    say(USAGE);
    return 0;
  }
  const dpSize = numberFlag("ranks", flags.ranks, { low: 1, high: 512, whole: true }, 8);
  const seed = numberFlag("seed", flags.seed, { low: 0, high: 2 ** 32, whole: true }, 1);
  const seconds = numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null);
  const path = slotPathFlag(flags) ?? shmPathFor(`simulated-${Deno.pid}`);
  if (isPublishedTo(path)) {
    say(`Another engine publishes at ${path}`, Deno.stderr);
    return 1;
  }

  using stop = stopSignal();
  using engine = SimulatedEngine.publishingTo(path, { dpSize, seed });
  say(`Publishing ${dpSize} ${dpSize === 1 ? "rank" : "ranks"} at ${path}`);
  say(`Watch: deno run --allow-ffi --allow-read examples/start.ts --path ${path}`);
  await engine.run({ signal: withTimeLimit(stop.signal, seconds) });
  return 0;
}

/**
 * Taking over the slot file of a living engine would garble what its readers see; one that a dead
 * engine left is fine.
 *
 * @throws {SlotFileError} If something else is there: it is not ours to overwrite.
 */
function isPublishedTo(path: string): boolean {
  using reader = new ShmLoadSnapshotReader(path);
  if (reader.fault !== null && reader.fault.reason !== "absent") throw reader.fault;
  return reader.health().some(({ state }) => state === "live");
}

if (import.meta.main) await runCommand(USAGE, main);
