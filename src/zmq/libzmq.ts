/** libzmq by FFI: the only file of the ZeroMQ part that opens a library. */

import { constants } from "node:os";
import { EndpointInUseError, LibzmqError, type LibzmqFailure, ZmqError } from "../errors.ts";
import { errnoName } from "../slotfile/libc.ts";
import { findLibzmq } from "./libzmq_path.ts";

/** The functions that are called, with their C declarations. */
export const LIBZMQ_SYMBOLS = {
  /** void zmq_version(int *major, int *minor, int *patch) */
  zmq_version: {
    parameters: [
      "buffer", // int *major
      "buffer", // int *minor
      "buffer", // int *patch
    ],
    result: "void",
  },
  /** int zmq_has(const char *capability) */
  zmq_has: {
    parameters: [
      "buffer", // const char *capability
    ],
    result: "i32",
  },
  /** int zmq_errno(void) */
  zmq_errno: { parameters: [], result: "i32" },
  /** const char *zmq_strerror(int errnum) */
  zmq_strerror: {
    parameters: [
      "i32", // int errnum
    ],
    result: "pointer",
  },
  /** void *zmq_ctx_new(void) */
  zmq_ctx_new: { parameters: [], result: "pointer" },
  /** int zmq_ctx_term(void *context): waits until the last socket is gone, so close them first */
  zmq_ctx_term: {
    parameters: [
      "pointer", // void *context
    ],
    result: "i32",
  },
  /** The same on another thread. */
  zmq_ctx_term_aside: {
    name: "zmq_ctx_term",
    parameters: [
      "pointer", // void *context
    ],
    result: "i32",
    nonblocking: true,
  },
  /** void *zmq_socket(void *context, int type) */
  zmq_socket: {
    parameters: [
      "pointer", // void *context
      "i32", // int type
    ],
    result: "pointer",
  },
  /** int zmq_close(void *socket) */
  zmq_close: {
    parameters: [
      "pointer", // void *socket
    ],
    result: "i32",
  },
  /** int zmq_setsockopt(void *socket, int option_name, const void *option_value, size_t option_len) */
  zmq_setsockopt: {
    parameters: [
      "pointer", // void *socket
      "i32", // int option_name
      "buffer", // const void *option_value
      "usize", // size_t option_len
    ],
    result: "i32",
  },
  /** int zmq_getsockopt(void *socket, int option_name, void *option_value, size_t *option_len) */
  zmq_getsockopt: {
    parameters: [
      "pointer", // void *socket
      "i32", // int option_name
      "buffer", // void *option_value
      "buffer", // size_t *option_len
    ],
    result: "i32",
  },
  /** int zmq_bind(void *socket, const char *endpoint) */
  zmq_bind: {
    parameters: [
      "pointer", // void *socket
      "buffer", // const char *endpoint
    ],
    result: "i32",
  },
  /** int zmq_connect(void *socket, const char *endpoint) */
  zmq_connect: {
    parameters: [
      "pointer", // void *socket
      "buffer", // const char *endpoint
    ],
    result: "i32",
  },
  /** int zmq_send(void *socket, const void *buf, size_t len, int flags) */
  zmq_send: {
    parameters: [
      "pointer", // void *socket
      "buffer", // const void *buf
      "usize", // size_t len
      "i32", // int flags
    ],
    result: "i32",
  },
  /** int zmq_recv(void *socket, void *buf, size_t len, int flags): the whole size, if cut short too */
  zmq_recv: {
    parameters: [
      "pointer", // void *socket
      "buffer", // void *buf
      "usize", // size_t len
      "i32", // int flags
    ],
    result: "i32",
  },
  /** int zmq_poll(zmq_pollitem_t *items, int nitems, long timeout) */
  zmq_poll: {
    parameters: [
      "buffer", // zmq_pollitem_t *items
      "i32", // int nitems
      "i64", // long timeout
    ],
    result: "i32",
  },
  /** int zmq_curve_keypair(char *z85_public_key, char *z85_secret_key) */
  zmq_curve_keypair: {
    parameters: [
      "buffer", // char *z85_public_key
      "buffer", // char *z85_secret_key
    ],
    result: "i32",
  },
  /** int zmq_curve_public(char *z85_public_key, const char *z85_secret_key) */
  zmq_curve_public: {
    parameters: [
      "buffer", // char *z85_public_key
      "buffer", // const char *z85_secret_key
    ],
    result: "i32",
  },
  /** char *zmq_z85_encode(char *dest, const uint8_t *data, size_t size) */
  zmq_z85_encode: {
    parameters: [
      "buffer", // char *dest
      "buffer", // const uint8_t *data
      "usize", // size_t size
    ],
    result: "pointer",
  },
  /** uint8_t *zmq_z85_decode(uint8_t *dest, const char *string) */
  zmq_z85_decode: {
    parameters: [
      "buffer", // uint8_t *dest
      "buffer", // const char *string
    ],
    result: "pointer",
  },
} as const satisfies Deno.ForeignLibraryInterface;

