/** Passing values that the field table does not know. */

import { SnapshotDecodeError } from "../errors.ts";
import { FORM_OF_TAG, MAX_DEPTH, WIDTH } from "./wire.ts";

const NIL = 0xc0;

/**
 * Passes one MessagePack value of any kind.
 *
 * @param view The bytes.
 * @param at Where the value starts.
 * @param end Where the payload ends.
 * @param depth How deep it is nested.
 * @returns Where the next value starts.
 * @throws {SnapshotDecodeError} If it is cut off, nested too deep, or no MessagePack.
 */
export function skipValue(view: DataView, at: number, end: number, depth: number): number {
  if (at >= end) throw new SnapshotDecodeError("the end of the payload", at);
  const tag = view.getUint8(at);
  let size = 1;
  let values = 0;
  if (tag <= 0x7f || tag >= 0xe0 || tag === NIL || tag === 0xc2 || tag === 0xc3) size = 1;
  else if (tag <= 0x8f) values = (tag & 0x0f) * 2;
  else if (tag <= 0x9f) values = tag & 0x0f;
  else if (tag <= 0xbf) size = 1 + (tag & 0x1f);
  else if (tag >= 0xca && tag <= 0xd3) size = 1 + WIDTH[FORM_OF_TAG[tag - 0xca]!]!;
  else if (tag >= 0xd4 && tag <= 0xd8) size = 2 + (1 << (tag - 0xd4));
  else {
    const width = lengthWidth(tag);
    if (width === 0 || at + 1 + width > end) {
      throw new SnapshotDecodeError(
        width === 0 ? "an unused tag" : "the end of the payload",
        at,
      );
    }
    const length = width === 1
      ? view.getUint8(at + 1)
      : width === 2
      ? view.getUint16(at + 1)
      : view.getUint32(at + 1);
    size = 1 + width;
    if (tag >= 0xde) values = length * 2;
    else if (tag >= 0xdc) values = length;
    else size += length + (tag >= 0xc7 && tag <= 0xc9 ? 1 : 0);
  }
  let next = at + size;
  if (next > end || values > end - next) {
    throw new SnapshotDecodeError("the end of the payload", at);
  }
  if (values > 0 && depth >= MAX_DEPTH) {
    throw new SnapshotDecodeError(`values nested deeper than ${MAX_DEPTH}`, at);
  }
  for (; values > 0; values--) next = skipValue(view, next, end, depth + 1);
  return next;
}

/** Bytes of the length behind a tag that has one, or 0. */
function lengthWidth(tag: number): number {
  if (tag === 0xc4 || tag === 0xc7 || tag === 0xd9) return 1;
  if (tag === 0xc5 || tag === 0xc8 || tag === 0xda || tag === 0xdc || tag === 0xde) return 2;
  if (tag === 0xc6 || tag === 0xc9 || tag === 0xdb || tag === 0xdd || tag === 0xdf) return 4;
  return 0;
}
