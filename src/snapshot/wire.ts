/** The MessagePack forms that a number can have in a payload, and how wide each one is. */

/** No bytes at all: the value is its default. */
export const ABSENT = 0;
/** One byte that is tag and value, -32..127. */
export const FIXINT = 1;
export const UINT8 = 2;
export const UINT16 = 3;
export const UINT32 = 4;
export const UINT64 = 5;
export const INT8 = 6;
export const INT16 = 7;
export const INT32 = 8;
export const INT64 = 9;
export const FLOAT32 = 10;
export const FLOAT64 = 11;
/** A 64-bit integer in a float field: rounded like Python's `float()`, so never out of range. */
export const UINT64_AS_FLOAT = 12;
export const INT64_AS_FLOAT = 13;
/** A fixint below 0, where that makes a difference. */
export const NEGATIVE_FIXINT = 14;

/** Bytes of the value, without its tag, by form. */
export const WIDTH: Uint8Array = Uint8Array.of(0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 8, 1);

/** Bytes before a value in the word of four that ends with it, by form; wider ones start their own. */
export const LEAD: Uint8Array = WIDTH.map((width) => width === 0 ? 0 : Math.max(0, 4 - width));

/** The tag byte that stands before the value, by form; 0 where there is none. */
export const TAG: Uint8Array = Uint8Array.of(
  0,
  0,
  0xcc,
  0xcd,
  0xce,
  0xcf,
  0xd0,
  0xd1,
  0xd2,
  0xd3,
  0xca,
  0xcb,
  0xcf,
  0xd3,
  0,
);

/** The form of a tag byte 0xca..0xd3 in an int field; floats included, for the caller to refuse. */
export const FORM_OF_TAG: Uint8Array = Uint8Array.of(
  FLOAT32,
  FLOAT64,
  UINT8,
  UINT16,
  UINT32,
  UINT64,
  INT8,
  INT16,
  INT32,
  INT64,
);

/** Values nested deeper than this are refused, so that no payload can exhaust the stack. */
export const MAX_DEPTH = 64;

/** What a tag is called in an error's text. */
export function typeNameOf(tag: number): string {
  if (tag <= 0x7f || tag >= 0xe0) return "int";
  if (tag <= 0x8f) return "map";
  if (tag <= 0x9f) return "array";
  if (tag <= 0xbf) return "str";
  if (tag === 0xc0) return "nil";
  if (tag === 0xc1) return "an unused tag";
  if (tag <= 0xc3) return "bool";
  if (tag <= 0xc6) return "bin";
  if (tag <= 0xc9) return "ext";
  if (tag <= 0xcb) return "float";
  if (tag <= 0xd3) return "int";
  if (tag <= 0xd8) return "ext";
  if (tag <= 0xdb) return "str";
  return tag <= 0xdd ? "array" : "map";
}