/** The functions of libzmq, ready to call. */
export type Libzmq = Deno.DynamicLibrary<typeof LIBZMQ_SYMBOLS>["symbols"];

export const EAGAIN: number = constants.errno.EAGAIN;
export const EINTR: number = constants.errno.EINTR;

/** The oldest release whose options and checks are relied on. */
const OLDEST: readonly [number, number] = [4, 3];

/** A socket owner's hold on libzmq; see {@linkcode acquireLibzmq}. */
export interface LibzmqLease {
  readonly libzmq: Libzmq;
  /** The file that it was loaded from. */
  readonly path: string;
  /** Its release, such as `"4.3.5"`. */
  readonly version: string;
  /** Gives it back. Twice is fine. */
  release(): void;
}

interface OpenLibzmq {
  readonly library: Deno.DynamicLibrary<typeof LIBZMQ_SYMBOLS>;
  readonly path: string;
  readonly version: string;
  users: number;
}

// One library for the whole isolate, for the reasons told in slotfile/libc.ts. Who asks for another
// file gets another one.
const shared: Map<string, OpenLibzmq> = new Map();

/**
 * Opens libzmq, or shares it.
 *
 * @param libzmqPath The file of a system libzmq to use instead of the one that npm:zeromq ships.
 * @throws {LibzmqError} If there is none that loads, or only an old one.
 * @throws {Deno.errors.NotCapable} Without `--allow-ffi`, or without `--allow-read` to find it.
 */
export function acquireLibzmq(libzmqPath?: string): LibzmqLease {
  const key = libzmqPath ?? "";
  let open = shared.get(key);
  if (open === undefined) {
    open = openLibzmq(libzmqPath);
    shared.set(key, open);
  }
  open.users++;
  const { library, path, version } = open;
  let held = true;
  return {
    libzmq: library.symbols,
    path,
    version,
    release() {
      if (!held) return;
      held = false;
      if (--open.users > 0) return;
      shared.delete(key);
      library.close();
    },
  };
}

function openLibzmq(libzmqPath: string | undefined): OpenLibzmq {
  const { paths, origin } = findLibzmq(libzmqPath);
  const failures: LibzmqFailure[] = [];
  for (const path of paths) {
    try {
      const library = Deno.dlopen(path, LIBZMQ_SYMBOLS);
      const version = versionOf(library.symbols);
      if (version.isNewEnough) return { library, path, version: version.text, users: 0 };
      library.close();
      const message = `it is ${version.text}, and ${OLDEST.join(".")} is the oldest that will do`;
      failures.push({ path, message });
    } catch (error) {
      if (error instanceof Deno.errors.NotCapable) throw error;
      failures.push({ path, message: error instanceof Error ? error.message : `${error}` });
    }
  }
  throw new LibzmqError(`none of ${origin} loads`, failures);
}

function versionOf(libzmq: Libzmq): { readonly text: string; readonly isNewEnough: boolean } {
  const parts = [new Int32Array(1), new Int32Array(1), new Int32Array(1)] as const;
  libzmq.zmq_version(...parts);
  const [major, minor, patch] = parts.map((part) => part[0]!) as [number, number, number];
  const isNewEnough = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  return { text: `${major}.${minor}.${patch}`, isNewEnough };
}

/**
 * Turns a failed call into an error; passes any other result on.
 *
 * @param libzmq libzmq.
 * @param result What the call returned; below 0 is a failure.
 * @param call Its name.
 * @param endpoint What it was for, or `null`.
 * @returns `result`.
 * @throws {EndpointInUseError} If it failed with EADDRINUSE.
 * @throws {ZmqError} If it failed otherwise.
 */
export function checkZmq(
  libzmq: Libzmq,
  result: number,
  call: string,
  endpoint: string | null,
): number {
  if (result >= 0) return result;
  throw zmqError(libzmq, libzmq.zmq_errno(), call, endpoint);
}

/** The error of a failed call, or of a system call that was made for libzmq. */
export function zmqError(
  libzmq: Libzmq,
  errno: number,
  call: string,
  endpoint: string | null,
): EndpointInUseError | ZmqError {
  const name = OWN_ERRORS[errno] ?? errnoName(errno);
  if (name === "EADDRINUSE" && endpoint !== null) return new EndpointInUseError(endpoint);
  const text = libzmq.zmq_strerror(errno);
  const reason = text === null ? name : Deno.UnsafePointerView.getCString(text);
  return new ZmqError(call, endpoint, name, reason);
}

/** Errors that no operating system has: ZMQ_HAUSNUMERO and above. */
const OWN_ERRORS: Readonly<Record<number, string>> = {
  156384763: "EFSM",
  156384764: "ENOCOMPATPROTO",
  156384765: "ETERM",
  156384766: "EMTHREAD",
};

/** A text as C takes it. What comes from outside has been checked for a NUL of its own. */
export function cText(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${text}\0`);
}
