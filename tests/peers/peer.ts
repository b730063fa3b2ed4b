/** SGLang's own load module in a process of its own, for tests. */

import type { LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { DriverProcess } from "./driver_process.ts";
import { asDriver, type DriverSnapshot, fromDriver } from "./driver_values.ts";
import { PeerLock, PeerReader, PeerWriter, PeerZmqReader } from "./peer_handles.ts";
import { ensurePeers } from "./setup.ts";

/** What Python made of one payload. */
export type Decoded =
  | {
    readonly ok: true;
    readonly snapshot: LoadSnapshot;
    /** What Python encodes the snapshot as. */
    readonly reencoded: Uint8Array;
  }
  | { readonly ok: false; readonly error: string; readonly type: string };

/** What SGLang's `to_dict` gave, or the text of its `ValueError`. */
export type DictResult =
  | { readonly ok: true; readonly dict: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly error: string };

/** A metric as `prometheus_client` reads it. */
export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  /** Name, labels and value. */
  readonly samples: readonly (readonly [string, Readonly<Record<string, string>>, number])[];
}

/** The server arguments that decide who uses ZeroMQ; what is left out gets SGLang's default. */
export interface ServerSettings {
  readonly attnDpEnabled?: boolean;
  readonly nnodes?: number;
  readonly nodeRank?: number;
  readonly numDpRanks?: number;
  readonly loadBalanceMethod?: string;
  readonly tokenizerWorkerNum?: number;
  /** The environment variable SGLANG_LOAD_SNAPSHOT_USE_ZMQ. */
  readonly useZmq?: boolean;
}

/** A process that speaks for SGLang. What it opened is gone when it ends. */
export class PythonPeer implements AsyncDisposable {
  readonly #process: DriverProcess;

  private constructor(process: DriverProcess) {
    this.#process = process;
  }

  /**
   * Starts a peer and waits until it answers.
   *
   * @throws {Error} If there is no Python to start; {@linkcode peerTests} leaves tests out instead.
   */
  static async start(): Promise<PythonPeer> {
    const peers = await ensurePeers();
    if (peers.state === "missing") throw new Error(`No Python peers: ${peers.reason}`);
    const peer = new PythonPeer(new DriverProcess(peers));
    try {
      await peer.constants();
    } catch (error) {
      await peer[Symbol.asyncDispose]();
      throw error;
    }
    return peer;
  }

  /** The process's number. */
  get pid(): number {
    return this.#process.pid;
  }

  /** Settles when the process has ended, however it did. */
  get status(): Promise<Deno.CommandStatus> {
    return this.#process.status;
  }

  /** What Python logged so far. */
  get said(): string {
    return this.#process.said;
  }

  /** Sends a signal; after one that ends the process, every open request is rejected. */
  kill(signal: Deno.Signal): void {
    this.#process.kill(signal);
  }

  /** Ends the process, a stopped one too, and waits until it is gone. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#process.end();
  }

  /** SGLang's constants of the layout. */
  async constants(): Promise<
    { readonly magic: Uint8Array; version: number; header_size: number; slot_size: number }
  > {
    return await this.#request("constants", {});
  }

  async shmPathFor(names: readonly string[]): Promise<string[]> {
    return await this.#request("shm_path_for", { names });
  }

  async fileSize(dpSize: number, slotSize?: number): Promise<number> {
    return await this.#request("file_size", { dp_size: dpSize, slot_size: slotSize });
  }

  async slotOffset(dpRank: number, slotSize?: number): Promise<number> {
    return await this.#request("slot_offset", { dp_rank: dpRank, slot_size: slotSize });
  }

  async encode(snapshots: readonly (LoadSnapshot | DriverSnapshot)[]): Promise<Uint8Array[]> {
    return await this.#request("encode", { snapshots: snapshots.map(asDriver) });
  }

  async decode(payloads: readonly Uint8Array[]): Promise<Decoded[]> {
    const results = await this.#request<DecodeAnswer[]>("decode", { payloads });
    return results.map((result) =>
      "error" in result
        ? { ok: false, ...result }
        : { ok: true, ...result, snapshot: fromDriver(result.snapshot) }
    );
  }

