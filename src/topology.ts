/** Which transport a server's loads take, which of its processes collects them, and where. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import { ShmLoadSnapshotReader } from "./slotfile/reader.ts";
import { nameDigest, safeName, shmPathFor } from "./slotfile/shm_path.ts";
import { ShmLoadSnapshotWriter } from "./slotfile/writer.ts";
import type { CurveClientOptions } from "./zmq/curve.ts";
import { ZmqShmLoadSnapshotReader, type ZmqShmLoadSnapshotReaderOptions } from "./zmq/reader.ts";
import { ZmqLoadSnapshotWriter } from "./zmq/writer.ts";

/** Forces ZeroMQ where it would not be needed. */
const USE_ZMQ = "SGLANG_LOAD_SNAPSHOT_USE_ZMQ";

/** Environment variables by name, such as `Deno.env.toObject()` gives. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The arguments of an SGLang server that decide; what is left out has SGLang's default. */
export interface ServerArgs {
  /**
   * `enable_dp_attention`: the ranks share one model over all nodes. As of 0.5.23 SGLang's
   * `attn_dp_enabled`.
   *
   * @default {false}
   */
  readonly enableDpAttention?: boolean;
  /** `nnodes`: how many nodes the server spans. @default {1} */
  readonly nnodes?: number;
  /** `node_rank`: which of them this is, from 0. @default {0} */
  readonly nodeRank?: number;
  /** `dp_size`: how many ranks. As of 0.5.23 SGLang's `num_dp_ranks`. @default {1} */
  readonly dpSize?: number;
  /** `load_balance_method`, in any case. @default {"round_robin"} */
  readonly loadBalanceMethod?: string;
  /** `tokenizer_worker_num`: how many processes take requests. @default {1} */
  readonly tokenizerWorkerNum?: number;
}

/** The part of SGLang's port arguments that says where loads go. */
export interface PortArgs {
  /** `instance_id`: the name that all processes of the server share. */
  readonly instanceId: string;
  /** `load_collector_ipc_name`: where the collector binds; empty or left out on a single node. */
  readonly loadCollectorIpcName?: string;
}

/** The processes of a server that read loads. */
export type ReaderCaller = "DataParallelController" | "TokenizerManager" | "MultiTokenizerRouter";

/** Options of {@linkcode createLoadSnapshotWriter}. */
export interface CreateWriterOptions {
  /** How many ranks the group has, 1..65535. */
  readonly dpSize: number;
  /** Which of them publishes, 0..dpSize - 1. */
  readonly dpRank: number;
  /** `publish` writes every so many calls; at least 1. @default {1} */
  readonly publishInterval?: number;
  /** Keys, if it comes to ZeroMQ and the collector wants them. */
  readonly curve?: CurveClientOptions;
  /** A system libzmq to use instead of the one that npm:zeromq ships. */
  readonly libzmqPath?: string;
  /** Environment variables, instead of the process's. */
  readonly environment?: Environment;
}

/** Options of {@linkcode createLoadSnapshotReader}; those of sockets count if this process collects. */
export interface CreateReaderOptions extends Omit<ZmqShmLoadSnapshotReaderOptions, "dpSize"> {
  /** Environment variables, instead of the process's. */
  readonly environment?: Environment;
}

/**
 * Whether a server's loads go over ZeroMQ instead of shared memory: when its ranks run on several
 * nodes under DP attention, or when SGLANG_LOAD_SNAPSHOT_USE_ZMQ says so.
 *
 * @param serverArgs The server's arguments.
 * @param environment Environment variables. By default the process's, where Deno may read this one.
 * @returns Whether they do.
 *
 * @example
 * ```ts
 * import { shouldUseZmq } from "./mod.ts";
 *
 * console.log(shouldUseZmq({ enableDpAttention: true, nnodes: 2 }, {})); // true
 * console.log(shouldUseZmq({ nnodes: 2 }, {})); // false
 * ```
 */
export function shouldUseZmq(serverArgs: ServerArgs, environment?: Environment): boolean {
  const { enableDpAttention = false, nnodes = 1 } = serverArgs;
  return (enableDpAttention && nnodes > 1) || isForced(environment);
}

/**
 * Whether a process owns the collector's socket. Of a server that uses ZeroMQ exactly one does, on
 * node 0; the others read the slot file that it fills.
 *
 * @param serverArgs The server's arguments.
 * @param caller Which process asks. With one rank there is no `DataParallelController`; with several
 *   tokenizer workers `MultiTokenizerRouter` stands for `TokenizerManager`.
 * @param environment As for {@linkcode shouldUseZmq}.
 * @returns Whether it does.
 *
 * @example
 * ```ts
 * import { zmqReaderOwner } from "./mod.ts";
 *
 * const args = { enableDpAttention: true, nnodes: 2, dpSize: 8, loadBalanceMethod: "total_tokens" };
 * console.log(zmqReaderOwner(args, "DataParallelController", {})); // true
 * console.log(zmqReaderOwner(args, "TokenizerManager", {})); // false
 * ```
 */
export function zmqReaderOwner(
  serverArgs: ServerArgs,
  caller: ReaderCaller,
  environment?: Environment,
): boolean {
  const { nodeRank = 0 } = serverArgs;
  if (!shouldUseZmq(serverArgs, environment) || nodeRank !== 0) return false;
  return caller === ownerOf(serverArgs);
}

