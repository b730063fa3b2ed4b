/** The instructions of pickle: those that are read, and the names of the others. */

export const MARK = 0x28;
export const EMPTY_TUPLE = 0x29;
export const STOP = 0x2e;
export const SHORT_BINBYTES = 0x43;
export const BINFLOAT = 0x47;
export const BININT = 0x4a;
export const BININT1 = 0x4b;
export const BININT2 = 0x4d;
export const NONE = 0x4e;
export const REDUCE = 0x52;
export const BINUNICODE = 0x58;
export const BUILD = 0x62;
export const GLOBAL = 0x63;
export const BINGET = 0x68;
export const LONG_BINGET = 0x6a;
export const BINPUT = 0x71;
export const LONG_BINPUT = 0x72;
export const SETITEM = 0x73;
export const TUPLE = 0x74;
export const SETITEMS = 0x75;
export const EMPTY_DICT = 0x7d;
export const PROTO = 0x80;
export const NEWOBJ = 0x81;
export const TUPLE2 = 0x86;
export const TUPLE3 = 0x87;
export const NEWTRUE = 0x88;
export const NEWFALSE = 0x89;
export const LONG1 = 0x8a;
export const LONG4 = 0x8b;
export const SHORT_BINUNICODE = 0x8c;
export const STACK_GLOBAL = 0x93;
export const MEMOIZE = 0x94;
export const FRAME = 0x95;

/** What else there is. Real senders need none of these for a KvMetrics. */
const REFUSED: Readonly<Record<string, string>> = {
  "0": "POP",
  "1": "POP_MARK",
  "2": "DUP",
  "B": "BINBYTES",
  "F": "FLOAT",
  "I": "INT",
  "L": "LONG",
  "P": "PERSID",
  "Q": "BINPERSID",
  "S": "STRING",
  "T": "BINSTRING",
  "U": "SHORT_BINSTRING",
  "V": "UNICODE",
  "]": "EMPTY_LIST",
  "a": "APPEND",
  "d": "DICT",
  "e": "APPENDS",
  "g": "GET",
  "i": "INST",
  "l": "LIST",
  "o": "OBJ",
  "p": "PUT",
  "\x80": "PROTO",
  "\x82": "EXT1",
  "\x83": "EXT2",
  "\x84": "EXT4",
  "\x85": "TUPLE1",
  "\x8d": "BINUNICODE8",
  "\x8e": "BINBYTES8",
  "\x8f": "EMPTY_SET",
  "\x90": "ADDITEMS",
  "\x91": "FROZENSET",
  "\x92": "NEWOBJ_EX",
  "\x95": "FRAME",
  "\x96": "BYTEARRAY8",
  "\x97": "NEXT_BUFFER",
  "\x98": "READONLY_BUFFER",
};

/** What an instruction that is refused is called. */
export function refusedName(opcode: number): string {
  return REFUSED[String.fromCharCode(opcode)] ?? `opcode 0x${opcode.toString(16).padStart(2, "0")}`;
}
