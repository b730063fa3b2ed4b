/** libc by FFI: the only file of the slot file that opens a library. */

import { constants } from "node:os";
import { SlotFileError, type SlotFileReason } from "../errors.ts";

/** The functions that are called, with their C declarations. */
export const LIBC_SYMBOLS = {
  /** int open(const char *pathname, int flags, mode_t mode) */
  open: {
    parameters: [
      "buffer", // const char *pathname
      "i32", // int flags
      "u32", // mode_t mode
    ],
    result: "i32",
  },
  /** int close(int fd) */
  close: {
    parameters: [
      "i32", // int fd
    ],
    result: "i32",
  },
  /** int ftruncate(int fd, off_t length) */
  ftruncate: {
    parameters: [
      "i32", // int fd
      "i64", // off_t length
    ],
    result: "i32",
  },
  /** int posix_fallocate(int fd, off_t offset, off_t len): returns the error, leaves errno alone */
  posix_fallocate: {
    parameters: [
      "i32", // int fd
      "i64", // off_t offset
      "i64", // off_t len
    ],
    result: "i32",
  },
  /** int flock(int fd, int operation) */
  flock: {
    parameters: [
      "i32", // int fd
      "i32", // int operation
    ],
    result: "i32",
  },
  /** void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset) */
  mmap: {
    parameters: [
      "usize", // void *addr
      "usize", // size_t length
      "i32", // int prot
      "i32", // int flags
      "i32", // int fd
      "i64", // off_t offset
    ],
    result: "usize",
  },
  /** int munmap(void *addr, size_t length) */
  munmap: {
    parameters: [
      "usize", // void *addr
      "usize", // size_t length
    ],
    result: "i32",
  },
  /** off_t lseek(int fd, off_t offset, int whence) */
  lseek: {
    parameters: [
      "i32", // int fd
      "i64", // off_t offset
      "i32", // int whence
    ],
    result: "i64",
  },
  /** int mprotect(void *addr, size_t len, int prot) */
  mprotect: {
    parameters: [
      "usize", // void *addr
      "usize", // size_t len
      "i32", // int prot
    ],
    result: "i32",
  },
  /** int sigaction(int signum, const struct sigaction *act, struct sigaction *oldact) */
  sigaction: {
    parameters: [
      "i32", // int signum
      "buffer", // const struct sigaction *act
      "buffer", // struct sigaction *oldact
    ],
    result: "i32",
  },
  /** int getpagesize(void) */
  getpagesize: { parameters: [], result: "i32" },
  /** ssize_t pread(int fd, void *buf, size_t count, off_t offset) */
  pread: {
    parameters: [
      "i32", // int fd
      "buffer", // void *buf
      "usize", // size_t count
      "i64", // off_t offset
    ],
    result: "isize",
  },
  /** int statx(int dirfd, const char *pathname, int flags, unsigned int mask, struct statx *statxbuf) */
  statx: {
    parameters: [
      "i32", // int dirfd
      "buffer", // const char *pathname
      "i32", // int flags
      "u32", // unsigned int mask
      "buffer", // struct statx *statxbuf
    ],
    result: "i32",
  },
  /** int unlink(const char *pathname) */
  unlink: {
    parameters: [
      "buffer", // const char *pathname
    ],
    result: "i32",
  },
  /** int rename(const char *oldpath, const char *newpath) */
  rename: {
    parameters: [
      "buffer", // const char *oldpath
      "buffer", // const char *newpath
    ],
    result: "i32",
  },
  /** int eventfd(unsigned int initval, int flags) */
  eventfd: {
    parameters: [
      "u32", // unsigned int initval
      "i32", // int flags
    ],
    result: "i32",
  },
  /** ssize_t read(int fd, void *buf, size_t count) */
  read: {
    parameters: [
      "i32", // int fd
      "buffer", // void *buf
      "usize", // size_t count
    ],
    result: "isize",
  },
  /** ssize_t write(int fd, const void *buf, size_t count) */
  write: {
    parameters: [
      "i32", // int fd
      "buffer", // const void *buf
      "usize", // size_t count
    ],
    result: "isize",
  },
  /** uid_t geteuid(void) */
  geteuid: { parameters: [], result: "u32" },
  /** int memcmp(const void *s1, const void *s2, size_t n) */
  memcmp: {
    parameters: [
      "usize", // const void *s1
      "usize", // const void *s2
      "usize", // size_t n
    ],
    result: "i32",
  },
  /** void *memcpy(void *dest, const void *src, size_t n) */
  memcpy: {
    parameters: [
      "usize", // void *dest
      "usize", // const void *src
      "usize", // size_t n
    ],
    result: "usize",
  },
  /** int clock_gettime(clockid_t clockid, struct timespec *tp) */
  clock_gettime: {
    parameters: [
      "i32", // clockid_t clockid
      "buffer", // struct timespec *tp
    ],
    result: "i32",
  },
  /** int sched_yield(void) */
  sched_yield: { parameters: [], result: "i32" },
  /** int *__errno_location(void) */
  __errno_location: { parameters: [], result: "pointer" },
  /** int socket(int domain, int type, int protocol) */
  socket: {
    parameters: [
      "i32", // int domain
      "i32", // int type
      "i32", // int protocol
    ],
    result: "i32",
  },
  /** int bind(int sockfd, const struct sockaddr *addr, socklen_t addrlen) */
  bind: {
    parameters: [
      "i32", // int sockfd
      "buffer", // const struct sockaddr *addr
      "u32", // socklen_t addrlen
    ],
    result: "i32",
  },
  /** int connect(int sockfd, const struct sockaddr *addr, socklen_t addrlen) */
  connect: {
    parameters: [
      "i32", // int sockfd
      "buffer", // const struct sockaddr *addr
      "u32", // socklen_t addrlen
    ],
    result: "i32",
  },
  /** int listen(int sockfd, int backlog) */
  listen: {
    parameters: [
      "i32", // int sockfd
      "i32", // int backlog
    ],
    result: "i32",
  },
  /** int fchmod(int fd, mode_t mode) */
  fchmod: {
    parameters: [
      "i32", // int fd
      "u32", // mode_t mode
    ],
    result: "i32",
  },
} as const satisfies Deno.ForeignLibraryInterface;

