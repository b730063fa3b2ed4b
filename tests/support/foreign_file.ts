/** Files of another user, where this process may make them. */

import { cString, errnoName, errnoOf } from "../../src/slotfile/libc.ts";
import { raw } from "./raw_libc.ts";
import { SlotPath } from "./slot_path.ts";

/** A user who is neither this process's nor root. */
export const NOBODY = 65_534;

/** Gives a file to {@linkcode NOBODY}; tells the errno's name if that may not be. */
export function giveAway(path: string): string | null {
  return raw.chown(cString(path), NOBODY, NOBODY) === 0 ? null : errnoName(errnoOf(raw));
}

/** Why no file can be given away, or `null`: only root may, and not in every container. */
export function whyNoForeignFile(): string | null {
  using file = new SlotPath();
  file.put(new Uint8Array(0));
  if (raw.geteuid() === NOBODY) return "this process is that other user's";
  const errno = giveAway(file.path);
  return errno === null ? null : `chown gives ${errno}`;
}
