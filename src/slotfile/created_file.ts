/** A writer's hold on its slot file: it makes the file where it must, and restores its path. */

import { LockTimeoutError } from "../errors.ts";
import { FileLock } from "./lock.ts";
import { type Header, HEADER_SIZE, headerWords } from "./layout.ts";
import {
  acquireLibc,
  check,
  cString,
  errnoName,
  errnoOf,
  type Libc,
  O_CREAT,
  O_EXCL,
  O_RDWR,
  syscallError,
} from "./libc.ts";
import { Mapping } from "./mapping.ts";
import { fault, isBlank, type OpenFile, openFile, readHeader } from "./open_file.ts";
import { SlotFileError } from "../errors.ts";
import { statOpenFile, statPath } from "./stat.ts";

// Several writers of a group start at once, and each may find the path replaced by another.
const OPEN_ATTEMPTS = 16;

const NOT_BLANK = "it starts with zeros, but is not empty";

/** An open slot file of a known layout, for writing. */
export class CreatedFile {
  readonly mapping: Mapping;
  readonly lock: FileLock;
  readonly #libc: Libc;
  readonly #path: string;
  readonly #cPath: Uint8Array<ArrayBuffer>;
  readonly #fd: number;
  readonly #identity: string;

  private constructor(libc: Libc, path: string, file: OpenFile, header: Header, lock: FileLock) {
    this.#libc = libc;
    this.#path = path;
    this.#cPath = cString(path);
    this.#fd = file.fd;
    this.#identity = file.stat.identity;
    this.lock = lock;
    this.mapping = new Mapping(libc, file.fd, sizeOf(header), "write", path);
  }

  /**
   * Opens the group's file, or makes it.
   *
   * A file of another layout is replaced, not changed: shrinking it would kill whoever has it
   * mapped, and its slots belong to another group.
   *
   * @param openPatienceMs How long to wait for the lock now.
   * @param patienceMs How long to wait for it in each write.
   * @throws {SlotFileError} If what is at the path is no slot file, or cannot be made one.
   * @throws {LockTimeoutError} If another process keeps the lock.
   */
  static open(
    libc: Libc,
    path: string,
    header: Header,
    openPatienceMs: number,
    patienceMs: number = openPatienceMs,
  ): CreatedFile {
    for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
      const found = openFile(libc, path, O_RDWR, null);
      const file = found ?? createNew(libc, path);
      if (file === null) continue;
      try {
        if (take(libc, path, file, header, openPatienceMs, found === null)) {
          const lock = new FileLock(libc, file.fd, "exclusive", patienceMs);
          return new CreatedFile(libc, path, file, header, lock);
        }
      } catch (error) {
        libc.close(file.fd);
        throw error;
      }
      libc.close(file.fd);
    }
    throw fault("syscall", path, "other processes keep replacing it");
  }

  /** Whether the path still names this file, and all of it is there. */
  isInPlace(): boolean {
    if (this.mapping.torn) return false;
    const stat = statPath(this.#libc, this.#path, this.#cPath);
    return stat?.identity === this.#identity && stat.size >= this.mapping.byteLength;
  }

  /** Unmaps and closes. The file stays: other ranks and readers use it. */
  close(): void {
    this.mapping.close();
    this.#libc.close(this.#fd);
  }
}

/** Makes the file at the path; `null` if another process was faster. */
function createNew(libc: Libc, path: string): OpenFile | null {
  try {
    const file = openFile(libc, path, O_RDWR | O_CREAT | O_EXCL, null);
    if (file === null) throw fault("absent", path, "its folder is not there");
    return file;
  } catch (error) {
    if (error instanceof SlotFileError && error.errno === "EEXIST") return null;
    throw error;
  }
}

/**
 * Makes an open file the group's; false if the path has come to name another one.
 *
 * @param isNew Whether it was made just now; if it cannot be made a slot file, it is removed again.
 */
function take(
  libc: Libc,
  path: string,
  file: OpenFile,
  header: Header,
  patienceMs: number,
  isNew: boolean,
): boolean {
  const lock = new FileLock(libc, file.fd, "exclusive", patienceMs);
  if (!lock.take()) throw new LockTimeoutError(path, patienceMs);
  try {
    if (statPath(libc, path, cString(path))?.identity !== file.stat.identity) return false;
    switch (compare(libc, path, file, header)) {
      case "same":
        reserve(libc, path, file.fd, sizeOf(header));
        break;
      case "blank":
        try {
          format(libc, path, file.fd, header);
        } catch (error) {
          // Under the lock: whoever opened it meanwhile will find that the path is another's.
          if (isNew) libc.unlink(cString(path));
          throw error;
        }
        break;
      case "other":
        replace(libc, path, header);
        return false;
    }
    return true;
  } finally {
    lock.release();
  }
}

