/** What the file system says of a file, by statx: one layout on every architecture. */

import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  AT_SYMLINK_NOFOLLOW,
  check,
  cString,
  errnoName,
  errnoOf,
  type Libc,
  STATX_BASIC_STATS,
  syscallError,
} from "./libc.ts";

const STRUCT_SIZE = 256;
const TYPE_MASK = 0o170000;
const REGULAR = 0o100000;
const SOCKET = 0o140000;
const EMPTY = cString("x").subarray(1);

/** What matters of a file. */
export interface FileStat {
  readonly isRegular: boolean;
  readonly isSocket: boolean;
  readonly uid: number;
  /** Names that the file has; 0 when it was unlinked. */
  readonly links: number;
  readonly size: number;
  /** Device and inode: what makes it this file and no other. */
  readonly identity: string;
}

/** Asks about an open file. */
export function statOpenFile(libc: Libc, fd: number, path: string): FileStat {
  const buffer = new Uint8Array(STRUCT_SIZE);
  check(libc, libc.statx(fd, EMPTY, AT_EMPTY_PATH, STATX_BASIC_STATS, buffer), "statx", path);
  return parse(buffer);
}

/** Asks about whatever is at a path, without following a symbolic link; `null` if nothing is. */
export function statPath(
  libc: Libc,
  path: string,
  cPath: Uint8Array<ArrayBuffer>,
): FileStat | null {
  const buffer = new Uint8Array(STRUCT_SIZE);
  if (libc.statx(AT_FDCWD, cPath, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, buffer) < 0) {
    const errno = errnoOf(libc);
    if (errnoName(errno) === "ENOENT") return null;
    throw syscallError(errno, "statx", path);
  }
  return parse(buffer);
}

function parse(buffer: Uint8Array<ArrayBuffer>): FileStat {
  const view = new DataView(buffer.buffer);
  const mode = view.getUint16(28, true);
  const device = `${view.getUint32(136, true)}:${view.getUint32(140, true)}`;
  return {
    isRegular: (mode & TYPE_MASK) === REGULAR,
    isSocket: (mode & TYPE_MASK) === SOCKET,
    uid: view.getUint32(20, true),
    links: view.getUint32(16, true),
    size: Number(view.getBigUint64(40, true)),
    identity: `${device}:${view.getBigUint64(32, true)}`,
  };
}
