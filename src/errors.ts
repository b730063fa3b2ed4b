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
