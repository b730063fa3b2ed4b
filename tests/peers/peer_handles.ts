/** What a Python peer has opened: writers, readers, locks and loops. */

import type { LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import type { DriverProcess } from "./driver_process.ts";
import { asDriver, type DriverSnapshot, fromDriver } from "./driver_values.ts";

/** When a loop ends by itself, and how fast it goes; without both limits it goes on until stopped. */
export interface LoopLimits {
  readonly count?: number;
  readonly seconds?: number;
  /** From the start of one step to the start of the next; 0 is as fast as can be. */
  readonly intervalUs?: number;
}

/** What a loop did. */
export interface LoopResult {
  readonly steps: number;
  readonly seconds: number;
  /** How long a step took, in microseconds. */
  readonly latencyUs: Readonly<Record<"p50" | "p90" | "p99" | "p999" | "max" | "mean", number>>;
}

/** What was read. */
export interface PeerRead {
  readonly snapshot: LoadSnapshot;
  /** What Python encodes the snapshot as. */
  readonly reencoded: Uint8Array;
}

/** Longest that a loop's result is waited for. */
const LOOP_MS = 600_000;

class Handle {
  readonly #process: DriverProcess;
  readonly #handle: number;

  constructor(process: DriverProcess, handle: number) {
    this.#process = process;
    this.#handle = handle;
  }

  protected async request<Answer>(
    cmd: string,
    args: Readonly<Record<string, unknown>> = {},
    answerMs?: number,
  ): Promise<Answer> {
    return await this.#process.request(cmd, { handle: this.#handle, ...args }, answerMs) as Answer;
  }

  protected async startLoop(
    cmd: string,
    args: Readonly<Record<string, unknown>>,
    { count, seconds, intervalUs }: LoopLimits,
  ): Promise<PeerLoop> {
    const limits = { count, seconds, interval_us: intervalUs };
    return new PeerLoop(this.#process, await this.request(cmd, { ...args, ...limits }));
  }
}

/** SGLang's `ShmLoadSnapshotWriter` or `ZmqLoadSnapshotWriter`. */
export class PeerWriter extends Handle {
  async write(snapshot: LoadSnapshot | DriverSnapshot): Promise<void> {
    await this.writeMany([snapshot]);
  }

  /** Writes one after the other in one request. */
  async writeMany(
    snapshots: readonly (LoadSnapshot | DriverSnapshot)[],
    { intervalUs = 0 }: { readonly intervalUs?: number } = {},
  ): Promise<void> {
    const args = { snapshots: snapshots.map(asDriver), interval_us: intervalUs };
    await this.request("write", args);
  }

  /** Publishes any bytes in SGLang's way. */
  async writeRaw(payload: Uint8Array): Promise<void> {
    await this.request("write_raw", { payload });
  }

  /**
   * Writes until told to stop; resolves when the first one is written. The step's number, from 1,
   * stands in `numRunningReqs`, `numWaitingReqs` and `numTotalTokens`, the time in `timestamp`. With
   * `moments`, step n also carries n modulo (moments + 1) decode moments, each n.
   */
  writeLoop(
    snapshot: LoadSnapshot | DriverSnapshot,
    { moments = 0, ...limits }: LoopLimits & { readonly moments?: number } = {},
  ): Promise<PeerLoop> {
    return this.startLoop("write_loop", { snapshot: asDriver(snapshot), moments }, limits);
  }

  /** Times SGLang's `write`: microseconds per call, by round. */
  async timeWrite(
    snapshot: LoadSnapshot | DriverSnapshot,
    { calls, rounds }: { readonly calls: number; readonly rounds: number },
  ): Promise<number[]> {
    const args = { snapshot: asDriver(snapshot), calls, rounds };
    return await this.request("time_write", args, LOOP_MS);
  }

  async close(): Promise<void> {
    await this.request("close");
  }
}

/** SGLang's `ShmLoadSnapshotReader`. */
export class PeerReader extends Handle {
  async read(dpRank: number): Promise<PeerRead | null> {
    const answer = await this.request<ReadAnswer | null>("read", { dp_rank: dpRank });
    return answer === null ? null : toRead(answer);
  }

  async readAll(): Promise<PeerRead[]> {
    return (await this.request<ReadAnswer[]>("read_all")).map(toRead);
  }

  /** Reads one rank, or all, until told to stop; resolves when the first read is done. */
  readLoop(
    { dpRank = null, ...limits }: LoopLimits & { readonly dpRank?: number | null } = {},
  ): Promise<PeerLoop> {
    return this.startLoop("read_loop", { dp_rank: dpRank }, limits);
  }

  /** Times SGLang's `read`, or `read_all` for `null`: microseconds per call, by round. */
  async timeRead(
    dpRank: number | null,
    { calls, rounds }: { readonly calls: number; readonly rounds: number },
  ): Promise<number[]> {
    return await this.request("time_read", { dp_rank: dpRank, calls, rounds }, LOOP_MS);
  }

  async close(): Promise<void> {
    await this.request("close");
  }
}

/** SGLang's `ZmqShmLoadSnapshotReader`. */
export class PeerZmqReader extends PeerReader {
  /** Where it is bound. */
  readonly endpoint: string;

  constructor(process: DriverProcess, handle: number, endpoint: string) {
    super(process, handle);
    this.endpoint = endpoint;
  }

  async poll(): Promise<void> {
    await this.request("poll");
  }
}

/** A lock that is held until it is released, its time is up, or the peer ends. */
export class PeerLock extends Handle {
  async release(): Promise<void> {
    await this.request("close");
  }
}

/** Work that goes on in the peer. */
export class PeerLoop extends Handle {
  /** Lets the loop end after its present step. */
  async stop(): Promise<void> {
    await this.request("loop_stop");
  }

  /** Resolves when the loop has ended; rejects when a step raised. */
  async result(): Promise<LoopResult> {
    const { latency_us, ...rest } = await this.request<
      Omit<LoopResult, "latencyUs"> & { readonly latency_us: LoopResult["latencyUs"] }
    >("loop_result", {}, LOOP_MS);
    return { ...rest, latencyUs: latency_us };
  }
}

interface ReadAnswer {
  readonly snapshot: DriverSnapshot;
  readonly reencoded: Uint8Array;
}

function toRead({ snapshot, reencoded }: ReadAnswer): PeerRead {
  return { snapshot: fromDriver(snapshot), reencoded };
}
