/** Telling a Dynamo worker, or any other receiver, what a scheduler would tell it. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import { ZmqError } from "../errors.ts";
import { checkDpRank, MAX_DP_SIZE } from "../slotfile/layout.ts";
import type { CurveClientOptions } from "../zmq/curve.ts";
import { PushSocket } from "../zmq/socket.ts";
import { Backlog } from "./backlog.ts";
import type { KvMetricsMessage } from "./kv_metrics.ts";
import { encodeKvMetricsMsgpack } from "./msgpack.ts";
import { type PickleOptions, PickleWriter } from "./pickle_writer.ts";

/** Options of {@linkcode KvMetricsEmitter}. */
export interface KvMetricsEmitterOptions {
  /**
   * How metrics travel: `"pickle"` as pyzmq's `send_pyobj` sends them, which every receiver reads, or
   * `"msgpack"` as newer schedulers do without pickle.
   *
   * @default {"pickle"}
   */
  readonly encoding?: "pickle" | "msgpack";
  /** Which class the receiver's Python makes of a pickle; see {@linkcode PickleOptions}. */
  readonly pickle?: PickleOptions;
  /**
   * How many metrics of each rank are kept while they cannot be sent: the newest, in their order.
   * With 1, a receiver that comes late gets the newest first and none that was superseded; with 0,
   * what cannot be sent at once is dropped.
   *
   * @default {1}
   */
  readonly queueSize?: number;
  /** Keys, for a receiver that wants them. Dynamo's own does not know CURVE. */
  readonly curve?: CurveClientOptions;
  /** A system libzmq to use instead of the one that npm:zeromq ships. */
  readonly libzmqPath?: string;
}

/**
 * What has become of metrics:
 *
 * - `"sent"`: libzmq has them for a receiver that is connected. Whether they arrive cannot be known:
 *   a PUSH gets no answer.
 * - `"queued"`: there is no receiver, or it is behind. They are kept, and sent when that changes.
 * - `"dropped"`: the same, but nothing is kept.
 */
export type EmitOutcome = "sent" | "queued" | "dropped";

/** What an emitter has done so far. Each emitted message is counted once. */
export interface KvMetricsEmitterStats {
  /** Messages that libzmq took. */
  readonly sent: number;
  /** Messages that are kept now. */
  readonly queued: number;
  /** Messages that were given up: newer ones took their place, or the emitter was closed. */
  readonly dropped: number;
}

/**
 * What libzmq may hold for a receiver that does not take it. It keeps its oldest messages where the
 * emitter's own queue keeps the newest, so it gets few.
 */
const SEND_HIGH_WATER_MARK = 64;

/** How often what is kept is tried again while nothing is emitted. */
const RETRY_MS = 20;

const MAX_QUEUE_SIZE = 2 ** 20;

/**
 * Emits KvMetrics as SGLang's scheduler does; the receiver is a Dynamo worker, or {@linkcode
 * KvMetricsReceiver}.
 *
 * Nothing here waits for the receiver. It may come later, go, and come back: libzmq connects again by
 * itself. In the meantime the newest metrics of each rank are kept, where the scheduler keeps all that
 * it ever sent.
 *
 * An emitter does not keep its process alive, and what it has not sent by then is lost. It makes no
 * file for an `ipc://` endpoint: that is the receiver's, who also removes it.
 *
 * @example
 * ```ts
 * import { createKvMetrics, KvMetricsEmitter } from "./mod.ts";
 *
 * using emitter = new KvMetricsEmitter("tcp://127.0.0.1:5557");
 * const outcome = emitter.emit(createKvMetrics({ dataParallelRank: 1, requestActiveSlots: 3 }));
 * console.log(outcome); // "queued": there is no connection yet
 * ```
 */
export class KvMetricsEmitter implements Disposable {
  /** Where the receiver is. */
  readonly endpoint: string;

  readonly #encode: (metrics: KvMetricsMessage) => Uint8Array<ArrayBuffer>;
  readonly #socket: PushSocket;
  readonly #backlog: Backlog;
  readonly #queueSize: number;
  #timer: ReturnType<typeof setInterval> | undefined;
  #closed = false;
  #sent = 0;
  #dropped = 0;
  readonly #send = (message: Uint8Array<ArrayBuffer>): boolean => {
    if (this.#socket.send(message) === "dropped") return false;
    this.#sent++;
    return true;
  };