  /** SGLang's JSON of each snapshot; `null` as `include` asks for everything. */
  async toDict(
    requests: readonly (readonly [LoadSnapshot | DriverSnapshot, readonly string[] | null])[],
  ): Promise<DictResult[]> {
    const results = await this.#request<DictAnswer[]>("to_dict", {
      requests: requests.map(([snapshot, include]) => [asDriver(snapshot), include]),
    });
    return results.map((result) =>
      "error" in result ? { ok: false, error: result.error } : { ok: true, ...result }
    );
  }

  /** SGLang's text for `/v1/loads?format=prometheus`; `null` as `include` asks for everything. */
  async prometheusText(
    snapshots: readonly LoadSnapshot[],
    include: readonly string[] | null,
  ): Promise<string> {
    return await this.#request("prometheus_text", { snapshots: snapshots.map(asDriver), include });
  }

  /** What Python's `prometheus_client` reads out of a scrape. */
  async parsePrometheus(text: string): Promise<MetricFamily[]> {
    return await this.#request("parse_prometheus", { text });
  }

  async openWriter(
    path: string,
    { dpSize, dpRank }: { readonly dpSize: number; readonly dpRank: number },
  ): Promise<PeerWriter> {
    const args = { path, dp_size: dpSize, dp_rank: dpRank };
    return new PeerWriter(this.#process, await this.#request("writer_open", args));
  }

  async openReader(path: string, { dpSize }: { readonly dpSize: number }): Promise<PeerReader> {
    const args = { path, dp_size: dpSize };
    return new PeerReader(this.#process, await this.#request("reader_open", args));
  }

  async openZmqWriter(
    endpoint: string,
    { dpSize, dpRank }: { readonly dpSize: number; readonly dpRank: number },
  ): Promise<PeerWriter> {
    const args = { endpoint, dp_size: dpSize, dp_rank: dpRank };
    return new PeerWriter(this.#process, await this.#request("zmq_writer_open", args));
  }

  /** Binds SGLang's PULL; the reader tells the endpoint, with the port that a wildcard got. */
  async openZmqReader(
    endpoint: string,
    shmPath: string,
    { dpSize }: { readonly dpSize: number },
  ): Promise<PeerZmqReader> {
    const args = { endpoint, shm_path: shmPath, dp_size: dpSize };
    const opened = await this.#request<{ handle: number; endpoint: string }>(
      "zmq_reader_open",
      args,
    );
    return new PeerZmqReader(this.#process, opened.handle, opened.endpoint);
  }

  /** Takes the file's lock as SGLang does, and resolves when it is held. */
  async holdLock(
    path: string,
    mode: "shared" | "exclusive",
    { seconds }: { readonly seconds?: number } = {},
  ): Promise<PeerLock> {
    const args = { path, exclusive: mode === "exclusive", seconds };
    return new PeerLock(this.#process, await this.#request("hold_lock", args));
  }

  async shouldUseZmq(settings: ServerSettings): Promise<boolean> {
    return await this.#request("should_use_zmq", { server: toServer(settings) });
  }

  async zmqReaderOwner(settings: ServerSettings, caller: string): Promise<boolean> {
    return await this.#request("zmq_reader_owner", { server: toServer(settings), caller });
  }

  async zmqAddrFor(
    portArgs: { readonly instanceId: string; readonly loadCollectorIpcName?: string },
  ): Promise<string> {
    const { instanceId, loadCollectorIpcName = "" } = portArgs;
    return await this.#request("zmq_addr_for", {
      port_args: { instance_id: instanceId, load_collector_ipc_name: loadCollectorIpcName },
    });
  }

  /** The driver's answers are taken at their word: it is ours. */
  async #request<Answer>(cmd: string, args: Readonly<Record<string, unknown>>): Promise<Answer> {
    return await this.#process.request(cmd, args) as Answer;
  }
}

type DecodeAnswer =
  | { readonly snapshot: DriverSnapshot; readonly reencoded: Uint8Array }
  | { readonly error: string; readonly type: string };

type DictAnswer =
  | { readonly dict: Readonly<Record<string, unknown>> }
  | { readonly error: string; readonly type: string };

function toServer(settings: ServerSettings): Record<string, unknown> {
  return {
    attn_dp_enabled: settings.attnDpEnabled,
    nnodes: settings.nnodes,
    node_rank: settings.nodeRank,
    num_dp_ranks: settings.numDpRanks,
    load_balance_method: settings.loadBalanceMethod,
    tokenizer_worker_num: settings.tokenizerWorkerNum,
    use_zmq: settings.useZmq,
  };
}
