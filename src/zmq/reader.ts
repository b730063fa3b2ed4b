/** Reading the load of ranks on other nodes: a worker drains a PULL socket into the slot file. */

import type { WorkerFailedError } from "../errors.ts";
import type { LoadReader, LoadUpdate, WatchOptions } from "../load_reader.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { CoarseClock } from "../slotfile/coarse_clock.ts";
import { checkDpSize, checkSlotSize, SLOT_SIZE } from "../slotfile/layout.ts";
import { acquireLibc, cString, type LibcLease } from "../slotfile/libc.ts";
import type { RankHealth } from "../slotfile/rank_health.ts";
import {
  checkMs,
  ShmLoadSnapshotReader,
  type ShmLoadSnapshotReaderStats,
  slotViewOf,
} from "../slotfile/reader.ts";
import { LoadWatch } from "../watch/load_watch.ts";
import { ControlBlock, type DrainCounts } from "./control_block.ts";
import type { CurveServerOptions } from "./curve.ts";
import { parseEndpoint } from "./endpoint.ts";
import type { DrainWorkerData, DrainWorkerReady } from "./drain_worker_data.ts";
import { Wakeup } from "./wakeup.ts";
import { WorkerHandle } from "./worker_handle.ts";

/** Options of {@linkcode ZmqShmLoadSnapshotReader.open}. */
export interface ZmqShmLoadSnapshotReaderOptions {
  /** How many ranks the group has, 1..65535. */
  readonly dpSize: number;
  /** Bytes of a slot, a multiple of 4; longer messages are refused. @default {16384} */
  readonly slotSize?: number;
  /** From which age on a rank counts as stale, in milliseconds since it arrived. @default {10_000} */
  readonly staleAfterMs?: number;
  /** The longest that a read waits for the slot file's lock, in milliseconds. @default {1} */
  readonly lockTimeoutMs?: number;
  /**
   * Messages that libzmq keeps for each sender until the worker takes them; ZMQ_RCVHWM. A sender
   * beyond that is held up, not the others. @default {1000}
   */
  readonly receiveHighWaterMark?: number;
  /** Keys, so that only known writers get in; see {@linkcode generateCurveKeys}. */
  readonly curve?: CurveServerOptions;
  /**
   * Binds beyond this machine without keys: whoever reaches the port can then tell any load.
   *
   * @default {false}
   */
  readonly allowInsecureBind?: boolean;
  /** A system libzmq to use instead of the one that npm:zeromq ships. */
  readonly libzmqPath?: string;
  /** Closes the reader when it aborts. */
  readonly signal?: AbortSignal;
}

/** What the worker and the reader have done so far. Counts start at 0 and only grow. */
export interface ZmqShmLoadSnapshotReaderStats extends DrainCounts {
  /** What reading the slot file came to. */
  readonly slotFile: ShmLoadSnapshotReaderStats;
}

/**
 * Collects the load of all ranks of a group over ZeroMQ, on the one node that binds the socket, and
 * reads it. SGLang's own readers on this node can read the slot file as well.
 *
 * A worker of its own owns the socket and the slot file; the isolate that reads never waits for
 * either. A rank's age counts from its arrival, for the clocks of two nodes differ.
 *
 * @example
 * ```ts
 * import { shmPathFor, ZmqShmLoadSnapshotReader } from "./mod.ts";
 *
 * await using reader = await ZmqShmLoadSnapshotReader.open(
 *   "tcp://127.0.0.1:*",
 *   shmPathFor("zmq-example"),
 *   { dpSize: 2 },
 * );
 * console.log(reader.endpoint); // such as tcp://127.0.0.1:40003
 * await reader.poll();
 * for (const load of reader.readAll()) console.log(load.dpRank, load.numRunningReqs);
 * ```
 */
export class ZmqShmLoadSnapshotReader implements LoadReader, AsyncDisposable {
  /** The endpoint that is bound, with the port that the system chose. */
  readonly endpoint: string;
  /** The path of the slot file. */
  readonly path: string;
  /** How many ranks the group has. */
  readonly dpSize: number;

  readonly #worker: WorkerHandle<DrainWorkerReady>;
  readonly #control: ControlBlock;
  readonly #reader: ShmLoadSnapshotReader;
  readonly #lease: LibcLease;
  readonly #clock: CoarseClock;
  readonly #staleAfterMs: number;
  // What had arrived when the last look began that somebody wanted ages of; 0 for nothing yet.
  readonly #arrivedAtMs: Float64Array<ArrayBuffer>;
  readonly #signal: AbortSignal | null;
  readonly #onAbort = (): void => void this.close();
  #hasFailed = false;
  #restores = 0;
  #watch: LoadWatch | null = null;
  #closing: Promise<void> | null = null;

