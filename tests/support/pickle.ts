/** Pickle by hand, in any form that is asked for: what no pickler would write as well. */

/** Some instructions. */
export type Code = Uint8Array<ArrayBuffer>;

/** Instructions without arguments, by Python's names. */
export const OP = {
  MARK: one("("),
  EMPTY_TUPLE: one(")"),
  STOP: one("."),
  POP: one("0"),
  POP_MARK: one("1"),
  DUP: one("2"),
  NONE: one("N"),
  BINPERSID: one("Q"),
  REDUCE: one("R"),
  EMPTY_LIST: one("]"),
  APPEND: one("a"),
  BUILD: one("b"),
  DICT: one("d"),
  APPENDS: one("e"),
  LIST: one("l"),
  OBJ: one("o"),
  SETITEM: one("s"),
  TUPLE: one("t"),
  SETITEMS: one("u"),
  EMPTY_DICT: one("}"),
  NEWOBJ: one("\x81"),
  TUPLE1: one("\x85"),
  TUPLE2: one("\x86"),
  TUPLE3: one("\x87"),
  NEWTRUE: one("\x88"),
  NEWFALSE: one("\x89"),
  EMPTY_SET: one("\x8f"),
  ADDITEMS: one("\x90"),
  FROZENSET: one("\x91"),
  NEWOBJ_EX: one("\x92"),
  STACK_GLOBAL: one("\x93"),
  MEMOIZE: one("\x94"),
  NEXT_BUFFER: one("\x97"),
  READONLY_BUFFER: one("\x98"),
} as const;

/** A whole pickle: the protocol, the instructions and the end. */
export function pickle(protocol: number, ...code: readonly Code[]): Code {
  return join(Uint8Array.of(0x80, protocol), ...code, OP.STOP);
}

/** The same in a frame, as protocol 4 has it. */
export function framed(protocol: number, ...code: readonly Code[]): Code {
  const body = join(...code, OP.STOP);
  return join(Uint8Array.of(0x80, protocol, 0x95), uint(8, body.length), body);
}

/** Any instruction with its argument. */
export function raw(opcode: number | string, ...argument: readonly number[]): Code {
  return Uint8Array.of(typeof opcode === "string" ? opcode.charCodeAt(0) : opcode, ...argument);
}

/** Text, in the short form of protocol 4; `length` lies about it. */
export function text(content: string, length?: number): Code {
  const bytes = utf8(content);
  return join(raw(0x8c, length ?? bytes.length), bytes);
}

/** Text, in the form of the older protocols; `length` lies about it. */
export function longText(content: string, length?: number): Code {
  const bytes = utf8(content);
  return join(raw("X"), uint(4, length ?? bytes.length), bytes);
}

/** Bytes of protocol 3. */
export function bytes(...content: readonly number[]): Code {
  return raw("C", content.length, ...content);
}

/** An integer of up to four bytes. */
export function int(value: number): Code {
  return join(raw("J"), uint(4, value));
}

/** An integer in two's complement. */
export function long(...content: readonly number[]): Code {
  return raw(0x8a, content.length, ...content);
}

/** A float. */
export function float(value: number): Code {
  const code = raw("G", 0, 0, 0, 0, 0, 0, 0, 0);
  new DataView(code.buffer).setFloat64(1, value);
  return code;
}

/** A name, in the form of the older protocols. */
export function global(module: string, name: string): Code {
  return utf8(`c${module}\n${name}\n`);
}

/** A name, in the form of protocol 4. */
export function stackGlobal(module: string, name: string): Code {
  return join(text(module), text(name), OP.STACK_GLOBAL);
}

/** A tuple of any length. */
export function tuple(...items: readonly Code[]): Code {
  return join(OP.MARK, ...items, OP.TUPLE);
}

/** A dict, filled in one step. */
export function dict(...entries: readonly (readonly [key: Code, value: Code])[]): Code {
  return join(OP.EMPTY_DICT, OP.MARK, ...entries.flat(), OP.SETITEMS);
}

/** A call. */
export function reduce(target: Code, ...args: readonly Code[]): Code {
  return join(target, tuple(...args), OP.REDUCE);
}

/** The class, in the module of 2025. */
export const CLASS: Code = global("sglang.srt.managers.scheduler", "KvMetrics");

/** An object of the class, without a state. */
export const OBJECT: Code = join(CLASS, OP.EMPTY_TUPLE, OP.NEWOBJ);

/** The object with these fields. */
export function kvMetrics(...entries: readonly (readonly [key: Code, value: Code])[]): Code {
  return join(OBJECT, dict(...entries), OP.BUILD);
}

/** Numpy's dtype by its code and byte order. */
export function dtype(code: string, order: string): Code {
  const state = tuple(
    ...[int(3), text(order), OP.NONE, OP.NONE, OP.NONE, int(-1), int(-1), int(0)],
  );
  const made = reduce(global("numpy", "dtype"), text(code), OP.NEWFALSE, OP.NEWTRUE);
  return join(made, state, OP.BUILD);
}

/** Numpy's scalar. */
export function scalar(code: string, order: string, ...content: readonly number[]): Code {
  const function_ = global("numpy._core.multiarray", "scalar");
  return join(function_, dtype(code, order), bytes(...content), OP.TUPLE2, OP.REDUCE);
}

/** Puts pieces of code together. */
export function join(...pieces: readonly Uint8Array[]): Code {
  const code = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    code.set(piece, at);
    at += piece.length;
  }
  return code;
}

/** The same code so many times. */
export function repeat(count: number, code: Code): Code {
  const repeated = new Uint8Array(count * code.length);
  for (let n = 0; n < count; n++) repeated.set(code, n * code.length);
  return repeated;
}

/** An integer of so many bytes, its lowest byte first. */
export function uint(size: number, value: number): Code {
  return Uint8Array.from({ length: size }, (_, n) => Math.floor(value / 2 ** (8 * n)) & 0xff);
}

function one(opcode: string): Code {
  return raw(opcode);
}

function utf8(content: string): Code {
  return Uint8Array.from(new TextEncoder().encode(content));
}
