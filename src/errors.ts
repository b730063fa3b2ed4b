/** The errors that a caller can branch on; everything else is a built-in error. */

/** Why a slot file cannot be used; see {@linkcode SlotFileError.reason}. */
export type SlotFileReason =
  /** Nothing is at the path. */
  | "absent"
  /** The file is there, but its creator has not finished it: empty, or a header of zeros. */
  | "unfinished"
  /** This process may not open it. */
  | "permission"
  /** Not a regular file: a directory, a symbolic link, a socket. */
  | "not-regular"
  /** It belongs to another user, who is not root. */
  | "foreign-owner"
  /** The first bytes are not a slot file's. */
  | "magic"
  /** A layout version that this release does not know. */
  | "version"
  /** The header names another number of ranks than the caller does, or none. */
  | "dp-size"
  /** The header names a slot size that cannot be. */
  | "slot-size"
  /** The file is shorter than its header says. */
  | "truncated"
  /** The path cannot be a file's: too long, empty, or with a NUL. */
  | "path"
  /** The file system is full. */
  | "no-space"
  /** The operating system has no slot files, or a needed function of libc is missing. */
  | "unsupported"
  /** A system call failed for another reason; see `errno`. */
  | "syscall";

/** What {@linkcode SlotFileError} tells besides its text. */
export interface SlotFileErrorOptions extends ErrorOptions {
  /** The system call that failed, if one did. */
  readonly syscall?: string;
  /** The name of its errno, such as `"EACCES"`. */
  readonly errno?: string;
}

/**
 * A slot file cannot be opened, created or used.
 *
 * @example
 * ```ts
 * import { ShmLoadSnapshotReader, SlotFileError } from "./mod.ts";
 *
 * try {
 *   using reader = new ShmLoadSnapshotReader("/dev/shm");
 *   reader.readAll();
 * } catch (error) {
 *   if (!(error instanceof SlotFileError)) throw error;
 *   console.log(error.reason); // "not-regular"
 * }
 * ```
 */
export class SlotFileError extends Error {
  /** Always `"SlotFileError"`. */
  override readonly name = "SlotFileError";
  /** What callers branch on. */
  readonly reason: SlotFileReason;
  /** The path of the slot file. */
  readonly path: string;
  /** The system call that failed, or `null`. */
  readonly syscall: string | null;
  /** The name of its errno, such as `"ENOSPC"`, or `null`. */
  readonly errno: string | null;

  /** Made by this module only. */
  constructor(
    reason: SlotFileReason,
    path: string,
    message: string,
    options: SlotFileErrorOptions = {},
  ) {
    super(message, options);
    this.reason = reason;
    this.path = path;
    this.syscall = options.syscall ?? null;
    this.errno = options.errno ?? null;
  }
}

/**
 * The lock of a slot file stayed taken for longer than the writer may wait. Nothing was written;
 * the next write may succeed.
 */
export class LockTimeoutError extends Error {
  /** Always `"LockTimeoutError"`. */
  override readonly name = "LockTimeoutError";
  /** The path of the slot file. */
  readonly path: string;
  /** How long the writer waited, in milliseconds. */
  readonly waitedMs: number;

  /** Made by this module only. */
  constructor(path: string, waitedMs: number) {
    super(`Cannot lock ${path}: held by another process for ${waitedMs} ms`);
    this.path = path;
    this.waitedMs = waitedMs;
  }
}

/** A payload is not a load snapshot; {@linkcode SnapshotDecodeError.offset} tells where. */
export class SnapshotDecodeError extends Error {
  /** Always `"SnapshotDecodeError"`. */
  override readonly name = "SnapshotDecodeError";
  /** Where in the payload the fault stands, in bytes from its start. */
  readonly offset: number;

  /** Made by this module only. */
  constructor(message: string, offset: number) {
    super(`Cannot decode load snapshot: ${message} at byte ${offset}`);
    this.offset = offset;
  }
}

/** A file that could not be used as libzmq, and why. */
export interface LibzmqFailure {
  /** The file. */
  readonly path: string;
  /** Why it could not be used. */
  readonly message: string;
}

