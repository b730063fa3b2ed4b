/** What a receiver can be told, and what it makes of that. */

import { checkDpSize, MAX_DP_SIZE } from "../slotfile/layout.ts";
import type { CurveServerOptions } from "../zmq/curve.ts";
import { parseEndpoint } from "../zmq/endpoint.ts";
import { MAX_QUEUE_SIZE } from "./message_ring.ts";
import type { ReceiveWorkerData } from "./receive_worker_data.ts";

/** Options of {@linkcode KvMetricsReceiver.open}. */
export interface KvMetricsReceiverOptions {
  /**
   * How many ranks the engine has, 1..65535. Messages of others are refused, and `health` names each
   * of them. Without it the engine tells by and by: every rank below `maxRanks` is taken, and
   * `health` names those up to the highest that was heard.
   */
  readonly dpSize?: number;
  /** Without `dpSize`: ranks from this one on are refused. @default {1024} */
  readonly maxRanks?: number;
  /**
   * How many tokens a sender's block has: 1 for SGLang, whose two "blocks" count tokens. A fork that
   * sends pages has its page size. What the receiver gives out is in tokens in any case.
   *
   * @default {1}
   */
  readonly tokensPerBlock?: number;
  /**
   * From which age on a rank counts as stale, in milliseconds since its arrival. Schedulers report
   * with prefills and every 40 decode steps, and not at all while they are idle: only a limit that
   * is far longer tells that something is wrong.
   *
   * @default {10_000}
   */
  readonly staleAfterMs?: number;
  /**
   * How many messages are kept for the loop that takes each of them, 0..1048576; then the oldest
   * gives way. `latest` does not need it.
   *
   * @default {1024}
   */
  readonly queueSize?: number;
  /**
   * Messages that libzmq keeps for each sender until the worker takes them; ZMQ_RCVHWM. A sender
   * beyond that is held up, not the others. @default {1000}
   */
  readonly receiveHighWaterMark?: number;
  /** Keys, so that only known senders get in. SGLang's own scheduler does not know CURVE. */
  readonly curve?: CurveServerOptions;
  /**
   * Binds beyond this machine without keys: whoever reaches the port can then tell any load.
   *
   * @default {false}
   */
  readonly allowInsecureBind?: boolean;
  /** A system libzmq to use instead of the one that npm:zeromq ships. */
  readonly libzmqPath?: string;
  /** Closes the receiver when it aborts. */
  readonly signal?: AbortSignal;
}

/** What a receiver and its worker need to know; all that was left out has its default. */
export interface ReceiverSettings {
  /** `null` where the engine tells by and by. */
  readonly dpSize: number | null;
  readonly staleAfterMs: number;
  /** What the worker is told, except for what is made for it. */
  readonly worker: Omit<ReceiveWorkerData, "block" | "wakeupFd">;
}

/**
 * Checks the options.
 *
 * @throws {RangeError} If the endpoint or an option cannot be used.
 */
export function settingsOf(endpoint: string, options: KvMetricsReceiverOptions): ReceiverSettings {
  const { dpSize, queueSize = 1024, receiveHighWaterMark = 1000, tokensPerBlock = 1 } = options;
  const { staleAfterMs = 10_000 } = options;
  if (dpSize !== undefined) checkDpSize(dpSize);
  const maxRanks = dpSize ?? options.maxRanks ?? 1024;
  checkCount("maxRanks", maxRanks, 1, MAX_DP_SIZE);
  checkCount("queueSize", queueSize, 0, MAX_QUEUE_SIZE);
  checkCount("tokensPerBlock", tokensPerBlock, 1, MAX_INT);
  checkCount("receiveHighWaterMark", receiveHighWaterMark, 1, MAX_INT);
  if (!(staleAfterMs >= 0)) {
    throw new RangeError(`Cannot use staleAfterMs ${staleAfterMs}: not a number of milliseconds`);
  }
  parseEndpoint(endpoint, "bind");
  return {
    dpSize: dpSize ?? null,
    staleAfterMs,
    worker: {
      endpoint,
      maxRanks,
      queueSize,
      receiveHighWaterMark,
      tokensPerBlock,
      curve: options.curve ?? null,
      allowInsecureBind: options.allowInsecureBind ?? false,
      libzmqPath: options.libzmqPath ?? null,
    },
  };
}

const MAX_INT = 2 ** 31 - 1;

function checkCount(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new RangeError(`Cannot use ${name} ${value}: not an integer from ${least} to ${most}`);
}
