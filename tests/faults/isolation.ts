/**
 * Namespaces for a run: its mounts and networks are its own, and whatever way it ends, nothing of it
 * is left running, and nothing of it stays in /dev/shm. What a library leaves there by process number
 * (libfaketime does, when it is killed) cannot meet a process of a later run with the same number.
 */

import { isRoot } from "../support/raw_libc.ts";

/** The environment variable that tells a process inside where the small file system is, or why not. */
export const INSIDE = "LOADSLOTS_SOAK_INSIDE";

const MOUNT = [
  'mount -t tmpfs -o size=256k,mode=700 tmpfs "$0"',
  "mount -t tmpfs -o mode=1777 tmpfs /dev/shm",
  "ip link set lo up",
  'exec "$@"',
].join(" && ");

/** How a run is started in namespaces of its own. */
export interface Isolation {
  readonly command: readonly string[];
  /** Why it is not, or `null`. */
  readonly whyNot: string | null;
}

/**
 * Finds out what the machine allows.
 *
 * @param folder Where a small file system is to be mounted.
 */
export async function isolate(folder: string): Promise<Isolation> {
  const user = isRoot() ? [] : ["--map-root-user"];
  const flags = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", ...user];
  const command = ["unshare", ...flags, "sh", "-c", MOUNT, folder];
  const why = await failureOf([...command, "true"]);
  return why === null ? { command, whyNot: null } : { command: [], whyNot: why };
}

async function failureOf([command = "", ...args]: readonly string[]): Promise<string | null> {
  try {
    const { success, stderr } = await new Deno.Command(command, { args, stdin: "null" }).output();
    return success ? null : new TextDecoder().decode(stderr).trim();
  } catch (error) {
    return String(error);
  }
}
