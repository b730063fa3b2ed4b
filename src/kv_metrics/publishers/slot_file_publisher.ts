/** KvMetrics as load snapshots in a slot file, for readers that know nothing of KvMetrics. */

import { LockTimeoutError } from "../../errors.ts";
import { GroupWriter } from "../../slotfile/group_writer.ts";
import { checkDpRank, checkDpSize, SLOT_SIZE, VERSION } from "../../slotfile/layout.ts";
import { cString } from "../../slotfile/libc.ts";
import { payloadAddressOf } from "../../slotfile/address.ts";
import { SnapshotEncoder } from "../../snapshot/encoder.ts";
import { PAYLOAD_AT } from "../../snapshot/image.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../snapshot/load_snapshot.ts";
import type { KvMetrics } from "../kv_metrics.ts";
import type { ReceivedKvMetrics } from "../received_kv_metrics.ts";
import type { KvMetricsPublisher } from "./publisher.ts";

/**
 * The load that metrics tell of: as much as there is of it.
 *
 * Used tokens stand for total and active tokens as well, which KvMetrics do not tell apart; what they
 * tell nothing of is 0.
 *
 * @param metrics The metrics of one rank.
 * @param unixTimeMs When they were measured, or arrived: Unix time in milliseconds.
 * @returns The load, with its timestamp in seconds.
 *
 * @example
 * ```ts
 * import { createKvMetrics, loadSnapshotFrom } from "./mod.ts";
 *
 * const load = loadSnapshotFrom(createKvMetrics({ requestActiveSlots: 3 }), Date.now());
 * console.log(load.numRunningReqs); // 3
 * ```
 */
export function loadSnapshotFrom(metrics: KvMetrics, unixTimeMs: number): LoadSnapshot {
  return createLoadSnapshot({
    timestamp: unixTimeMs / 1000,
    dpRank: metrics.dataParallelRank,
    numRunningReqs: metrics.requestActiveSlots,
    numWaitingReqs: metrics.numRequestsWaiting,
    numUsedTokens: metrics.kvActiveBlocks,
    numTotalTokens: metrics.kvActiveBlocks,
    numActiveTokens: metrics.kvActiveBlocks,
    maxTotalNumTokens: metrics.kvTotalBlocks,
    maxRunningRequests: metrics.requestTotalSlots,
    tokenUsage: metrics.gpuCacheUsagePerc,
    cacheHitRate: metrics.gpuPrefixCacheHitRate,
  });
}

/** Options of {@linkcode SlotFilePublisher}. */
export interface SlotFilePublisherOptions {
  /** How many ranks the file has, 1..65535. */
  readonly dpSize: number;
  /**
   * The longest that a publication waits for the file's lock, in milliseconds; then it fails, and the
   * next message is the next try.
   *
   * @default {1}
   */
  readonly lockTimeoutMs?: number;
}

/** What opening may cost: another publisher may be making the file. */
const OPEN_PATIENCE_MS = 1000;

/**
 * Publishes metrics in a slot file, so that {@linkcode ShmLoadSnapshotReader} and SGLang's own readers
 * see engines that tell nothing but KvMetrics. A rank that was never heard has an empty slot.
 *
 * Closing leaves the file, as SGLang does; see {@linkcode removeSlotFile}.
 *
 * @example
 * ```ts
 * import { removeSlotFile, shmPathFor, SlotFilePublisher } from "./mod.ts";
 *
 * const path = shmPathFor("kv-metrics-example");
 * {
 *   using publisher = new SlotFilePublisher(path, { dpSize: 1 });
 *   console.log(publisher.name);
 * }
 * removeSlotFile(path);
 * ```
 */
export class SlotFilePublisher implements KvMetricsPublisher, Disposable {
  readonly name = "slot file";
  /** The path of the slot file. */
  readonly path: string;
  /** How many ranks it has. */
  readonly dpSize: number;

  readonly #writer: GroupWriter;
  readonly #encoder: SnapshotEncoder = new SnapshotEncoder();
  readonly #lockTimeoutMs: number;
  #closed = false;

  /**
   * Opens the file, or makes it.
   *
   * @param path The slot file; see {@linkcode shmPathFor}.
   * @param options The ranks, and how long to wait.
   * @throws {RangeError} If an option is out of range.
   * @throws {SlotFileError} If the file cannot be made or opened, or another kind of file is there.
   * @throws {LockTimeoutError} If another process keeps the lock.
   * @throws {Deno.errors.NotCapable} Without `--allow-ffi`.
   */
  constructor(path: string, options: SlotFilePublisherOptions) {
    const { dpSize, lockTimeoutMs = 1 } = options;
    checkDpSize(dpSize);
    if (!(lockTimeoutMs >= 0)) {
      throw new RangeError(
        `Cannot use lockTimeoutMs ${lockTimeoutMs}: not a number of milliseconds`,
      );
    }
    cString(path);
    this.path = path;
    this.dpSize = dpSize;
    this.#lockTimeoutMs = lockTimeoutMs;
    const header = { version: VERSION, dpSize, slotSize: SLOT_SIZE };
    this.#writer = new GroupWriter(path, header, lockTimeoutMs, OPEN_PATIENCE_MS);
  }

  /**
   * Publishes one message; its snapshot is dated by its arrival.
   *
   * @throws {RangeError} If the file has no such rank.
   * @throws {LockTimeoutError} If another process keeps the lock; nothing was written.
   * @throws {SlotFileError} If the path is gone and cannot be restored.
   * @throws {TypeError} If the publisher is closed.
   */
  publish({ metrics, arrivedAtMs }: ReceivedKvMetrics): void {
    if (this.#closed) throw new TypeError("Cannot publish metrics: the publisher is closed");
    const dpRank = metrics.dataParallelRank;
    checkDpRank(dpRank, this.dpSize);
    const end = this.#encoder.encode(loadSnapshotFrom(metrics, arrivedAtMs));
    const at = payloadAddressOf(this.#encoder.image);
    if (this.#writer.publish([{ dpRank, at, byteLength: end - PAYLOAD_AT }])) return;
    throw new LockTimeoutError(this.path, this.#lockTimeoutMs);
  }

  /** Unmaps and closes; the file stays. Twice is fine. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#writer.close();
  }

  /** Closes the publisher at the end of a `using` scope. */
  [Symbol.dispose](): void {
    this.close();
  }
}