/**
 * There is no libzmq to use: none was found, none loads here, or it is too old, or was built without
 * what is asked of it.
 *
 * @example
 * ```ts
 * import { LibzmqError, ZmqLoadSnapshotWriter } from "./mod.ts";
 *
 * try {
 *   new ZmqLoadSnapshotWriter("tcp://127.0.0.1:5555", {
 *     dpSize: 1,
 *     dpRank: 0,
 *     libzmqPath: "/nowhere/libzmq.so.5",
 *   });
 * } catch (error) {
 *   if (!(error instanceof LibzmqError)) throw error;
 *   for (const { path } of error.failures) console.log(path); // "/nowhere/libzmq.so.5"
 * }
 * ```
 */
export class LibzmqError extends Error {
  /** Always `"LibzmqError"`. */
  override readonly name = "LibzmqError";
  /** Each file that was tried, in this order. */
  readonly failures: readonly LibzmqFailure[];

  /** Made by this module only. */
  constructor(reason: string, failures: readonly LibzmqFailure[]) {
    const tried = failures.map(({ path, message }) =>
      message.includes(path) ? message : `${path}: ${message}`
    );
    super(`Cannot use libzmq: ${[reason, ...tried].join("\n  ")}`);
    this.failures = failures;
  }
}

/** A call of libzmq failed, or a system call that was made for it. */
export class ZmqError extends Error {
  /** Always `"ZmqError"`. */
  override readonly name = "ZmqError";
  /** The function that failed, such as `"zmq_bind"`. */
  readonly call: string;
  /** The endpoint that it was for, or `null`. */
  readonly endpoint: string | null;
  /** The name of the error, such as `"EACCES"` or ZeroMQ's own `"ETERM"`. */
  readonly errno: string;

  /** Made by this module only. */
  constructor(call: string, endpoint: string | null, errno: string, reason: string) {
    super(`Cannot ${call}${endpoint === null ? "" : ` ${endpoint}`}: ${reason} (${errno})`);
    this.call = call;
    this.endpoint = endpoint;
    this.errno = errno;
  }
}

/**
 * The endpoint belongs to another socket: of another process, or of this one. It was left as it is.
 */
export class EndpointInUseError extends Error {
  /** Always `"EndpointInUseError"`. */
  override readonly name = "EndpointInUseError";
  /** The endpoint that was to be bound. */
  readonly endpoint: string;

  /** Made by this module only. */
  constructor(endpoint: string) {
    super(`Cannot bind ${endpoint}: another socket is bound to it`);
    this.endpoint = endpoint;
  }
}

/** Why a worker is gone: it ended with an error, it ended without a word, or it does not answer. */
export type WorkerFailure = "crashed" | "exited" | "silent";

/**
 * The worker that owns a socket failed after it had started. The values that it published last stay
 * readable; nothing new arrives.
 */
export class WorkerFailedError extends Error {
  /** Always `"WorkerFailedError"`. */
  override readonly name = "WorkerFailedError";
  /** What happened to the worker. */
  readonly failure: WorkerFailure;

  /** Made by this module only. */
  constructor(failure: WorkerFailure, message: string, options?: ErrorOptions) {
    super(`Cannot receive any more: ${message}`, options);
    this.failure = failure;
  }
}

/** Why a rank cannot be chosen; see {@linkcode NoRankAvailableError.faults}. */
export type DispatchFault = "unreported" | "stale" | "corrupt" | "drained";

/**
 * No rank can take a request: none is live, or those that are were drained.
 *
 * @example
 * ```ts
 * import { DpBudget, NoRankAvailableError } from "./mod.ts";
 *
 * const budget = new DpBudget(2);
 * try {
 *   budget.dispatch();
 * } catch (error) {
 *   if (!(error instanceof NoRankAvailableError)) throw error;
 *   console.log(error.faults); // ["unreported", "unreported"]
 * }
 * ```
 */
export class NoRankAvailableError extends Error {
  /** Always `"NoRankAvailableError"`. */
  override readonly name = "NoRankAvailableError";
  /** Why not, by rank; empty while the group's size is unknown. */
  readonly faults: readonly DispatchFault[];

