/** Both encodings of a KvMetrics, told apart by their first byte. */

import { KvMetricsDecodeError } from "../errors.ts";
import type { KvMetricsMessage } from "./kv_metrics.ts";
import { decodeKvMetricsMsgpack } from "./msgpack.ts";
import { PROTO } from "./pickle_opcodes.ts";
import { decodeKvMetricsPickle } from "./pickle_reader.ts";

/**
 * Decodes a message of SGLang's scheduler, whichever release and encoding it comes from: pickle of
 * protocol 2 to 5, or MessagePack. Nothing of a pickle is executed.
 *
 * It takes what numbers there are; {@linkcode checkKvMetrics} tells whether they can be true.
 *
 * @param bytes The whole message, as it came from the socket.
 * @returns The values; `null` where the sender said nothing.
 * @throws {KvMetricsDecodeError} If it is no KvMetrics; a {@linkcode PickleRefusedError} if it is
 * another pickle.
 *
 * @example
 * ```ts
 * import { decodeKvMetrics } from "./mod.ts";
 *
 * const message = decodeKvMetrics(
 *   Uint8Array.fromHex("99a94b764d65747269637303cc80cd0200cd200002ca3d800000ca3f00000000"),
 * );
 * console.log(message.kvActiveBlocks); // 512
 * ```
 */
export function decodeKvMetrics(bytes: Uint8Array): KvMetricsMessage {
  const first = bytes[0];
  // Pickle begins with the protocol. In MessagePack that byte is an empty map.
  if (first === PROTO) return decodeKvMetricsPickle(bytes);
  if (first !== undefined && (first >> 4 === 0x9 || first === 0xdc || first === 0xdd)) {
    return decodeKvMetricsMsgpack(bytes);
  }
  const what = first === undefined ? "nothing" : `a first byte of 0x${first.toString(16)}`;
  throw new KvMetricsDecodeError("encoding", 0, what);
}
