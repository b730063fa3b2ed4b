/**
 * The bytes around the values: what Python's pickler writes in protocols 4 and 5 for each form that
 * SGLang's class has had. The writer puts them together, and the reader's shortcut looks for them.
 */

import { KV_FIELDS } from "./fields.ts";
import * as op from "./pickle_opcodes.ts";
import { KV_METRICS } from "./pickle_values.ts";

/**
 * How the class is made, which decides how its objects travel:
 *
 * - `"plain"`: a class with a `__dict__`, or a dataclass;
 * - `"slots"`: a dataclass with slots. Python can read it into a plain class as well;
 * - `"struct"`: a msgspec Struct. Python can read it into any dataclass as well.
 */
export type PickleForm = "plain" | "slots" | "struct";

/** Where the frame's length stands. */
export const FRAME_LENGTH_AT = 3;

/** Where the part begins that a frame's length counts. */
export const FRAMED_AT = 11;

/** Constant bytes, with their words for comparing. */
export interface Segment {
  readonly bytes: Uint8Array;
  /** Big endian; the last one overlaps its predecessor. */
  readonly words: Int32Array;
}

/** The constant parts of a form: before the module's name, from there to the values, and behind. */
export interface FormLayout {
  readonly before: Segment;
  readonly after: Segment;
  readonly end: Segment;
}

const { MEMOIZE, STACK_GLOBAL, EMPTY_TUPLE, NEWOBJ, NONE, EMPTY_DICT, MARK, SETITEMS } = op;
const { TUPLE2, REDUCE, BUILD, STOP } = op;

/** Text as it is written and remembered. */
export function shortText(text: string): number[] {
  const bytes = new TextEncoder().encode(text);
  return [op.SHORT_BINUNICODE, bytes.length, ...bytes, MEMOIZE];
}

const CLASS = [MEMOIZE, ...shortText(KV_METRICS.name), STACK_GLOBAL, MEMOIZE];
const OBJECT = [...CLASS, EMPTY_TUPLE, NEWOBJ, MEMOIZE];
const DICT = [EMPTY_DICT, MEMOIZE, MARK];

/** The layouts by form. */
export const LAYOUTS: Readonly<Record<PickleForm, FormLayout>> = {
  plain: {
    before: segment([]),
    after: segment([...OBJECT, ...DICT]),
    end: segment([SETITEMS, BUILD, STOP]),
  },
  slots: {
    before: segment([]),
    after: segment([...OBJECT, NONE, ...DICT]),
    end: segment([SETITEMS, TUPLE2, MEMOIZE, BUILD, STOP]),
  },
  struct: {
    before: segment([
      ...shortText("msgspec._utils"),
      ...shortText("rebuild"),
      STACK_GLOBAL,
      MEMOIZE,
    ]),
    after: segment([...CLASS, ...DICT]),
    end: segment([SETITEMS, TUPLE2, MEMOIZE, REDUCE, MEMOIZE, STOP]),
  },
};

/** The field names as keys of the dict, in wire order. */
export const KEYS: readonly Segment[] = KV_FIELDS.map(({ wire }) => segment(shortText(wire)));

function segment(content: readonly number[]): Segment {
  const bytes = Uint8Array.from(content);
  const view = new DataView(bytes.buffer);
  const count = bytes.length < 4 ? 0 : Math.ceil(bytes.length / 4);
  const words = Int32Array.from(
    { length: count },
    (_, w) => view.getInt32(Math.min(w * 4, bytes.length - 4)),
  );
  return { bytes, words };
}

/** Whether a segment stands at a place, in whole. */
export function standsAt(view: DataView, at: number, { bytes, words }: Segment): boolean {
  const last = at + bytes.length - 4;
  if (last + 4 > view.byteLength) return false;
  if (words.length === 0) {
    for (let n = 0; n < bytes.length; n++) if (view.getUint8(at + n) !== bytes[n]) return false;
    return true;
  }
  let word = 0;
  for (; at < last; at += 4) if (view.getInt32(at) !== words[word++]) return false;
  return view.getInt32(last) === words[word];
}