/** What a file is, compared with the one that is wanted. */
function compare(
  libc: Libc,
  path: string,
  file: OpenFile,
  wanted: Header,
): "same" | "blank" | "other" {
  // Its length may have changed since it was opened; the lock keeps it from here on.
  const now: OpenFile = { fd: file.fd, stat: statOpenFile(libc, file.fd, path) };
  try {
    const found = readHeader(libc, now, path);
    const isSame = found.version === wanted.version && found.dpSize === wanted.dpSize &&
      found.slotSize === wanted.slotSize;
    return isSame ? "same" : "other";
  } catch (error) {
    if (!(error instanceof SlotFileError)) throw error;
    // Ours to mend: it is a slot file, if a broken or a newer one. Anything else is not ours.
    if (["truncated", "version", "slot-size"].includes(error.reason)) return "other";
    if (error.reason !== "unfinished") throw error;
    // SGLang's writer clears the header of a group's file before it writes it again.
    if (now.stat.size === sizeOf(wanted) || isBlank(libc, now, path)) return "blank";
    throw fault("magic", path, NOT_BLANK);
  }
}

/** Gives an empty file its length and its header. Only under the lock. */
function format(libc: Libc, path: string, fd: number, header: Header): void {
  const size = sizeOf(header);
  if (statOpenFile(libc, fd, path).size < size) {
    check(libc, libc.ftruncate(fd, BigInt(size)), "ftruncate", path);
  }
  reserve(libc, path, fd, size);
  // The magic is stored last: a header without it is not a header yet.
  const mapping = new Mapping(libc, fd, size, "write", path);
  try {
    const words = new Int32Array(mapping.view(0, HEADER_SIZE));
    const wanted = headerWords(header);
    for (let w = words.length - 1; w >= 0; w--) Atomics.store(words, w, wanted[w]!);
  } finally {
    mapping.close();
  }
}

/** Puts a fresh file at the path, in one step; whoever has the old one mapped keeps it whole. */
function replace(libc: Libc, path: string, header: Header): void {
  const temporary = `${path}.${crypto.randomUUID().slice(0, 8)}.new`;
  const file = createNew(libc, temporary);
  if (file === null) return;
  let renamed = false;
  try {
    format(libc, temporary, file.fd, header);
    check(libc, libc.rename(cString(temporary), cString(path)), "rename", path);
    renamed = true;
  } finally {
    libc.close(file.fd);
    if (!renamed) libc.unlink(cString(temporary));
  }
}

/**
 * Has the file system set all pages aside: ftruncate does not, and a store that finds no page is
 * a SIGBUS, where this is ENOSPC.
 */
function reserve(libc: Libc, path: string, fd: number, size: number): void {
  const errno = libc.posix_fallocate(fd, 0n, BigInt(size));
  if (errno !== 0) throw syscallError(errno, "posix_fallocate", path);
}

function sizeOf(header: Header): number {
  return HEADER_SIZE + header.dpSize * header.slotSize;
}

/**
 * Removes a slot file. SGLang leaves its files behind when it ends; this is for whoever made one.
 *
 * @param path The slot file.
 * @returns Whether there was one.
 * @throws {SlotFileError} If what is at the path is no slot file, or may not be removed.
 *
 * @example
 * ```ts
 * import { removeSlotFile } from "./mod.ts";
 *
 * console.log(removeSlotFile("/dev/shm/sglang_loads_gone.shm")); // false
 * ```
 */
export function removeSlotFile(path: string): boolean {
  const lease = acquireLibc(path);
  const { libc } = lease;
  try {
    const file = openFile(libc, path, O_RDWR, null);
    if (file === null) return false;
    try {
      readHeader(libc, file, path);
    } catch (error) {
      if (!(error instanceof SlotFileError)) throw error;
      if (error.reason === "unfinished") {
        if (!isBlank(libc, file, path)) throw fault("magic", path, NOT_BLANK);
      } else if (!["truncated", "version", "slot-size"].includes(error.reason)) {
        throw error;
      }
    } finally {
      libc.close(file.fd);
    }
    if (libc.unlink(cString(path)) === 0) return true;
    const errno = errnoOf(libc);
    if (errnoName(errno) === "ENOENT") return false;
    throw syscallError(errno, "unlink", path);
  } finally {
    lease.release();
  }
}