  private constructor(
    worker: WorkerHandle<DrainWorkerReady>,
    control: ControlBlock,
    reader: ShmLoadSnapshotReader,
    options: ZmqShmLoadSnapshotReaderOptions,
  ) {
    this.#worker = worker;
    this.#control = control;
    this.#reader = reader;
    this.endpoint = worker.ready.endpoint;
    this.path = reader.path;
    this.dpSize = options.dpSize;
    this.#staleAfterMs = options.staleAfterMs ?? 10_000;
    this.#arrivedAtMs = new Float64Array(options.dpSize);
    this.#lease = acquireLibc(this.path);
    this.#clock = new CoarseClock(this.#lease.libc);
    this.#signal = options.signal ?? null;
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    worker.closed.then((reason) => {
      this.#hasFailed = reason !== null;
      this.#watch?.rouse();
    });
  }

  /**
   * Binds the socket in a worker and opens the slot file.
   *
   * @param endpoint Where writers connect: `tcp://host:port`, with `*` as port for one that the
   *   system chooses, or `ipc://path`.
   * @param shmPath The slot file; see {@linkcode shmPathFor}.
   * @param options The group, keys and limits.
   * @returns The reader, bound and ready.
   * @throws {RangeError} If the endpoint or an option cannot be used.
   * @throws {TypeError} If a key is none, or other machines reach the endpoint and there is no key.
   * @throws {EndpointInUseError} If the endpoint belongs to another socket.
   * @throws {SlotFileError} If the slot file cannot be made or opened.
   * @throws {LockTimeoutError} If another process keeps the slot file's lock.
   * @throws {LibzmqError} If there is no libzmq to use.
   * @throws {ZmqError} If the socket cannot be bound for another reason.
   * @throws {Deno.errors.NotCapable} Without `--allow-ffi` and `--allow-read`.
   */
  static async open(
    endpoint: string,
    shmPath: string,
    options: ZmqShmLoadSnapshotReaderOptions,
  ): Promise<ZmqShmLoadSnapshotReader> {
    const { dpSize, slotSize = SLOT_SIZE, receiveHighWaterMark = 1000, signal } = options;
    signal?.throwIfAborted();
    checkDpSize(dpSize);
    checkSlotSize(slotSize);
    if (!Number.isInteger(receiveHighWaterMark) || receiveHighWaterMark < 1) {
      throw new RangeError(
        `Cannot use receiveHighWaterMark ${receiveHighWaterMark}: not an integer from 1`,
      );
    }
    // All of it before the worker makes a file.
    checkMs("staleAfterMs", options.staleAfterMs ?? 0);
    checkMs("lockTimeoutMs", options.lockTimeoutMs ?? 0);
    cString(shmPath);
    parseEndpoint(endpoint, "bind");
    const control = new ControlBlock(dpSize);
    const wakeup = new Wakeup();
    const data: DrainWorkerData = {
      endpoint,
      shmPath,
      dpSize,
      slotSize,
      receiveHighWaterMark,
      control: control.buffer,
      wakeupFd: wakeup.fd,
      curve: options.curve ?? null,
      allowInsecureBind: options.allowInsecureBind ?? false,
      libzmqPath: options.libzmqPath ?? null,
    };
    const url = new URL("../../workers/drain_worker.ts", import.meta.url);
    const worker = await WorkerHandle.start<DrainWorkerReady>(url, data, control, wakeup);
    let reader: ShmLoadSnapshotReader | null = null;
    try {
      signal?.throwIfAborted();
      reader = new ShmLoadSnapshotReader(shmPath, {
        dpSize,
        ...(options.staleAfterMs === undefined ? {} : { staleAfterMs: options.staleAfterMs }),
        ...(options.lockTimeoutMs === undefined ? {} : { lockTimeoutMs: options.lockTimeoutMs }),
      });
      return new ZmqShmLoadSnapshotReader(worker, control, reader, options);
    } catch (error) {
      reader?.close();
      await worker.stop();
      throw error;
    }
  }

  /**
   * Resolves when nothing arrives any more: with `null` after {@linkcode close}, or with a
   * {@linkcode WorkerFailedError} if the worker failed; the last values then stay readable. Never
   * rejects.
   */
  get closed(): Promise<WorkerFailedError | null> {
    return this.#worker.closed;
  }

  /**
   * Reads one rank.
   *
   * @param dpRank The rank, from 0.
   * @returns Its newest good snapshot, or `null` if none has arrived yet.
   * @throws {RangeError} If the group has no such rank.
   * @throws {TypeError} If the reader is closed.
   */
  read(dpRank: number): LoadSnapshot | null {
    this.#followWorker();
    return this.#reader.read(dpRank);
  }

  /**
   * Reads all ranks.
   *
   * @returns The newest good snapshot of each rank that has one, in order of rank.
   * @throws {TypeError} If the reader is closed.
   */
  readAll(): LoadSnapshot[] {
    this.#followWorker();
    return this.#reader.readAll();
  }

