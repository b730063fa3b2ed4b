/**
 * What {@linkcode changedSections} in shape.ts does word by word, sixteen bytes at a time: that loop
 * is a third of a read of a changed rank, 150 ns of 500, and JavaScript has no wider one. It is a
 * WebAssembly module of one function, spelled out here:
 *
 * ```wat
 * (func (export "changed") (param $now i32) (param $before i32) (param $mask i32) (param $size i32)
 *   (result i32)
 * ```
 */

const I32 = 0x7f;
const V128 = 0x7b;

const NOW = 0;
const BEFORE = 1;
const MASK = 2;
const SIZE = 3;
const AT = 4;
const DIFFERENCE = 5;
/** Where the payloads must not differ, but do. */
const OTHER = 6;
const CHANGED = 7;
/** A local that is never set. */
const ZERO = 8;

const get = (local: number): number[] => [0x20, local];
const set = (local: number): number[] => [0x21, local];
const tee = (local: number): number[] => [0x22, local];
const constant = (value: number): number[] => [0x41, value & 0x7f];
const ADD = 0x6a;
const LESS = 0x49; // i32.lt_u
const OR = 0x72;
const simd = (code: number): number[] =>
  code < 0x80 ? [0xfd, code] : [0xfd, code & 0x7f | 0x80, code >> 7];
const NOT_EQUAL = simd(0x38); // i32x4.ne
const V128_AND = simd(0x4e);
const V128_OR = simd(0x50);
const V128_XOR = simd(0x51);
const ANY_TRUE = simd(0x53);
const lane = (n: number): number[] => [...simd(0x1b), n]; // i32x4.extract_lane
/** Loads sixteen bytes from the address on the stack; aligned to as many. */
const LOAD = [...simd(0x00), 4, 0];

/** The module. It imports `memory` from `env`, and exports `changed`. */
export function changedSectionsModule(): WebAssembly.Module {
  return new WebAssembly.Module(Uint8Array.of(
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 4, I32, I32, I32, I32, 1, I32]), // the function's type
    ...section(2, [1, ...name("env"), ...name("memory"), 2, 0, 1]), // a memory of a page or more
    ...section(3, [1, 0]),
    ...section(7, [1, ...name("changed"), 0, 0]),
    ...section(10, [1, ...sized([...LOCALS, ...body()])]),
  ));
}

const LOCALS = [2, ...[1, I32], ...[4, V128]];

function body(): number[] {
  return [
    ...[0x03, 0x40], // loop
    // difference = now[at] ^ before[at]
    ...[...get(NOW), ...get(AT), ADD, ...LOAD],
    ...[...get(BEFORE), ...get(AT), ADD, ...LOAD],
    ...[...V128_XOR, ...tee(DIFFERENCE)],
    // other |= difference & bits[at]
    ...[...get(MASK), ...get(AT), ADD, ...LOAD, ...V128_AND],
    ...[...get(OTHER), ...V128_OR, ...set(OTHER)],
    // changed |= difference != 0 ? owners[at] : 0, for each word by itself
    ...[...get(DIFFERENCE), ...get(ZERO), ...NOT_EQUAL],
    ...[...get(MASK), ...get(AT), ADD, ...get(SIZE), ADD, ...LOAD, ...V128_AND],
    ...[...get(CHANGED), ...V128_OR, ...set(CHANGED)],
    // at += 16, and again while at < size
    ...[...get(AT), ...constant(16), ADD, ...tee(AT), ...get(SIZE), LESS, 0x0d, 0],
    0x0b, // end of the loop
    // other != 0 ? -1 : the words of changed, or-ed
    ...[...get(OTHER), ...ANY_TRUE, 0x04, I32, ...constant(-1), 0x05],
    ...[0, 1].flatMap((n) => [...get(CHANGED), ...lane(n)]),
    OR,
    ...[2, 3].flatMap((n) => [...get(CHANGED), ...lane(n)]),
    ...[OR, OR, 0x0b],
    0x0b, // end of the function
  ];
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...sized(content)];
}

/** Bytes behind their count, which takes seven bits a byte. */
function sized(content: readonly number[]): number[] {
  const { length } = content;
  return [...(length < 0x80 ? [length] : [length & 0x7f | 0x80, length >> 7]), ...content];
}

function name(text: string): number[] {
  return sized([...new TextEncoder().encode(text)]);
}
