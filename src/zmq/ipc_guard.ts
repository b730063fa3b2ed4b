/**
 * The path of a bound ipc endpoint: one owner at a time, and no other user.
 *
 * libzmq removes whatever is at the path and binds there. So a second owner would silently take the
 * path from the first, which then waits for ever; and the file's mode would be left to the umask.
 * Here the socket is bound by hand, and libzmq gets it ready to accept.
 */

import { EndpointInUseError, SlotFileError, ZmqError } from "../errors.ts";
import {
  acquireLibc,
  cString,
  errnoName,
  errnoOf,
  type Libc,
  type LibcLease,
  LOCK_EX,
  LOCK_NB,
  O_CLOEXEC,
  O_CREAT,
  O_EXCL,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDWR,
} from "../slotfile/libc.ts";
import { statOpenFile, statPath } from "../slotfile/stat.ts";
import type { IpcEndpoint } from "./endpoint.ts";
import { type Libzmq, zmqError } from "./libzmq.ts";

const AF_UNIX = 1;
const SOCK_STREAM = 1;
const BACKLOG = 128;
const PRIVATE = 0o600;
const SAFE = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// The lock file may be removed, or made, by another owner in between.
const LOCK_ATTEMPTS = 16;

/** A descriptor, and the file that it stands for. */
interface Held {
  readonly fd: number;
  readonly path: string;
  /** Device and inode of what is at the path. */
  readonly identity: string;
}

/**
 * Holds a path: by a lock file beside it, which the system unlocks when its holder dies, and by the
 * socket itself, which tells owners that take no lock, such as SGLang's.
 */
export class IpcGuard {
  readonly #lease: LibcLease;
  readonly #lock: Held;
  readonly #socket: Held;
  #handedOver = false;

  private constructor(lease: LibcLease, lock: Held, socket: Held) {
    this.#lease = lease;
    this.#lock = lock;
    this.#socket = socket;
  }

