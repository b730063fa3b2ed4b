/** A MessagePack value that this release does not know, kept as it came. */

import { Packr } from "npm:msgpackr@2.1.4/pack";
import { Unpackr } from "npm:msgpackr@2.1.4/unpack";

const OPTIONS = {
  useRecords: false,
  variableMapSize: true,
  // The package's types do not know "auto": a number where it is exact, else a bigint.
  int64AsType: "auto" as "number",
  copyBuffers: true,
};

/**
 * One MessagePack value, byte for byte. Snapshots keep what a newer engine sends in it, so that
 * nothing is lost on the way, and it is decoded only when asked.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot, RawMsgpack } from "./mod.ts";
 *
 * const snapshot = createLoadSnapshot({ extra: { last_accepted_dispatch_seq: RawMsgpack.from(7) } });
 * console.log(snapshot.extra?.["last_accepted_dispatch_seq"]?.value()); // 7
 * ```
 */
export class RawMsgpack {
  /** The encoded value, as it came. */
  readonly bytes: Uint8Array;

  /**
   * Wraps one encoded value.
   *
   * @param bytes Exactly one MessagePack value. It is not copied.
   */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /**
   * Encodes a JavaScript value.
   *
   * @param value Anything that MessagePack can hold. Whole numbers of up to 32 bits become
   *   integers; pass a `bigint` for longer ones.
   * @returns The encoded value.
   */
  static from(value: unknown): RawMsgpack {
    return new RawMsgpack(Uint8Array.from(new Packr(OPTIONS).pack(value)));
  }

  /**
   * Decodes the value.
   *
   * @returns What the bytes stand for; integers beyond 2^53 as `bigint`.
   * @throws {Error} If the bytes are not one MessagePack value.
   */
  value(): unknown {
    return new Unpackr(OPTIONS).unpack(this.bytes);
  }
}
