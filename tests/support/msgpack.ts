/** MessagePack by hand, in any form that is asked for: what an encoder would never choose as well. */

/** One encoded value, or several in a row. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** How an integer is written: in its tag, or behind one. */
export type IntForm = "fix" | "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64";

/** How the length of a string, array or map is written: in the tag, or in so many bits behind it. */
export type LengthForm = "fix" | 8 | 16 | 32;

/** The least and the greatest integer of each form. */
export const INT_RANGES: Readonly<Record<IntForm, readonly [bigint, bigint]>> = {
  fix: [-32n, 127n],
  u8: [0n, 2n ** 8n - 1n],
  u16: [0n, 2n ** 16n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  u64: [0n, 2n ** 64n - 1n],
  i8: [-(2n ** 7n), 2n ** 7n - 1n],
  i16: [-(2n ** 15n), 2n ** 15n - 1n],
  i32: [-(2n ** 31n), 2n ** 31n - 1n],
  i64: [-(2n ** 63n), 2n ** 63n - 1n],
};

/** The forms of integers. */
export const INT_FORMS = Object.keys(INT_RANGES) as readonly IntForm[];

const INT_TAGS: Readonly<Record<Exclude<IntForm, "fix">, number>> = {
  u8: 0xcc,
  u16: 0xcd,
  u32: 0xce,
  u64: 0xcf,
  i8: 0xd0,
  i16: 0xd1,
  i32: 0xd2,
  i64: 0xd3,
};

/** The value nil. */
export const NIL: Bytes = Uint8Array.of(0xc0);

/** A boolean. */
export function bool(value: boolean): Bytes {
  return Uint8Array.of(value ? 0xc3 : 0xc2);
}

/** An integer in the form that is asked for; by default the shortest. */
export function int(value: number | bigint, form: IntForm = shortestForm(BigInt(value))): Bytes {
  const exact = BigInt(value);
  const [least, greatest] = INT_RANGES[form];
  if (exact < least || exact > greatest) throw new RangeError(`${exact} has no form ${form}`);
  if (form === "fix") return Uint8Array.of(Number(BigInt.asUintN(8, exact)));
  return concat(Uint8Array.of(INT_TAGS[form]), bigEndian(exact, Number(form.slice(1)) / 8));
}

/** A float of 8 bytes. */
export function float(value: number): Bytes {
  const bytes = Uint8Array.of(0xcb, 0, 0, 0, 0, 0, 0, 0, 0);
  new DataView(bytes.buffer).setFloat64(1, value);
  return bytes;
}

/** A float of 4 bytes. */
export function float32(value: number): Bytes {
  const bytes = Uint8Array.of(0xca, 0, 0, 0, 0);
  new DataView(bytes.buffer).setFloat32(1, value);
  return bytes;
}

/** A string, or bytes that claim to be one; by default in its shortest form. */
export function str(content: string | Uint8Array, form?: LengthForm): Bytes {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const { length } = bytes;
  const shortest = length < 32 ? "fix" : length < 0x100 ? 8 : wide(length);
  return concat(head(length, form ?? shortest, [0xa0, 0xd9, 0xda, 0xdb]), bytes);
}

/** Binary data. */
export function bin(content: Uint8Array): Bytes {
  return concat(Uint8Array.of(0xc4, content.length), content);
}

/** A value of an application's own type. */
export function ext(type: number, content: Uint8Array): Bytes {
  return concat(Uint8Array.of(0xc7, content.length, type), content);
}

/** An array; by default in its shortest form. */
export function array(items: readonly Uint8Array[], form?: Exclude<LengthForm, 8>): Bytes {
  return join([arrayHead(items.length, form), ...items]);
}

/** The head of an array, whatever follows. */
export function arrayHead(count: number, form?: Exclude<LengthForm, 8>): Bytes {
  return head(count, form ?? (count < 16 ? "fix" : wide(count)), [0x90, 0, 0xdc, 0xdd]);
}

/** A map; keys may be strings or any encoded values. By default in its shortest form. */
export function map(
  entries: readonly (readonly [string | Uint8Array, Uint8Array])[],
  form?: Exclude<LengthForm, 8>,
): Bytes {
  const parts = entries.flatMap(([key, value]) => [
    typeof key === "string" ? str(key) : key,
    value,
  ]);
  return join([mapHead(entries.length, form), ...parts]);
}

/** The head of a map, whatever follows. */
export function mapHead(count: number, form?: Exclude<LengthForm, 8>): Bytes {
  return head(count, form ?? (count < 16 ? "fix" : wide(count)), [0x80, 0, 0xde, 0xdf]);
}

/** A map out of an object, in its keys' order. */
export function payload(entries: Readonly<Record<string, Uint8Array>>): Bytes {
  return map(Object.entries(entries));
}

/** Bytes in a row. */
export function concat(...parts: readonly Uint8Array[]): Bytes {
  return join(parts);
}

/** Bytes in a row, however many. */
export function join(parts: readonly Uint8Array[]): Bytes {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function head(
  length: number,
  form: LengthForm,
  [fix, tag8, tag16, tag32]: readonly [number, number, number, number],
): Bytes {
  if (form === "fix") return Uint8Array.of(fix | length);
  const tag = form === 8 ? tag8 : form === 16 ? tag16 : tag32;
  return concat(Uint8Array.of(tag), bigEndian(BigInt(length), form / 8));
}

function wide(length: number): 16 | 32 {
  return length < 0x10000 ? 16 : 32;
}

function bigEndian(value: bigint, byteLength: number): Bytes {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt.asUintN(64, value));
  return bytes.slice(8 - byteLength);
}

function shortestForm(value: bigint): IntForm {
  const forms: readonly IntForm[] = value < 0n
    ? ["fix", "i8", "i16", "i32", "i64"]
    : ["fix", "u8", "u16", "u32", "u64"];
  return forms.find((form) => value >= INT_RANGES[form][0] && value <= INT_RANGES[form][1]) ??
    "u64";
}
