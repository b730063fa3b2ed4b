/**
 * The file system by FFI, for tests that may do nothing else: below /dev/shm and /proc Deno asks for
 * every permission, and no function of Deno's makes a FIFO or another user's file.
 */

import {
  cString,
  errnoName,
  errnoOf,
  LIBC_SYMBOLS,
  O_CLOEXEC,
  O_CREAT,
  O_RDONLY,
  O_RDWR,
} from "../../src/slotfile/libc.ts";

const SYMBOLS = {
  ...LIBC_SYMBOLS,
  /** ssize_t read(int fd, void *buf, size_t count) */
  read: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  /** ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset) */
  pwrite: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  /** int symlink(const char *target, const char *linkpath) */
  symlink: { parameters: ["buffer", "buffer"], result: "i32" },
  /** int mkfifo(const char *pathname, mode_t mode) */
  mkfifo: { parameters: ["buffer", "u32"], result: "i32" },
  /** int mkdir(const char *pathname, mode_t mode) */
  mkdir: { parameters: ["buffer", "u32"], result: "i32" },
  /** int rmdir(const char *pathname) */
  rmdir: { parameters: ["buffer"], result: "i32" },
  /** int chown(const char *pathname, uid_t owner, gid_t group) */
  chown: { parameters: ["buffer", "u32", "u32"], result: "i32" },
  /** int dup2(int oldfd, int newfd) */
  dup2: { parameters: ["i32", "i32"], result: "i32" },
  /** ssize_t readlink(const char *pathname, char *buf, size_t bufsiz) */
  readlink: { parameters: ["buffer", "buffer", "usize"], result: "isize" },
  /** int fcntl(int fd, int op, ...): F_GETFD takes no third argument */
  fcntl: { parameters: ["i32", "i32"], result: "i32" },
  /** int glob(const char *pattern, int flags, int (*errfunc)(...), glob_t *pglob) */
  glob: { parameters: ["buffer", "i32", "pointer", "buffer"], result: "i32" },
  /** void globfree(glob_t *pglob) */
  globfree: { parameters: ["buffer"], result: "void" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The functions; the library stays open as long as the tests run. */
export const raw = open();

const READ_CHUNK = 64 * 1024;

function open(): Deno.DynamicLibrary<typeof SYMBOLS>["symbols"] {
  try {
    return Deno.dlopen("libc.so.6", SYMBOLS).symbols;
  } catch {
    return Deno.dlopen(`libc.musl-${Deno.build.arch}.so.1`, SYMBOLS).symbols;
  }
}

/** Turns a failed call into an error. */
export function must(result: number, what: string): number {
  if (result >= 0) return result;
  throw new Error(`Cannot ${what}: ${errnoName(errnoOf(raw))}`);
}

/** Whether this process is root's, and can make files of other users. */
export function isRoot(): boolean {
  return raw.geteuid() === 0;
}

/** An open file that is closed at the end of a `using` scope. */
export class RawFile implements Disposable {
  readonly fd: number;

  /** Opens what is there; `mode` creates it where it is missing. */
  constructor(path: string, { write = true, mode }: { write?: boolean; mode?: number } = {}) {
    const flags = (write ? O_RDWR : O_RDONLY) | (mode === undefined ? 0 : O_CREAT) | O_CLOEXEC;
    this.fd = must(raw.open(cString(path), flags, mode ?? 0), `open ${path}`);
  }

  /** Everything from the start to the end; works on /proc as well. */
  readAll(): Uint8Array<ArrayBuffer> {
    let bytes = new Uint8Array(READ_CHUNK);
    for (let end = 0;;) {
      if (end === bytes.length) bytes = new Uint8Array(bytes.buffer.transfer(end * 2));
      const rest = bytes.subarray(end);
      const got = must(Number(raw.read(this.fd, rest, BigInt(rest.length))), "read");
      if (got === 0) return bytes.slice(0, end);
      end += got;
    }
  }

  /** Bytes from a place on. */
  read(offset: number, byteLength: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(byteLength);
    const got = Number(raw.pread(this.fd, bytes, BigInt(byteLength), BigInt(offset)));
    return bytes.subarray(0, must(got, "pread"));
  }

  /** Stores bytes at a place. */
  write(offset: number, bytes: Uint8Array<ArrayBuffer>): void {
    const done = Number(raw.pwrite(this.fd, bytes, BigInt(bytes.length), BigInt(offset)));
    if (must(done, "pwrite") !== bytes.length) throw new Error("Cannot pwrite: no space");
  }

  /** Gives the file another length. */
  truncate(byteLength: number): void {
    must(raw.ftruncate(this.fd, BigInt(byteLength)), "ftruncate");
  }

  /** Tries to take the file's lock. */
  tryLock(operation: number): boolean {
    return raw.flock(this.fd, operation) === 0;
  }

  [Symbol.dispose](): void {
    raw.close(this.fd);
  }
}

/** The paths that a pattern of the shell matches. */
export function matches(pattern: string): string[] {
  // glob_t: size_t gl_pathc, char **gl_pathv, size_t gl_offs, and no more than 48 bytes behind it.
  const result = new BigUint64Array(16);
  if (raw.glob(cString(pattern), 0, null, result) !== 0) return [];
  try {
    const paths = Deno.UnsafePointer.create(result[1]!)!;
    const view = new Deno.UnsafePointerView(paths);
    return Array.from({ length: Number(result[0]) }, (_, index) => {
      const path = Deno.UnsafePointer.create(view.getBigUint64(index * 8))!;
      return new Deno.UnsafePointerView(path).getCString();
    });
  } finally {
    raw.globfree(result);
  }
}
