/** Receiving what schedulers push, as Dynamo's worker does, without Python and without its pickle. */

import type { WorkerFailedError } from "../errors.ts";
import { CoarseClock } from "../slotfile/coarse_clock.ts";
import { checkDpRank } from "../slotfile/layout.ts";
import { acquireLibc, type LibcLease } from "../slotfile/libc.ts";
import type { RankHealth } from "../slotfile/rank_health.ts";
import { Wakeup } from "../zmq/wakeup.ts";
import { WorkerHandle } from "../zmq/worker_handle.ts";
import type { KvMetrics } from "./kv_metrics.ts";
import { type MessageFeed, MessageIterator } from "./message_iterator.ts";
import { ARRIVED_AT, metricsOf, RECORD_LENGTH } from "./message_record.ts";
import { ReceiveBlock, type ReceiveCounts } from "./receive_block.ts";
import type { ReceiveWorkerData, ReceiveWorkerReady } from "./receive_worker_data.ts";
import { type ReceivedKvMetrics, receivedOf } from "./received_kv_metrics.ts";
import {
  type KvMetricsReceiverOptions,
  type ReceiverSettings,
  settingsOf,
} from "./receiver_options.ts";
import type { KvMetricsRefusalKind } from "./refusals.ts";

/** What a receiver has done so far. Counts start at 0 and only grow. */
export interface KvMetricsReceiverStats extends ReceiveCounts {
  /** Messages that were refused, by reason. */
  readonly refused: Readonly<Record<KvMetricsRefusalKind, number>>;
}

/** A rank's newest message as it was read last. */
interface Latest {
  readonly version: number;
  readonly metrics: KvMetrics;
  readonly record: Float64Array<ArrayBuffer>;
}

/**
 * Receives the KvMetrics of an engine's schedulers: the newest of each rank, and every message for a
 * loop that wants them.
 *
 * A worker of its own owns the socket. It takes messages of all SGLang's releases, in pickle and
 * MessagePack, reads pickle without executing any of it, and checks every value. What is no
 * KvMetrics is counted by its reason, and never ends the receiving. The isolate that holds the
 * receiver never waits for the socket.
 *
 * There can be only one receiver for an engine: a second one would take a share of the messages.
 *
 * Iterating takes each message out of the one queue, so there is one loop at a time; see {@linkcode
 * KvMetricsRelay} for several takers. The loop ends when the receiver is closed, or when the worker
 * has failed and all that had come is taken; {@linkcode closed} tells which.
 *
 * @example
 * ```ts
 * import { KvMetricsReceiver } from "./mod.ts";
 *
 * await using receiver = await KvMetricsReceiver.open("ipc:///tmp/metrics.sock", { dpSize: 1 });
 * for await (const { metrics, arrivedAtMs } of receiver) {
 *   console.log(arrivedAtMs, metrics.dataParallelRank, metrics.gpuCacheUsagePerc);
 * }
 * ```
 */
export class KvMetricsReceiver implements AsyncDisposable, AsyncIterable<ReceivedKvMetrics> {
  /** The endpoint that is bound, with the port that the system chose. */
  readonly endpoint: string;

  readonly #worker: WorkerHandle<ReceiveWorkerReady>;
  readonly #block: ReceiveBlock;
  readonly #dpSize: number | null;
  readonly #maxRanks: number;
  readonly #staleAfterMs: number;
  readonly #lease: LibcLease;
  readonly #clock: CoarseClock;
  readonly #signal: AbortSignal | null;
  readonly #onAbort = (): void => void this.close();
  readonly #latest: (Latest | undefined)[] = [];
  readonly #record: Float64Array<ArrayBuffer> = new Float64Array(RECORD_LENGTH);
  /** Ranks from here on were not heard yet. */
  #heard = 0;
  #isIterated = false;
  #hasEnded = false;
  #closing: Promise<void> | null = null;

  private constructor(
    worker: WorkerHandle<ReceiveWorkerReady>,
    block: ReceiveBlock,
    settings: ReceiverSettings,
    signal: AbortSignal | null,
  ) {
    this.#worker = worker;
    this.#block = block;
    this.endpoint = worker.ready.endpoint;
    this.#dpSize = settings.dpSize;
    this.#maxRanks = settings.worker.maxRanks;
    this.#staleAfterMs = settings.staleAfterMs;
    this.#lease = acquireLibc(this.endpoint);
    this.#clock = new CoarseClock(this.#lease.libc);
    this.#signal = signal;
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    worker.closed.then(() => {
      this.#hasEnded = true;
      block.ring();
    });
  }

