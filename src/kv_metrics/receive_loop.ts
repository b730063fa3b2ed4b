/**
 * The receiver's loop: takes messages, checks every byte of them, and hands them over. It owns its
 * thread and is the only part that ever waits. Whatever a message holds, the loop goes on; only what
 * happens to the socket itself ends it.
 */

import { KvMetricsDecodeError } from "../errors.ts";
import { CoarseClock } from "../slotfile/coarse_clock.ts";
import type { Libc } from "../slotfile/libc.ts";
import { HEARTBEAT_MS, type MessageSource } from "../zmq/drain_loop.ts";
import { MULTIPART, NOTHING } from "../zmq/socket.ts";
import { checkKvMetrics, type KvMetricsCheckOptions } from "./check_kv_metrics.ts";
import { decodeKvMetrics } from "./codec.ts";
import { kvFieldNumber } from "./fields.ts";
import type { KvMetrics } from "./kv_metrics.ts";
import { ARRIVED_AT, putMetrics, RECORD_LENGTH, SEQUENCE, UNIX_TIME } from "./message_record.ts";
import type { ReceiveBlock } from "./receive_block.ts";
import type { KvMetricsRefusalKind } from "./refusals.ts";

/**
 * The longest message that is taken, in bytes. It is twice what decoding takes: what is a little too
 * long is counted, and what is much too long costs its sender the connection.
 */
export const MAX_MESSAGE_BYTES = 16_384;

// So many messages are taken before what is new is shown: a flood delays nobody for long.
const BATCH = 512;

const KV_ACTIVE = kvFieldNumber("kv_active_blocks");
const KV_TOTAL = kvFieldNumber("kv_total_blocks");

/** What a loop is told besides where messages come from and go to. */
export interface ReceiveTerms {
  /** Ranks from this one on are refused. */
  readonly maxRanks: number;
  /** How many tokens a sender's block has. */
  readonly tokensPerBlock: number;
}

/** One rank's newest message, until the batch ends. */
class Newest {
  readonly dpRank: number;
  readonly record: Float64Array<ArrayBuffer> = new Float64Array(RECORD_LENGTH);
  isPending = false;

  constructor(dpRank: number) {
    this.dpRank = dpRank;
  }
}

/** Drains one source into one block. */
export class ReceiveLoop {
  readonly #source: MessageSource;
  readonly #block: ReceiveBlock;
  readonly #clock: CoarseClock;
  readonly #limits: KvMetricsCheckOptions;
  readonly #tokensPerBlock: number;
  readonly #buffer: Uint8Array<ArrayBuffer> = new Uint8Array(MAX_MESSAGE_BYTES);
  /** Views of the buffer by length: making one costs as much as a call of libzmq. */
  readonly #views: (Uint8Array<ArrayBuffer> | undefined)[] = [];
  readonly #newest: (Newest | undefined)[] = [];
  readonly #pending: Newest[] = [];
  #nowMs = 0;
  #unixMs = 0;
  #accepted = 0;

  /**
   * @param libc For the clock.
   * @param source Where messages come from.
   * @param block Where they go.
   * @param terms What is taken, and how it is counted.
   */
  constructor(libc: Libc, source: MessageSource, block: ReceiveBlock, terms: ReceiveTerms) {
    this.#source = source;
    this.#block = block;
    this.#clock = new CoarseClock(libc);
    this.#limits = { dpSize: terms.maxRanks };
    this.#tokensPerBlock = terms.tokensPerBlock;
  }

  /**
   * Runs until the block says stop.
   *
   * @throws {ZmqError} If the socket cannot be used any more.
   */
  run(): void {
    const block = this.#block;
    while (!block.isStopping) {
      block.beat();
      block.counters.set("refusedPeers", this.#source.refusedPeers);
      this.#source.wait(HEARTBEAT_MS);
      this.#turn();
    }
  }

  /** Takes a batch and shows it. */
  #turn(): void {
    this.#nowMs = this.#clock.nowMs();
    this.#unixMs = Date.now();
    const before = this.#accepted;
    let taken = 0;
    while (taken < BATCH && this.#take()) taken++;
    if (this.#accepted === before) return;
    for (const newest of this.#pending) {
      newest.isPending = false;
      this.#block.table.put(newest.dpRank, newest.record);
    }
    this.#pending.length = 0;
    this.#block.ring();
  }

  #take(): boolean {
    const size = this.#source.receive(this.#buffer);
    if (size === NOTHING) return false;
    this.#block.counters.count("received");
    if (size === MULTIPART) this.#block.refusals.count("multipart");
    else if (size > this.#buffer.length) this.#block.refusals.count("size");
    else this.#check(this.#views[size] ??= this.#buffer.subarray(0, size));
    return true;
  }

  #check(bytes: Uint8Array<ArrayBuffer>): void {
    const verdict = this.#judge(bytes);
    if (typeof verdict === "string") this.#block.refusals.count(verdict);
    else this.#accept(verdict);
  }

  /** Whatever is wrong with a message, it is a reason to refuse it and no more. */
  #judge(bytes: Uint8Array<ArrayBuffer>): KvMetrics | KvMetricsRefusalKind {
    try {
      const check = checkKvMetrics(decodeKvMetrics(bytes), this.#limits);
      if (check.state === "faulty") {
        const isRank = check.field === "dataParallelRank" && check.fault === "out-of-range";
        return isRank ? "rank" : check.fault;
      }
      const { kvActiveBlocks, kvTotalBlocks } = check.metrics;
      const mostTokens = Math.max(kvActiveBlocks, kvTotalBlocks) * this.#tokensPerBlock;
      return mostTokens > Number.MAX_SAFE_INTEGER ? "out-of-range" : check.metrics;
    } catch (error) {
      return error instanceof KvMetricsDecodeError ? error.reason : "internal";
    }
  }

  #accept(metrics: KvMetrics): void {
    const dpRank = metrics.dataParallelRank;
    const newest = this.#newest[dpRank] ??= new Newest(dpRank);
    const { record } = newest;
    putMetrics(record, metrics);
    // From here on blocks are tokens, whatever the sender counts.
    record[KV_ACTIVE]! *= this.#tokensPerBlock;
    record[KV_TOTAL]! *= this.#tokensPerBlock;
    record[ARRIVED_AT] = this.#nowMs;
    record[UNIX_TIME] = this.#unixMs;
    record[SEQUENCE] = ++this.#accepted;
    if (!newest.isPending) {
      newest.isPending = true;
      this.#pending.push(newest);
    }
    const { counters, queue } = this.#block;
    counters.count("accepted");
    const overtaken = queue.put(record);
    if (overtaken > 0) counters.count("overtaken", overtaken);
  }
}
