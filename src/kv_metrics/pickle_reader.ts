/** From a pickle to a message, without executing anything of it. */

import { PickleRefusedError } from "../errors.ts";
import { type FieldValues, messageOf } from "./field_values.ts";
import type { KvMetricsMessage } from "./kv_metrics.ts";
import { type FormLayout, FRAMED_AT, KEYS, LAYOUTS, standsAt } from "./pickle_layout.ts";
import { PickleMachine } from "./pickle_machine.ts";
import * as op from "./pickle_opcodes.ts";

/** The longest pickle that is read. A usual one has 300 bytes, one of numpy scalars some 1,000. */
export const MAX_PICKLE_BYTES = 8192;

const SGLANG = [..."sglang."].map((letter) => letter.charCodeAt(0));
/** Bytes that may stand in a module's name, by byte. */
const IS_NAME = Uint8Array.from(
  { length: 256 },
  (_, byte) => Number(/[A-Za-z0-9_.]/.test(String.fromCharCode(byte))),
);
const USUAL: readonly FormLayout[] = [LAYOUTS.plain, LAYOUTS.struct, LAYOUTS.slots];

/**
 * Reads a pickled KvMetrics of protocol 2 to 5, as pyzmq's `send_pyobj` sends it: of SGLang's class
 * in any of its forms and modules, with Python's numbers or numpy's in it.
 *
 * Pickle is a program that builds objects. Python executes it, so that whoever may send one may do
 * anything. Here it is only read: whatever is not needed for a KvMetrics is refused, and the work
 * is bounded by the size, at most 8 KiB.
 *
 * @param bytes The whole pickle.
 * @returns The message; what the sender left out or set to None is `null`.
 * @throws {PickleRefusedError} If it is anything else.
 */
export function decodeKvMetricsPickle(bytes: Uint8Array): KvMetricsMessage {
  if (bytes.length > MAX_PICKLE_BYTES) {
    throw new PickleRefusedError("size", MAX_PICKLE_BYTES, `${bytes.length} bytes`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return messageOf(readUsual(bytes, view) ?? new PickleMachine(bytes, view).run());
}

/**
 * The shortcut: most pickles have the bytes of a known layout around their values. `null` if this
 * one has not; then the machine has to look at it, and says what is wrong if something is.
 */
export function readUsual(bytes: Uint8Array, view: DataView): FieldValues | null {
  const isFramed = bytes.length > FRAMED_AT && bytes[0] === op.PROTO &&
    (bytes[1] === 4 || bytes[1] === 5) && bytes[2] === op.FRAME &&
    view.getUint32(3, true) === bytes.length - FRAMED_AT && view.getUint32(7, true) === 0;
  if (!isFramed) return null;
  for (const layout of USUAL) {
    if (!standsAt(view, FRAMED_AT, layout.before)) continue;
    const at = passModule(bytes, FRAMED_AT + layout.before.bytes.length);
    if (at >= 0 && standsAt(view, at, layout.after)) {
      return readFields(bytes, view, at + layout.after.bytes.length, layout);
    }
  }
  return null;
}

/** Passes the name of one of SGLang's modules; -1 if there is none. */
function passModule(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== op.SHORT_BINUNICODE) return -1;
  const start = at + 2;
  const end = start + bytes[at + 1]!;
  if (end - start <= SGLANG.length || end > bytes.length) return -1;
  for (let n = 0; n < SGLANG.length; n++) if (bytes[start + n] !== SGLANG[n]) return -1;
  for (let n = start; n < end; n++) if (IS_NAME[bytes[n]!] === 0) return -1;
  return end;
}

function readFields(
  bytes: Uint8Array,
  view: DataView,
  start: number,
  layout: FormLayout,
): FieldValues | null {
  const end = bytes.length - layout.end.bytes.length;
  const values: FieldValues = [];
  let at = start;
  for (const key of KEYS) {
    if (!standsAt(view, at, key)) return null;
    at += key.bytes.length;
    const size = SIZES[bytes[at]!]!;
    if (size === 0 || at + size > end) return null;
    values.push(readNumber(bytes, view, at));
    at += size;
  }
  return at === end && standsAt(view, at, layout.end) ? values : null;
}

/** Bytes of the usual numbers and of None, by instruction; 0 for what the machine has to read. */
const SIZES = new Uint8Array(256);
SIZES[op.NONE] = 1;
SIZES[op.BININT1] = 2;
SIZES[op.BININT2] = 3;
SIZES[op.BININT] = 5;
SIZES[op.BINFLOAT] = 9;

function readNumber(bytes: Uint8Array, view: DataView, at: number): number | null {
  switch (bytes[at]) {
    case op.BININT1:
      return bytes[at + 1]!;
    case op.BININT2:
      return view.getUint16(at + 1, true);
    case op.BININT:
      return view.getInt32(at + 1, true);
    case op.BINFLOAT:
      return view.getFloat64(at + 1);
    default:
      return null;
  }
}