  /**
   * Takes the path, also from an owner that died, and listens there; mode 0600.
   *
   * @returns `null` where there is no such guard: elsewhere than on Linux, libzmq binds by itself.
   * @throws {EndpointInUseError} If a living owner has it.
   * @throws {ZmqError} If something else than a socket is there, or the system refuses.
   */
  static take(libzmq: Libzmq, endpoint: IpcEndpoint): IpcGuard | null {
    if (Deno.build.os !== "linux") return null;
    const lease = acquireLibc(endpoint.path);
    const attempt = new Attempt(libzmq, lease.libc, endpoint);
    try {
      const lock = attempt.lock();
      try {
        return new IpcGuard(lease, lock, attempt.listen());
      } catch (error) {
        remove(lease.libc, lock);
        lease.libc.close(lock.fd);
        throw error;
      }
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  /** The listening socket, for ZMQ_USE_FD. */
  get fd(): number {
    return this.#socket.fd;
  }

  /** From here on libzmq closes the listening socket. */
  handOver(): void {
    this.#handedOver = true;
  }

  /**
   * Removes both files, if they are still ours, and gives the path up. Only when libzmq has closed its
   * socket, and only once.
   */
  release(): void {
    const { libc } = this.#lease;
    if (!this.#handedOver) libc.close(this.#socket.fd);
    remove(libc, this.#socket);
    // The lock file goes while it is locked, so that no other owner holds it already.
    remove(libc, this.#lock);
    libc.close(this.#lock.fd);
    this.#lease.release();
  }
}

/** The steps to take a path. Each cleans up after itself if it fails. */
class Attempt {
  readonly #libzmq: Libzmq;
  readonly #libc: Libc;
  readonly #endpoint: IpcEndpoint;
  readonly #address: Uint8Array<ArrayBuffer>;

  constructor(libzmq: Libzmq, libc: Libc, endpoint: IpcEndpoint) {
    this.#libzmq = libzmq;
    this.#libc = libc;
    this.#endpoint = endpoint;
    this.#address = addressOf(endpoint.path);
  }

  /** Locks the lock file, which is made where it is missing. */
  lock(): Held {
    const path = `${this.#endpoint.path}.lock`;
    for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
      const fd = this.#openOrMake(path);
      if (fd < 0) continue;
      try {
        if (this.#libc.flock(fd, LOCK_EX | LOCK_NB) < 0) this.#failLock();
        const { identity } = statOpenFile(this.#libc, fd, path);
        const isInPlace = statPath(this.#libc, path, cString(path))?.identity === identity;
        if (isInPlace) return { fd, path, identity };
      } catch (error) {
        this.#libc.close(fd);
        throw error;
      }
      // Its last owner has just removed it: a lock on it keeps nobody out.
      this.#libc.close(fd);
    }
    throw new EndpointInUseError(this.#endpoint.text);
  }

  /** Binds a socket to the path and listens. Only under the lock. */
  listen(): Held {
    const libc = this.#libc;
    const { path } = this.#endpoint;
    const fd = this.#openSocket();
    try {
      // Linux gives the file the mode of the socket, so there is no moment with another one.
      this.#check(libc.fchmod(fd, PRIVATE), "fchmod");
      if (libc.bind(fd, this.#address, this.#address.length) < 0) {
        const errno = errnoOf(libc);
        if (errnoName(errno) !== "EADDRINUSE") throw this.#error(errno, "bind");
        this.#clear();
        this.#check(libc.bind(fd, this.#address, this.#address.length), "bind");
      }
      const identity = statPath(libc, path, cString(path))?.identity ?? "";
      this.#check(libc.listen(fd, BACKLOG), "listen");
      return { fd, path, identity };
    } catch (error) {
      libc.close(fd);
      throw error;
    }
  }

  /**
   * Removes the socket that a dead owner left, or the empty file by which SGLang reserves a path
   * (`NamedTemporaryFile(delete=False)`); throws if that is not what is there.
   */
  #clear(): void {
    const { path, text } = this.#endpoint;
    const stat = statPath(this.#libc, path, cString(path));
    if (stat === null) return;
    const isReserved = stat.isRegular && stat.size === 0;
    if (!stat.isSocket && !isReserved) {
      throw new ZmqError("bind", text, "ENOTSOCK", "something that is not a socket is at its path");
    }
    if (stat.isSocket && this.#isAnswered()) throw new EndpointInUseError(text);
    const result = this.#libc.unlink(cString(path));
    if (result < 0) this.#check(result, "unlink");
  }

  /** Whether some process listens at the path. It sees a connection that ends at once. */
  #isAnswered(): boolean {
    const libc = this.#libc;
    const fd = this.#openSocket();
    try {
      if (libc.connect(fd, this.#address, this.#address.length) === 0) return true;
      const errno = errnoOf(libc);
      switch (errnoName(errno)) {
        case "ECONNREFUSED":
        case "ENOENT":
          return false;
        case "EAGAIN": // Its queue is full.
          return true;
        default:
          throw this.#error(errno, "connect");
      }
    } finally {
      libc.close(fd);
    }
  }

  /** Opens the lock file; below 0 if another owner makes it at this moment. */
  #openOrMake(path: string): number {
    // First without O_CREAT: with it, a sticky folder refuses another user's file even to root.
    const fd = this.#libc.open(cString(path), SAFE, PRIVATE);
    if (fd >= 0) return fd;
    const errno = errnoOf(this.#libc);
    if (errnoName(errno) !== "ENOENT") throw this.#error(errno, "open the lock file of");
    const made = this.#libc.open(cString(path), SAFE | O_CREAT | O_EXCL, PRIVATE);
    if (made >= 0) return made;
    const reason = errnoOf(this.#libc);
    if (errnoName(reason) === "EEXIST") return -1;
    throw this.#error(reason, "make the lock file of");
  }

  #failLock(): never {
    const errno = errnoOf(this.#libc);
    if (errnoName(errno) === "EAGAIN") throw new EndpointInUseError(this.#endpoint.text);
    throw this.#error(errno, "lock");
  }

  #openSocket(): number {
    // The flags of open(2) and of socket(2) have the same values on Linux.
    const type = SOCK_STREAM | O_CLOEXEC | O_NONBLOCK;
    return this.#check(this.#libc.socket(AF_UNIX, type, 0), "socket");
  }

  #check(result: number, call: string): number {
    if (result >= 0) return result;
    throw this.#error(errnoOf(this.#libc), call);
  }

  #error(errno: number, call: string): Error {
    return zmqError(this.#libzmq, errno, call, this.#endpoint.text);
  }
}

/** Removes a file if the path still names it. What cannot be removed is left. */
function remove(libc: Libc, { path, identity }: Held): void {
  const cPath = cString(path);
  try {
    if (statPath(libc, path, cPath)?.identity === identity) libc.unlink(cPath);
  } catch (error) {
    if (!(error instanceof SlotFileError)) throw error;
  }
}

/** struct sockaddr_un: the family as u16, then the path and its NUL. */
function addressOf(path: string): Uint8Array<ArrayBuffer> {
  const cPath = cString(path);
  const address = new Uint8Array(2 + cPath.length);
  new Uint16Array(address.buffer, 0, 1)[0] = AF_UNIX;
  address.set(cPath, 2);
  return address;
}
