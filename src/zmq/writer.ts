/** Publishing the load of one rank to a collector on another node, as SGLang's scheduler does. */

import { SnapshotEncoder } from "../snapshot/encoder.ts";
import { PAYLOAD_AT } from "../snapshot/image.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { PublishCounter } from "../snapshot/publish_counter.ts";
import {
  checkDpRank,
  checkDpSize,
  checkSlotSize,
  LENGTH_SIZE,
  SLOT_SIZE,
} from "../slotfile/layout.ts";
import type { CurveClientOptions } from "./curve.ts";
import { PushSocket } from "./socket.ts";

/** Options of {@linkcode ZmqLoadSnapshotWriter}. */
export interface ZmqLoadSnapshotWriterOptions {
  /** How many ranks the group has, 1..65535. */
  readonly dpSize: number;
  /** Which of them publishes, 0..dpSize - 1. */
  readonly dpRank: number;
  /**
   * `publish` writes every so many calls; at least 1. SGLang's
   * `--load-snapshot-publish-interval`, where 15 is the default.
   *
   * @default {1}
   */
  readonly publishInterval?: number;
  /**
   * Bytes of a slot of the file that the collector keeps: a load that does not fit would be lost
   * there.
   *
   * @default {16384}
   */
  readonly slotSize?: number;
  /** Keys, for a collector that wants them. SGLang's own does not know CURVE. */
  readonly curve?: CurveClientOptions;
  /**
   * The file of a system libzmq, 4.3 or newer, to use instead of the one that npm:zeromq ships. The
   * environment variable LOADSLOTS_LIBZMQ does the same where Deno may read it.
   */
  readonly libzmqPath?: string;
}

/** What a writer has done so far. Counts start at 0 and only grow. */
export interface ZmqLoadSnapshotWriterStats {
  /** Snapshots that libzmq took. */
  readonly sent: number;
  /** Snapshots that it did not take. */
  readonly dropped: number;
  /** Calls of `publish` that the interval held back. */
  readonly skipped: number;
}

/**
 * Publishes one rank's load over ZeroMQ. The collector is this package's
 * `ZmqShmLoadSnapshotReader` or SGLang's own.
 *
 * Nothing here waits for the collector. It may come later, go, and come back: libzmq connects again
 * by itself, and keeps the newest snapshot, and only that, until it can be sent. So the collector
 * gets the newest first, and what was superseded in the meantime never.
 *
 * Each writer has a thread pair of libzmq's. A host that is given by name is looked up by libzmq: its
 * IPv4 address, unlike an IPv6 address in brackets.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot, ZmqLoadSnapshotWriter } from "./mod.ts";
 *
 * using writer = new ZmqLoadSnapshotWriter("tcp://127.0.0.1:5555", { dpSize: 8, dpRank: 3 });
 * const now = Date.now() / 1000;
 * writer.write(createLoadSnapshot({ timestamp: now, dpRank: 3, numRunningReqs: 2 }));
 * ```
 */
export class ZmqLoadSnapshotWriter implements Disposable {
  /** Where the collector is. */
  readonly endpoint: string;
  /** How many ranks the group has. */
  readonly dpSize: number;
  /** The rank that this writer publishes. */
  readonly dpRank: number;

  readonly #slotSize: number;
  readonly #socket: PushSocket;
  readonly #encoder: SnapshotEncoder = new SnapshotEncoder();
  readonly #counter: PublishCounter;
  #closed = false;
  #sent = 0;
  #dropped = 0;

  /**
   * Opens a writer. It does not wait for the collector.
   *
   * @param endpoint The collector's `tcp://host:port` or `ipc://path`.
   * @param options The group and the rank.
   * @throws {RangeError} If an option is out of range, or the endpoint cannot be used.
   * @throws {TypeError} If a key of `curve` is none.
   * @throws {LibzmqError} If there is no libzmq to use.
   * @throws {ZmqError} If libzmq refuses, for want of descriptors for example.
   * @throws {Deno.errors.NotCapable} Without `--allow-ffi`, or without `--allow-read`.
   */
  constructor(endpoint: string, options: ZmqLoadSnapshotWriterOptions) {
    const { dpSize, dpRank, slotSize = SLOT_SIZE, curve, libzmqPath } = options;
    checkDpSize(dpSize);
    checkDpRank(dpRank, dpSize);
    checkSlotSize(slotSize);
    this.endpoint = endpoint;
    this.dpSize = dpSize;
    this.dpRank = dpRank;
    this.#slotSize = slotSize;
    this.#counter = new PublishCounter(options.publishInterval);
    this.#socket = new PushSocket(endpoint, { conflate: true, curve, libzmqPath });
  }

  /**
   * Publishes a snapshot. Does not wait.
   *
   * @param snapshot The rank's load; see {@linkcode createLoadSnapshot}.
   * @returns `"sent"` once libzmq has it. It is on its way then, or, without a connection, kept
   *   until there is one or the next write supersedes it: whether it has arrived cannot be known,
   *   since a PUSH gets no answer. `"dropped"` if libzmq could not take it, which as long as it
   *   keeps only the newest does not happen.
   * @throws {RangeError} If it is another rank's, too large for a slot, or an integer is none.
   * @throws {TypeError} If a field has the wrong type, or the writer is closed.
   * @throws {ZmqError} If libzmq fails.
   */
  write(snapshot: LoadSnapshot): "sent" | "dropped" {
    if (this.#closed) throw new TypeError("Cannot write load: the writer is closed");
    const end = this.#encode(snapshot);
    const outcome = this.#socket.send(this.#encoder.image.bytes.subarray(PAYLOAD_AT, end));
    if (outcome === "sent") this.#sent++;
    else this.#dropped++;
    return outcome;
  }

  /**
   * Publishes as a scheduler does in its loop: every `publishInterval` calls, or when forced.
   *
   * @param make Makes the snapshot; called only if it will be written.
   * @param options `force` writes now, and starts the interval anew.
   * @returns Whether a snapshot was sent; see {@linkcode write}.
   * @throws As {@linkcode write} does.
   */
  publish(make: () => LoadSnapshot, options: { readonly force?: boolean } = {}): boolean {
    if (!this.#counter.isDue(options.force ?? false)) return false;
    return this.write(make()) === "sent";
  }

  /** Tells what the writer has done so far. */
  stats(): ZmqLoadSnapshotWriterStats {
    return { sent: this.#sent, dropped: this.#dropped, skipped: this.#counter.skipped };
  }

  /**
   * Closes at once, whether or not the collector is there; a snapshot that is still kept is lost.
   * Twice is fine.
   *
   * Where libzmq is looking up the collector's name, its thread ends only when the look-up does: the
   * program goes on, but by itself it does not end before that.
   */
  close(): void {
    this.#closed = true;
    this.#socket.close();
  }

  /** Closes the writer at the end of a `using` scope. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** Encodes and checks, before anything is sent. */
  #encode(snapshot: LoadSnapshot): number {
    if (snapshot.dpRank !== this.dpRank) {
      throw new RangeError(
        `Cannot write load of dp rank ${snapshot.dpRank}: the writer is for rank ${this.dpRank}`,
      );
    }
    const end = this.#encoder.encode(snapshot);
    if (end <= this.#slotSize) return end;
    throw new RangeError(
      `Cannot write load of ${end - PAYLOAD_AT} bytes: a slot holds ${
        this.#slotSize - LENGTH_SIZE
      }`,
    );
  }
}