  /** Made by this module only. */
  constructor(faults: readonly DispatchFault[]) {
    const kinds = [...new Set(faults)].map((kind) =>
      `${faults.filter((fault) => fault === kind).length} ${kind}`
    );
    super(`Cannot choose a rank: ${faults.length === 0 ? "no group is known" : kinds.join(", ")}`);
    this.faults = faults;
  }
}

/** Why a pickle is not read; see {@linkcode PickleRefusedError}. */
export type PickleRefusal =
  /** It is longer than any KvMetrics. */
  | "size"
  /** It does not begin with a protocol from 2 to 5. */
  | "protocol"
  /** A frame that is not the whole rest, or stands elsewhere than at the start. */
  | "frame"
  /** It ends too early, or a length in it leads behind the end. */
  | "truncated"
  /** Something follows its end. */
  | "trailing"
  /** An instruction that no KvMetrics needs, such as INST, EXT1 or PERSID. */
  | "opcode"
  /** A name other than the few that a KvMetrics needs, such as os.system. */
  | "global"
  /** One of those names is called in another way than a KvMetrics needs. */
  | "call"
  /** The state of something is set that has none, or has one already. */
  | "build"
  /** The memo is written out of order, read where nothing is, or full. */
  | "memo"
  /** Values are nested deeper than in any KvMetrics. */
  | "depth"
  /** More is taken from the stack than is there, or too much is put on it. */
  | "stack"
  /** A dict is filled in another way than a KvMetrics needs. */
  | "dict"
  /** Text that is not UTF-8. */
  | "text"
  /** An integer beyond 2^53. */
  | "integer"
  /** A numpy scalar of an unknown type, or one whose bytes do not fit its type. */
  | "numpy"
  /** A field holds something else than a number or None. */
  | "value"
  /** It is sound, and not a KvMetrics. */
  | "result";

/** Why bytes are not taken for KvMetrics; see {@linkcode KvMetricsDecodeError.reason}. */
export type KvMetricsRefusal =
  | PickleRefusal
  /** Neither a pickle nor a MessagePack array. */
  | "encoding"
  /** A MessagePack array of another class. */
  | "class";

/** Bytes are not KvMetrics. What is special to pickles is a {@linkcode PickleRefusedError}. */
export class KvMetricsDecodeError extends Error {
  /** The name of the class. */
  override readonly name: string = "KvMetricsDecodeError";
  /** What callers branch on. */
  readonly reason: KvMetricsRefusal;
  /** Where in the bytes the fault stands, from their start. */
  readonly offset: number;
  /** What was refused, short and printable: such as `"posix.system"` or `"INST"`. */
  readonly what: string;

  /** Made by this module only. */
  constructor(reason: KvMetricsRefusal, offset: number, what: string) {
    super(`Cannot decode KvMetrics: ${what} at byte ${offset} (${reason})`);
    this.reason = reason;
    this.offset = offset;
    this.what = what;
  }
}

/**
 * A pickle holds something else than a KvMetrics. Nothing of it was executed or constructed.
 *
 * @example
 * ```ts
 * import { decodeKvMetrics, PickleRefusedError } from "./mod.ts";
 *
 * const hostile = new TextEncoder().encode("..cposix\nsystem\n(Vid\ntR.");
 * hostile.set([0x80, 2]);
 * try {
 *   decodeKvMetrics(hostile);
 * } catch (error) {
 *   if (!(error instanceof PickleRefusedError)) throw error;
 *   console.log(error.reason, error.what, error.offset); // "global" "posix.system" 2
 * }
 * ```
 */
export class PickleRefusedError extends KvMetricsDecodeError {
  /** Always `"PickleRefusedError"`. */
  override readonly name = "PickleRefusedError";
  /** What callers branch on. */
  declare readonly reason: PickleRefusal;

  /** Made by this module only. */
  constructor(reason: PickleRefusal, offset: number, what: string) {
    super(reason, offset, what);
  }
}

/** What a thrown value says; whatever was thrown, this throws nothing. Not part of the public names. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return "a value without a text";
  }
}