/** The functions of libc, ready to call. */
export type Libc = Deno.DynamicLibrary<typeof LIBC_SYMBOLS>["symbols"];

export const O_RDONLY = 0;
export const O_RDWR = 0o2;
export const O_CREAT = 0o100;
export const O_EXCL = 0o200;
export const O_NOCTTY = 0o400;
export const O_NONBLOCK = 0o4000;
export const O_CLOEXEC = 0o2000000;
/** The two architectures number it differently. */
export const O_NOFOLLOW: number = Deno.build.arch === "aarch64" ? 0o100000 : 0o400000;

/** eventfd's own flags: the numbers are those of open. */
export const EFD_CLOEXEC = O_CLOEXEC;
export const EFD_NONBLOCK = O_NONBLOCK;

export const SEEK_END = 2;

export const LOCK_SH = 1;
export const LOCK_EX = 2;
export const LOCK_NB = 4;
export const LOCK_UN = 8;

export const PROT_READ = 1;
export const PROT_WRITE = 2;
export const PROT_EXEC = 4;
export const MAP_SHARED = 1;
export const MAP_PRIVATE_ANONYMOUS = 0x22;
export const MAP_FAILED = 0xffffffffffffffffn;

export const AT_FDCWD = -100;
export const AT_SYMLINK_NOFOLLOW = 0x100;
export const AT_EMPTY_PATH = 0x1000;
export const STATX_BASIC_STATS = 0x7ff;

/** Ticks every few milliseconds and costs a tenth of a precise clock. */
export const CLOCK_MONOTONIC_COARSE = 6;

