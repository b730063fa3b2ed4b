/** Opening a slot file as what it is until checked: a hostile one. */

import { SlotFileError, type SlotFileReason } from "../errors.ts";
import { decodeHeader, type Header, HEADER_SIZE, MAGIC_WORD, VERSION } from "./layout.ts";
import {
  check,
  cString,
  errnoName,
  errnoOf,
  type Libc,
  O_CLOEXEC,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  syscallError,
} from "./libc.ts";
import { type FileStat, statOpenFile } from "./stat.ts";

// No link is followed, a FIFO does not block, and a child process does not inherit the lock.
const SAFE = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

const CHUNK = 64 * 1024;

/** A file that was opened, and what it is. */
export interface OpenFile {
  readonly fd: number;
  readonly stat: FileStat;
}

/**
 * Opens a regular file of our own, of root or of a trusted user; `null` if nothing is at the path.
 *
 * @param libc libc.
 * @param path The path.
 * @param flags O_RDONLY or O_RDWR, perhaps with O_CREAT.
 * @param trustedUid Another user whose file is taken, or `null`.
 * @throws {SlotFileError} If it is anything else, or may not be opened.
 */
export function openFile(
  libc: Libc,
  path: string,
  flags: number,
  trustedUid: number | null,
): OpenFile | null {
  const fd = libc.open(cString(path), flags | SAFE, 0o600);
  if (fd < 0) {
    const errno = errnoOf(libc);
    if (errnoName(errno) === "ENOENT") return null;
    throw syscallError(errno, "open", path);
  }
  try {
    const stat = statOpenFile(libc, fd, path);
    if (!stat.isRegular) throw fault("not-regular", path, "not a regular file");
    if (stat.uid !== 0 && stat.uid !== trustedUid && stat.uid !== libc.geteuid()) {
      throw fault("foreign-owner", path, `it belongs to user ${stat.uid}`);
    }
    return { fd, stat };
  } catch (error) {
    libc.close(fd);
    throw error;
  }
}

/**
 * Reads the header by `pread`, which a file that shrinks cannot turn into a signal.
 *
 * @throws {SlotFileError} If there is none, or the file is shorter than it says.
 */
export function readHeader(libc: Libc, file: OpenFile, path: string): Header {
  // What a shorter file does not have counts as zeros: as not written yet.
  const checked = decodeHeader(new DataView(readAt(libc, file.fd, path, 0, HEADER_SIZE).buffer));
  if (!checked.ok) throw fault(checked.reason, path, REASON_TEXT[checked.reason]);
  const { header } = checked;
  const size = HEADER_SIZE + header.dpSize * header.slotSize;
  if (file.stat.size < size) {
    throw fault(
      "truncated",
      path,
      `it has ${file.stat.size} bytes, its header says ${header.dpSize} slots of ${header.slotSize}`,
    );
  }
  return header;
}

/**
 * Tells a slot file that its creator did not finish from any other file that starts with zeros: the
 * magic stands, or nothing does but the last words of a header.
 *
 * @param file A file whose header is unfinished.
 */
export function isBlank(libc: Libc, file: OpenFile, path: string): boolean {
  const bytes = readAt(libc, file.fd, path, 0, HEADER_SIZE);
  const view = new DataView(bytes.buffer);
  if (view.getUint32(0, true) === MAGIC_WORD) return true;
  if (bytes.some((byte) => byte !== 0)) {
    // Our own creator stores the words from the last to the first.
    view.setUint32(0, MAGIC_WORD, true);
    if (view.getUint32(4, true) === 0) bytes.set([VERSION, 0, 1, 0], 4);
    if (!decodeHeader(view).ok) return false;
  }
  for (let at = HEADER_SIZE; at < file.stat.size; at += CHUNK) {
    if (readAt(libc, file.fd, path, at, CHUNK).some((byte) => byte !== 0)) return false;
  }
  return true;
}

/** Reads so many bytes; zeros stand for those beyond the file's end. */
function readAt(
  libc: Libc,
  fd: number,
  path: string,
  at: number,
  byteLength: number,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(byteLength);
  check(libc, Number(libc.pread(fd, bytes, BigInt(byteLength), BigInt(at))), "pread", path);
  return bytes;
}

const REASON_TEXT = {
  unfinished: "its header is not written yet",
  magic: "not a slot file",
  version: "its layout version is unknown",
  "dp-size": "it has no ranks",
  "slot-size": "its slot size cannot be",
} as const;

/** A fault of the file itself, not of a system call. */
export function fault(reason: SlotFileReason, path: string, text: string): SlotFileError {
  return new SlotFileError(reason, path, `Cannot use slot file ${path}: ${text}`);
}
