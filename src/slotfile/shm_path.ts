/** The path that an engine's name stands for. */

import { blake2s } from "npm:@noble/hashes@2.4.0/blake2.js";

/** What Python's `str.isalnum` accepts: letters, and whatever has a numeric, digit or decimal value. */
const ALNUM = /^[\p{L}\p{N}]$/u;

/**
 * The slot file of an engine on this node.
 *
 * @param name The engine's instance id, or an IPC name; SGLang's `instance_id`.
 * @returns A path below `/dev/shm`.
 *
 * @example
 * ```ts
 * import { shmPathFor } from "./mod.ts";
 *
 * console.log(shmPathFor("4c00ec5647f7")); // /dev/shm/sglang_loads_4c00ec5647f7_b4fb99a3.shm
 * ```
 */
export function shmPathFor(name: string): string {
  const base = name.replace(/\/+$/, "").split("/").at(-1) || "default";
  return `/dev/shm/sglang_loads_${safeName(base)}_${nameDigest(name)}.shm`;
}

/** A name with every character replaced that is neither alphanumeric nor one of `._-`. */
export function safeName(name: string): string {
  return Array.from(name, (c) => ALNUM.test(c) || "._-".includes(c) ? c : "_").join("");
}

/** The 4-byte BLAKE2s of a name, in hex. */
export function nameDigest(name: string): string {
  return blake2s(new TextEncoder().encode(name), { dkLen: 4 }).toHex();
}