  /**
   * Waits until what writers had sent before the call is readable: the worker takes and publishes
   * what is there until nothing has arrived for 2 milliseconds. It cannot know of what is still on
   * its way from another node.
   *
   * @param options The longest to wait.
   * @returns Whether that came to an end in time; false while another process keeps the lock of the
   *   slot file, or when the worker has failed.
   * @throws {TypeError} If the reader is closed.
   * @throws {RangeError} If the time is none.
   */
  async poll({ timeoutMs = 1000 }: { readonly timeoutMs?: number } = {}): Promise<boolean> {
    this.#mustBeOpen("poll");
    checkMs("timeoutMs", timeoutMs);
    const ticket = this.#control.askPoll();
    this.#worker.wake();
    return await this.#worker.hold(this.#waitForPoll(ticket, timeoutMs));
  }

  /**
   * Tells for each rank how far its snapshot can be trusted. Ages count from arrival; a snapshot
   * that an earlier collector left in the slot file is stale until the rank is heard again.
   *
   * @returns One entry for each rank, in order.
   * @throws {TypeError} If the reader is closed.
   */
  health(): readonly RankHealth[] {
    this.#control.copyArrivals(this.#arrivedAtMs);
    this.#followWorker();
    return this.#reader.health().map((health): RankHealth => {
      const { dpRank, state } = health;
      if (state === "unreported") return health;
      const arrivedForMs = this.#ageMs(dpRank);
      const ageMs = arrivedForMs ?? health.ageMs;
      if (state === "corrupt") return { dpRank, state, ageMs };
      const isFresh = arrivedForMs !== null && arrivedForMs <= this.#staleAfterMs;
      return { dpRank, state: isFresh ? "live" : "stale", ageMs };
    });
  }

  /**
   * Watches for new snapshots: first what each rank says now, then every batch that the worker
   * publishes, as soon as it does. A consumer that is slower gets the newest snapshot of each rank,
   * and skips those between. A waiting watcher keeps the process alive.
   *
   * @param options When to end.
   * @returns An iteration that ends when the reader is closed, when its worker fails ({@linkcode
   *   closed} tells why), or when the signal aborts.
   * @throws {TypeError} If the reader is closed.
   */
  watch(options: WatchOptions = {}): AsyncIterableIterator<LoadUpdate, undefined> {
    this.#mustBeOpen("watch load");
    return (this.#watch ??= this.#startWatch()).iterate(options);
  }

  /** Tells what the worker and the reader have done so far. */
  stats(): ZmqShmLoadSnapshotReaderStats {
    return { ...this.#control.counts(), slotFile: this.#reader.stats() };
  }

  /**
   * Stops the worker, waits for it, and lets go of everything. The slot file stays, for SGLang's
   * readers cannot follow a new one. Twice is fine.
   */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** Closes the reader at the end of an `await using` scope. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#watch?.rouse();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#reader.close();
    await this.#worker.stop();
    this.#lease.release();
  }

  async #waitForPoll(ticket: number, timeoutMs: number): Promise<boolean> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const done = this.#control.pollDone;
      if (done >= ticket) return true;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0 || this.#hasFailed || this.#closing !== null) return false;
      await this.#control.nextPoll(done, Math.min(leftMs, 100));
    }
  }

  /** What the worker publishes in a file that it had to make anew is readable at once. */
  #followWorker(): void {
    const { restores } = this.#control;
    if (restores === this.#restores) return;
    this.#restores = restores;
    this.#reader.recheckPath();
  }

  #mustBeOpen(what: string): void {
    if (this.#closing !== null) throw new TypeError(`Cannot ${what}: the reader is closed`);
  }

  #startWatch(): LoadWatch {
    const control = this.#control;
    const isOpen = () => this.#closing === null && !this.#hasFailed;
    let seen = -1;
    return new LoadWatch({
      get isOpen() {
        return isOpen();
      },
      look: (newest) => {
        const batches = control.doorbell;
        if (batches === seen) return;
        // Before reading: what is published meanwhile rings again.
        seen = batches;
        control.copyArrivals(this.#arrivedAtMs);
        for (let dpRank = 0; dpRank < this.dpSize; dpRank++) newest[dpRank] = this.read(dpRank);
      },
      ageMs: (dpRank) => this.#ageMs(dpRank) ?? this.#reader.health()[dpRank]?.ageMs ?? null,
      wait: () => this.#worker.hold(control.nextBatch(seen, Infinity)),
      wake: () => control.ring(),
    });
  }

  /**
   * How long ago what a rank was found to say at the last look arrived; `null` if it was not heard.
   *
   * Arrivals are taken before a look, for the worker notes them after publishing: the look finds
   * that message, or one that came later. So an age may be told a message too old, never too young.
   */
  #ageMs(dpRank: number): number | null {
    const arrivedAtMs = this.#arrivedAtMs[dpRank]!;
    if (arrivedAtMs === 0) return null;
    const { isCurrent, seenAtMs } = slotViewOf(this.#reader, dpRank);
    // What arrived last was missed here if it is being written over: this one came before it.
    const sinceMs = isCurrent ? arrivedAtMs : Math.min(arrivedAtMs, seenAtMs);
    return Math.max(0, this.#clock.nowMs() - sinceMs);
  }
}
