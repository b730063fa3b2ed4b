/** Which rank a prefix belongs to: the same one for everyone who asks, with no table. */

/**
 * Hashes a key to 32 bits (FNV-1a over its code units). It makes nothing that has to be collected.
 *
 * @param key The key, such as a hash of the prompt's first blocks, or a session's id.
 */
export function hashKey(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) {
    hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  }
  return hash | 0;
}

/** Mixes a key's hash with a rank, so that each rank's order of keys has nothing to do with another's. */
function mix(hash: number, dpRank: number): number {
  let mixed = hash ^ Math.imul(dpRank + 1, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/**
 * Chooses a rank by rendezvous hashing: when ranks come or go, only the keys of those move.
 *
 * @param hash The key's hash.
 * @param ranks The ranks to choose among.
 * @param count How many of them are valid, 1 or more.
 * @returns The rank.
 */
export function rendezvousRank(hash: number, ranks: Uint16Array, count: number): number {
  let found = ranks[0]!;
  let most = mix(hash, found);
  for (let n = 1; n < count; n++) {
    const rank = ranks[n]!;
    const value = mix(hash, rank);
    if (value > most) {
      most = value;
      found = rank;
    }
  }
  return found;
}