/**
 * Where writers push and the collector binds.
 *
 * @param portArgs The server's port arguments.
 * @returns The endpoint: the one that they name, or else a Unix domain socket named after the server.
 *
 * @example
 * ```ts
 * import { zmqAddressFor } from "./mod.ts";
 *
 * console.log(zmqAddressFor({ instanceId: "4c00ec5647f7" }));
 * // ipc:///tmp/sglang_load_collector_4c00ec5647f7_b4fb99a3.sock
 * ```
 */
export function zmqAddressFor(portArgs: PortArgs): string {
  const { instanceId, loadCollectorIpcName } = portArgs;
  if (loadCollectorIpcName) return loadCollectorIpcName;
  return `ipc:///tmp/sglang_load_collector_${safeName(instanceId)}_${nameDigest(instanceId)}.sock`;
}

/**
 * Opens the writer that a rank of such a server has.
 *
 * @param serverArgs The server's arguments.
 * @param portArgs Its port arguments.
 * @param options The group and the rank.
 * @returns A writer over shared memory or over ZeroMQ; `write`, `publish` and `close` are in both.
 * @throws As the writer's constructor does.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot, createLoadSnapshotWriter, removeSlotFile, shmPathFor } from "./mod.ts";
 *
 * const portArgs = { instanceId: "topology-example" };
 * {
 *   using writer = createLoadSnapshotWriter({}, portArgs, { dpSize: 1, dpRank: 0 });
 *   writer.publish(() => createLoadSnapshot({ timestamp: Date.now() / 1000 }));
 * }
 * removeSlotFile(shmPathFor(portArgs.instanceId));
 * ```
 */
export function createLoadSnapshotWriter(
  serverArgs: ServerArgs,
  portArgs: PortArgs,
  options: CreateWriterOptions,
): ShmLoadSnapshotWriter | ZmqLoadSnapshotWriter {
  const { environment, curve, libzmqPath, ...rank } = options;
  if (!shouldUseZmq(serverArgs, environment)) {
    return new ShmLoadSnapshotWriter(shmPathFor(portArgs.instanceId), rank);
  }
  return new ZmqLoadSnapshotWriter(zmqAddressFor(portArgs), {
    ...rank,
    ...(curve === undefined ? {} : { curve }),
    ...(libzmqPath === undefined ? {} : { libzmqPath }),
  });
}

/**
 * Opens the reader that a process of such a server has: a collector if it owns the socket, else a
 * reader of the slot file.
 *
 * @param serverArgs The server's arguments.
 * @param portArgs Its port arguments.
 * @param caller Which process asks.
 * @param options Limits and keys. A server over several nodes binds to a network, so it needs `curve`
 *   or, as SGLang's own writers know no keys, `allowInsecureBind`.
 * @returns The reader; `read`, `readAll`, `health` and `close` are in both.
 * @throws As the reader's constructor, or its `open`, does.
 *
 * @example
 * ```ts
 * import { createLoadSnapshotReader } from "./mod.ts";
 *
 * const portArgs = { instanceId: "4c00ec5647f7" };
 * const reader = await createLoadSnapshotReader({ dpSize: 2 }, portArgs, "TokenizerManager");
 * console.log(reader.readAll().length);
 * await reader.close();
 * ```
 */
export async function createLoadSnapshotReader(
  serverArgs: ServerArgs,
  portArgs: PortArgs,
  caller: ReaderCaller,
  options: CreateReaderOptions = {},
): Promise<ShmLoadSnapshotReader | ZmqShmLoadSnapshotReader> {
  const { environment, ...rest } = options;
  const { dpSize = 1 } = serverArgs;
  const path = shmPathFor(portArgs.instanceId);
  if (zmqReaderOwner(serverArgs, caller, environment)) {
    return await ZmqShmLoadSnapshotReader.open(zmqAddressFor(portArgs), path, { ...rest, dpSize });
  }
  const { staleAfterMs, lockTimeoutMs } = rest;
  return new ShmLoadSnapshotReader(path, {
    dpSize,
    ...(staleAfterMs === undefined ? {} : { staleAfterMs }),
    ...(lockTimeoutMs === undefined ? {} : { lockTimeoutMs }),
  });
}

/** The process that owns the socket on node 0. */
function ownerOf(serverArgs: ServerArgs): ReaderCaller {
  const { dpSize = 1, loadBalanceMethod = "round_robin", tokenizerWorkerNum = 1 } = serverArgs;
  // A controller that balances by load looks at it for every request; any other never does.
  const byLoad = ["total_requests", "total_tokens"].includes(loadBalanceMethod.toLowerCase());
  if (dpSize > 1 && byLoad) return "DataParallelController";
  return tokenizerWorkerNum > 1 ? "MultiTokenizerRouter" : "TokenizerManager";
}

function isForced(environment: Environment | undefined): boolean {
  const value = environment === undefined ? readVariable() : environment[USE_ZMQ];
  switch (value?.toLowerCase()) {
    case "true":
    case "1":
    case "yes":
    case "y":
      return true;
    case undefined:
    case "false":
    case "0":
    case "no":
    case "n":
      return false;
    default:
      // As SGLang does, so that both ends of one server come to the same transport.
      getLogger(["loadslots", "topology"]).warn(
        "Ignored {variable}: {value} is not a boolean",
        { variable: USE_ZMQ, value },
      );
      return false;
  }
}

function readVariable(): string | undefined {
  const { state } = Deno.permissions.querySync({ name: "env", variable: USE_ZMQ });
  // Anything else would prompt, or throw.
  return state === "granted" ? Deno.env.get(USE_ZMQ) : undefined;
}
