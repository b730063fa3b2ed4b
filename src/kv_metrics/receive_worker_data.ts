/** What a receiver's worker is given, and what it answers. */

import type { CurveServerOptions } from "../zmq/curve.ts";
import type { ReceiveBlockSize } from "./receive_block.ts";

/** What `workers/kv_metrics_worker.ts` gets as `workerData`. */
export interface ReceiveWorkerData extends ReceiveBlockSize {
  readonly endpoint: string;
  readonly receiveHighWaterMark: number;
  readonly tokensPerBlock: number;
  /** The memory of a ReceiveBlock. */
  readonly block: SharedArrayBuffer;
  /** The descriptor of a Wakeup. */
  readonly wakeupFd: number;
  readonly curve: CurveServerOptions | null;
  readonly allowInsecureBind: boolean;
  readonly libzmqPath: string | null;
}

/** What it says when it is bound. */
export interface ReceiveWorkerReady {
  /** The endpoint that it is bound to. */
  readonly endpoint: string;
}