  /**
   * Opens an emitter. It does not wait for the receiver.
   *
   * @param endpoint The receiver's `tcp://host:port` or `ipc://path`.
   * @param options The encoding, and what is kept.
   * @throws {RangeError} If the endpoint or an option cannot be used.
   * @throws {TypeError} If a key of `curve` is none.
   * @throws {LibzmqError} If there is no libzmq to use.
   * @throws {ZmqError} If libzmq refuses, for want of descriptors for example.
   * @throws {Deno.errors.NotCapable} Without `--allow-ffi`, or without `--allow-read`.
   */
  constructor(endpoint: string, options: KvMetricsEmitterOptions = {}) {
    const { encoding = "pickle", pickle, queueSize = 1, curve, libzmqPath } = options;
    if (!Number.isInteger(queueSize) || queueSize < 0 || queueSize > MAX_QUEUE_SIZE) {
      throw new RangeError(
        `Cannot use queueSize ${queueSize}: not an integer from 0 to ${MAX_QUEUE_SIZE}`,
      );
    }
    this.endpoint = endpoint;
    this.#encode = encoderFor(encoding, pickle);
    this.#queueSize = queueSize;
    this.#backlog = new Backlog(queueSize);
    this.#socket = new PushSocket(endpoint, {
      onlyConnected: true,
      sendHighWaterMark: SEND_HIGH_WATER_MARK,
      curve,
      libzmqPath,
    });
  }

  /**
   * Emits metrics. Does not wait.
   *
   * @param metrics What one rank carries; see {@linkcode kvMetricsFrom}. A value may be `null`, as
   *   in messages of 2025 that were not filled.
   * @returns What has become of them.
   * @throws {TypeError} If a value is neither a number nor `null`, the rank is `null`, or the emitter
   *   is closed.
   * @throws {RangeError} If a count has a fraction, or is beyond 2^53; if the rank is not 0 to 65534.
   *   Other values that receivers refuse, such as NaN, are sent: what they mean is theirs to say.
   * @throws {ZmqError} If libzmq fails.
   */
  emit(metrics: KvMetricsMessage): EmitOutcome {
    if (this.#closed) throw new TypeError("Cannot emit metrics: the emitter is closed");
    const { dataParallelRank } = metrics;
    if (dataParallelRank === null) throw new TypeError("Cannot emit metrics without a rank");
    // Each rank has a queue of its own: ranks that cannot be must not fill the memory.
    if (typeof dataParallelRank === "number") checkDpRank(dataParallelRank, MAX_DP_SIZE);
    const message = this.#encode(metrics);
    this.#flush();
    // Not past those that are kept: of a rank, the newest has to come last.
    if (this.#backlog.length === 0 && this.#send(message)) return "sent";
    if (this.#queueSize === 0) {
      this.#dropped++;
      return "dropped";
    }
    this.#dropped += this.#backlog.keep(dataParallelRank, message);
    this.#retryLater();
    return "queued";
  }

  /** Tells what the emitter has done so far. */
  stats(): KvMetricsEmitterStats {
    return { sent: this.#sent, queued: this.#backlog.length, dropped: this.#dropped };
  }

  /** Closes at once; what was not sent yet is lost. Twice is fine. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    this.#dropped += this.#backlog.clear();
    this.#socket.close();
  }

  /** Closes the emitter at the end of a `using` scope. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** Sends what is kept, as far as it goes. */
  #flush(): void {
    if (this.#backlog.length === 0) return;
    this.#backlog.flush(this.#send);
    if (this.#backlog.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #retryLater(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#retry(), RETRY_MS);
    this.#timer.unref();
  }

  #retry(): void {
    try {
      this.#flush();
    } catch (error) {
      // Nobody awaits this; the next `emit` meets the same error, and throws it.
      if (!(error instanceof ZmqError)) throw error;
      clearInterval(this.#timer);
      this.#timer = undefined;
      getLogger(["loadslots", "kv_metrics"]).warn("{message}", { message: error.message });
    }
  }
}

function encoderFor(
  encoding: string,
  pickle: PickleOptions | undefined,
): (metrics: KvMetricsMessage) => Uint8Array<ArrayBuffer> {
  if (encoding === "msgpack") return encodeKvMetricsMsgpack;
  if (encoding !== "pickle") {
    throw new RangeError(`Cannot use encoding ${encoding}: neither "pickle" nor "msgpack"`);
  }
  const writer = new PickleWriter(pickle);
  return (metrics) => writer.write(metrics);
}
