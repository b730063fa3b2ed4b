/** What the collector's worker is given, and what it answers. */

import type { CurveServerOptions } from "./curve.ts";

/** What `workers/drain_worker.ts` gets as `workerData`. */
export interface DrainWorkerData {
  readonly endpoint: string;
  readonly shmPath: string;
  readonly dpSize: number;
  readonly slotSize: number;
  readonly receiveHighWaterMark: number;
  /** The memory of a ControlBlock. */
  readonly control: SharedArrayBuffer;
  /** The descriptor of a Wakeup. */
  readonly wakeupFd: number;
  readonly curve: CurveServerOptions | null;
  readonly allowInsecureBind: boolean;
  readonly libzmqPath: string | null;
}

/** What it says when it is bound. */
export interface DrainWorkerReady {
  /** The endpoint that it is bound to. */
  readonly endpoint: string;
}