  /**
   * Binds the socket in a worker.
   *
   * @param endpoint Where schedulers connect: `tcp://host:port`, with `*` as port for one that the
   *   system chooses, or `ipc://path`, such as SGLang's `metrics_ipc_name`.
   * @param options The ranks, keys and limits.
   * @returns The receiver, bound and ready.
   * @throws {RangeError} If the endpoint or an option cannot be used.
   * @throws {TypeError} If a key is none, or other machines reach the endpoint and there is no key.
   * @throws {EndpointInUseError} If the endpoint belongs to another socket.
   * @throws {LibzmqError} If there is no libzmq to use.
   * @throws {ZmqError} If the socket cannot be bound for another reason.
   * @throws {Deno.errors.NotCapable} Without `--allow-ffi` and `--allow-read`.
   */
  static async open(
    endpoint: string,
    options: KvMetricsReceiverOptions = {},
  ): Promise<KvMetricsReceiver> {
    const { signal } = options;
    signal?.throwIfAborted();
    const settings = settingsOf(endpoint, options);
    const block = new ReceiveBlock(settings.worker);
    const wakeup = new Wakeup();
    const data: ReceiveWorkerData = {
      ...settings.worker,
      block: block.buffer,
      wakeupFd: wakeup.fd,
    };
    const url = new URL("../../workers/kv_metrics_worker.ts", import.meta.url);
    const worker = await WorkerHandle.start<ReceiveWorkerReady>(url, data, block, wakeup);
    try {
      signal?.throwIfAborted();
      return new KvMetricsReceiver(worker, block, settings, signal ?? null);
    } catch (error) {
      await worker.stop();
      throw error;
    }
  }

  /**
   * Resolves when nothing arrives any more: with `null` after {@linkcode close}, or with a
   * {@linkcode WorkerFailedError} if the worker failed, its reason as the `cause`; the last values
   * then stay readable. Never rejects. Waiting for it alone does not keep the process; a loop does.
   */
  get closed(): Promise<WorkerFailedError | null> {
    return this.#worker.closed;
  }

  /**
   * Tells the newest metrics of a rank.
   *
   * @param dpRank The rank, from 0.
   * @returns What it told last, with its age; `null` if it was never heard, which is not zero. Its
   *   `metrics` are the same object until the rank reports again.
   * @throws {RangeError} If there is no such rank.
   * @throws {TypeError} If the receiver is closed.
   */
  latest(dpRank: number): ReceivedKvMetrics | null {
    this.#mustBeOpen("read metrics");
    checkDpRank(dpRank, this.#maxRanks);
    const latest = this.#refresh(dpRank);
    if (latest === null) return null;
    return receivedOf(latest.record, this.#clock.nowMs(), latest.metrics);
  }

  /**
   * Tells for each rank how far its metrics can be trusted. Ages count from arrival. The state
   * `"corrupt"` does not occur: what is refused cannot be told to be of a rank.
   *
   * @returns One entry for each rank, in order: of `dpSize` where that is known, else up to the
   *   highest rank that was heard.
   * @throws {TypeError} If the receiver is closed.
   */
  health(): readonly RankHealth[] {
    this.#mustBeOpen("read metrics");
    const nowMs = this.#clock.nowMs();
    return Array.from({ length: this.#dpSize ?? this.#countHeard() }, (_, dpRank): RankHealth => {
      const latest = this.#refresh(dpRank);
      if (latest === null) return { dpRank, state: "unreported", ageMs: null };
      const ageMs = Math.max(0, nowMs - latest.record[ARRIVED_AT]!);
      return { dpRank, state: ageMs > this.#staleAfterMs ? "stale" : "live", ageMs };
    });
  }

  /** Tells what the worker has done so far; also when the receiver is closed. */
  stats(): KvMetricsReceiverStats {
    return { ...this.#block.counters.all(), refused: this.#block.refusals.all() };
  }

  /**
   * Takes each message, the oldest first. Only one loop can do so at a time.
   *
   * @returns The iterator. It keeps the process alive while it waits.
   * @throws {TypeError} If another loop is at it, or the receiver is closed.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<ReceivedKvMetrics, undefined> {
    this.#mustBeOpen("iterate");
    if (this.#isIterated) throw new TypeError("Cannot iterate: another loop takes the messages");
    this.#isIterated = true;
    return new MessageIterator(this.#feed());
  }

  /** Stops the worker, waits for it, and lets go of everything. Twice is fine. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** Closes the receiver at the end of an `await using` scope. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#block.ring();
    await this.#worker.stop();
    this.#lease.release();
  }

  /** What the iterator sees of the receiver. */
  #feed(): MessageFeed {
    const block = this.#block;
    const take = (): ReceivedKvMetrics | null =>
      block.queue.take(this.#record) ? receivedOf(this.#record, this.#clock.nowMs()) : null;
    const state = (): MessageFeed["state"] =>
      this.#closing !== null ? "closed" : this.#hasEnded ? "ended" : "open";
    return {
      get state() {
        return state();
      },
      take,
      get batches() {
        return block.doorbell;
      },
      next: (seen) => this.#worker.hold(block.nextBatch(seen, Infinity)),
      wake: () => block.ring(),
      release: () => {
        this.#isIterated = false;
      },
    };
  }

  /** Brings what is known of a rank up to date. */
  #refresh(dpRank: number): Latest | null {
    const known = this.#latest[dpRank] ?? null;
    const { table } = this.#block;
    if (known !== null && table.version(dpRank) === known.version) return known;
    const record = new Float64Array(RECORD_LENGTH);
    const version = table.read(dpRank, record);
    if (version === 0) return known;
    return this.#latest[dpRank] = { version, metrics: metricsOf(record), record };
  }

  /** One more than the highest rank that was heard. */
  #countHeard(): number {
    for (let dpRank = this.#maxRanks - 1; dpRank >= this.#heard; dpRank--) {
      if (this.#block.table.version(dpRank) !== 0) this.#heard = dpRank + 1;
    }
    return this.#heard;
  }

  #mustBeOpen(what: string): void {
    if (this.#closing !== null) throw new TypeError(`Cannot ${what}: the receiver is closed`);
  }
}
