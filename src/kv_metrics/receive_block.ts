/**
 * What the main isolate and a receiver's worker share: the words of every worker, counters, the
 * newest message of each rank, and the queue of all.
 */

import { CONTROL_BYTES, ControlWords, SharedCounters } from "../zmq/control_words.ts";
import { MessageRing } from "./message_ring.ts";
import { RankTable } from "./rank_table.ts";
import { type KvMetricsRefusalKind, REFUSAL_KINDS } from "./refusals.ts";

/** What the worker counts besides refusals; each starts at 0 and only grows. */
export interface ReceiveCounts {
  /** Messages received, good or not. */
  readonly received: number;
  /** Messages that were good. */
  readonly accepted: number;
  /** Good messages that left the queue because nobody took them in time. */
  readonly overtaken: number;
  /** Connections that were refused because their CURVE key is not a known one. */
  readonly refusedPeers: number;
}

const COUNTERS: readonly (keyof ReceiveCounts)[] = [
  "received",
  "accepted",
  "overtaken",
  "refusedPeers",
];

/** How large the parts of a block are; both sides have to be told the same. */
export interface ReceiveBlockSize {
  /** Ranks that may report. */
  readonly maxRanks: number;
  /** Messages that the queue holds. */
  readonly queueSize: number;
}

/** One view of the block; each side makes its own. */
export class ReceiveBlock extends ControlWords {
  readonly counters: SharedCounters<keyof ReceiveCounts>;
  readonly refusals: SharedCounters<KvMetricsRefusalKind>;
  readonly queue: MessageRing;
  readonly table: RankTable;

  /**
   * @param size The sizes of its parts.
   * @param buffer The memory of the other side, or none to make it.
   */
  constructor({ maxRanks, queueSize }: ReceiveBlockSize, buffer?: SharedArrayBuffer) {
    const refusals = CONTROL_BYTES + COUNTERS.length * 8;
    const queue = refusals + REFUSAL_KINDS.length * 8;
    const table = queue + MessageRing.byteLength(queueSize);
    super(buffer ?? new SharedArrayBuffer(table + RankTable.byteLength(maxRanks)));
    this.counters = new SharedCounters(COUNTERS, this.buffer, CONTROL_BYTES);
    this.refusals = new SharedCounters(REFUSAL_KINDS, this.buffer, refusals);
    this.queue = new MessageRing(queueSize, this.buffer, queue);
    this.table = new RankTable(maxRanks, this.buffer, table);
  }
}