const NAMES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/** A reader's or writer's hold on libc; see {@linkcode acquireLibc}. */
export interface LibcLease {
  readonly libc: Libc;
  /** Gives it back. Twice is fine. */
  release(): void;
}

// One library for the whole isolate. A call is only fast while the function that is called is
// always the same object, so opening one for each reader would slow all of them down; and it is
// closed with its last user, so that nothing is left open.
const shared: { library: Deno.DynamicLibrary<typeof LIBC_SYMBOLS> | null; users: number } = {
  library: null,
  users: 0,
};

/**
 * Opens libc, or shares it.
 *
 * @param path The slot file that it is for, for the error.
 * @throws {SlotFileError} `unsupported` where there are no slot files.
 * @throws {Deno.errors.NotCapable} Without `--allow-ffi`.
 */
export function acquireLibc(path: string): LibcLease {
  const library = shared.library ??= openLibc(path);
  shared.users++;
  let held = true;
  return {
    libc: library.symbols,
    release() {
      if (!held) return;
      held = false;
      if (--shared.users > 0) return;
      shared.library = null;
      library.close();
    },
  };
}

function openLibc(path: string): Deno.DynamicLibrary<typeof LIBC_SYMBOLS> {
  if (Deno.build.os !== "linux") {
    throw new SlotFileError(
      "unsupported",
      path,
      `Cannot use slot file ${path}: slot files are for Linux, this is ${Deno.build.os}`,
    );
  }
  const failures: string[] = [];
  for (const name of NAMES) {
    try {
      return Deno.dlopen(name, LIBC_SYMBOLS);
    } catch (error) {
      if (error instanceof Deno.errors.NotCapable) throw error;
      failures.push(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  }
  throw new SlotFileError(
    "unsupported",
    path,
    `Cannot use slot file ${path}: no libc could be opened (${failures.join("; ")})`,
  );
}

/**
 * The errno of the call on the line before. Any other call in between may change it.
 *
 * @param libc libc.
 */
export function errnoOf(libc: Libc): number {
  return new Deno.UnsafePointerView(libc.__errno_location()!).getInt32();
}

/**
 * Turns a failed call into an error; passes any other result on.
 *
 * @param libc libc.
 * @param result What the call returned; below 0 is a failure.
 * @param syscall Its name.
 * @param path The file that it was for.
 * @returns `result`.
 * @throws {SlotFileError} If it failed.
 */
export function check(libc: Libc, result: number, syscall: string, path: string): number {
  if (result >= 0) return result;
  throw syscallError(errnoOf(libc), syscall, path);
}

/** The error of a failed call. */
export function syscallError(errno: number, syscall: string, path: string): SlotFileError {
  const name = errnoName(errno);
  return new SlotFileError(REASONS[name] ?? "syscall", path, `Cannot ${syscall} ${path}: ${name}`, {
    syscall,
    errno: name,
  });
}

const REASONS: Readonly<Record<string, SlotFileReason>> = {
  ENOENT: "absent",
  EACCES: "permission",
  EPERM: "permission",
  EROFS: "permission",
  ELOOP: "not-regular",
  EISDIR: "not-regular",
  ENXIO: "not-regular",
  ENOTDIR: "path",
  ENAMETOOLONG: "path",
  ENOSPC: "no-space",
  EDQUOT: "no-space",
};

/** The name of an errno, such as `"ENOSPC"`. */
export function errnoName(errno: number): string {
  for (const [name, number] of Object.entries(constants.errno)) {
    if (number === errno) return name;
  }
  return `errno ${errno}`;
}

/**
 * A path as C takes it: the one place that adds the NUL.
 *
 * @throws {SlotFileError} `path` if it is empty or has a NUL of its own.
 */
export function cString(path: string): Uint8Array<ArrayBuffer> {
  if (path === "" || path.includes("\0")) {
    throw new SlotFileError(
      "path",
      path,
      `Cannot use ${JSON.stringify(path)} as a path: ${path === "" ? "empty" : "it has a NUL"}`,
    );
  }
  return new TextEncoder().encode(`${path}\0`);
}
