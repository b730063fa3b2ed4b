/** What this process holds: descriptors, mappings and memory, asked without Deno's permissions. */

import { raw, RawFile } from "./raw_libc.ts";

const F_GETFD = 1;
const MOST_DESCRIPTORS = 4096;

/** How many descriptors are open. */
export function openDescriptors(): number {
  let count = 0;
  for (let fd = 0; fd < MOST_DESCRIPTORS; fd++) if (raw.fcntl(fd, F_GETFD) >= 0) count++;
  return count;
}

/** The lines of /proc/self/maps that name a path, deleted files included. */
export function mappingsOf(path: string): string[] {
  return procFile("/proc/self/maps").split("\n").filter((line) => line.includes(path));
}

/** Memory that is in use, in bytes. */
export function residentBytes(): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(procFile("/proc/self/status"));
  return Number(match?.[1]) * 1024;
}

function procFile(path: string): string {
  using file = new RawFile(path, { write: false });
  return new TextDecoder().decode(file.readAll());
}
