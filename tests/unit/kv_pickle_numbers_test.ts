/** Integers and numpy's scalars: in range, of a known type, in either byte order. */

import assert from "node:assert/strict";
import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import * as p from "../support/pickle.ts";

const { OP } = p;

function read(value: p.Code): number | null {
  return decodeKvMetrics(p.pickle(2, p.kvMetrics([p.text("kv_active_blocks"), value])))
    .kvActiveBlocks;
}

function refuses(value: p.Code, reason: string, what: string): void {
  assert.throws(() => read(value), { name: "PickleRefusedError", reason, what });
}

Deno.test("integers are read in every width", () => {
  assert.equal(read(p.raw("K", 255)), 255);
  assert.equal(read(p.raw("M", 1, 255)), 65_281);
  assert.equal(read(p.int(-1)), -1);
  assert.equal(read(p.int(-(2 ** 31))), -(2 ** 31));
  assert.equal(read(p.long()), 0);
  assert.equal(read(p.long(0xff)), -1);
  assert.equal(read(p.long(0, 0, 0, 0x80)), -(2 ** 31));
  assert.equal(read(p.long(0, 0, 0, 0x80, 0)), 2 ** 31);
  assert.equal(read(p.long(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f)), Number.MAX_SAFE_INTEGER);
  assert.equal(read(p.long(1, 0, 0, 0, 0, 0, 0xe0)), Number.MIN_SAFE_INTEGER);
  assert.equal(read(p.long(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)), -1);
  assert.equal(read(p.raw(0x8b, 2, 0, 0, 0, 0, 1)), 256);
  assert.equal(read(OP.NEWTRUE), 1);
  assert.equal(read(OP.NEWFALSE), 0);
  assert.equal(read(OP.NONE), null);
});

Deno.test("an integer beyond 2^53 is refused, however it is written", () => {
  refuses(p.long(0, 0, 0, 0, 0, 0, 0x20), "integer", "an integer beyond 2^53");
  refuses(p.long(0, 0, 0, 0, 0, 0, 0xe0), "integer", "an integer beyond 2^53");
  refuses(p.long(0, 0, 0, 0, 0, 0, 0x80), "integer", "an integer beyond 2^53");
  refuses(p.long(0, 0, 0, 0, 0, 0, 0, 1), "integer", "an integer of 8 bytes");
  refuses(p.long(...Array(255).fill(0xff)), "integer", "an integer of 255 bytes");
  const long = p.join(p.raw(0x8b), p.uint(4, 4000), p.repeat(4000, p.raw(0xff)));
  refuses(long, "integer", "an integer of 4000 bytes");
});

Deno.test("floats are read to the bit", () => {
  for (const value of [0, -0, 0.1, 5e-324, Number.MAX_VALUE, Infinity, -Infinity, NaN]) {
    assert(Object.is(read(p.float(value)), value), String(value));
  }
});

/** By dtype: what the bytes 01 02 .. 08 stand for, the lowest first and the highest first. */
const SCALARS: Readonly<Record<string, readonly [little: number, big: number]>> = {
  i2: [0x0201, 0x0102],
  u2: [0x0201, 0x0102],
  i4: [0x04030201, 0x01020304],
  u4: [0x04030201, 0x01020304],
  f2: [0x201 * 2 ** -24, 0x102 * 2 ** -24],
};

for (const [code, [little, big]] of Object.entries(SCALARS)) {
  Deno.test(`a scalar of ${code} is read in either byte order`, () => {
    const content = [1, 2, 3, 4].slice(0, Number(code[1]));
    assert.equal(read(p.scalar(code, "<", ...content)), little);
    assert.equal(read(p.scalar(code, ">", ...content)), big);
    for (const order of ["|", "=", "", "<<", "x"]) {
      refuses(p.scalar(code, order, ...content), "numpy", "a dtype of an unknown form");
    }
  });
}

Deno.test("scalars of 64 bits are read in either byte order, up to 2^53", () => {
  const greatest = [0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
  for (const code of ["i8", "u8"]) {
    assert.equal(read(p.scalar(code, ">", ...greatest)), Number.MAX_SAFE_INTEGER);
    assert.equal(read(p.scalar(code, "<", ...greatest.toReversed())), Number.MAX_SAFE_INTEGER);
    const beyond = p.scalar(code, ">", 0, 0x20, 0, 0, 0, 0, 0, 0);
    refuses(beyond, "integer", "an integer beyond 2^53");
  }
  const least = [0xff, 0xe0, 0, 0, 0, 0, 0, 1];
  assert.equal(read(p.scalar("i8", ">", ...least)), Number.MIN_SAFE_INTEGER);
  refuses(p.scalar("u8", ">", ...least), "integer", "an integer beyond 2^53");
  assert.equal(read(p.scalar("f8", ">", 0x3f, 0xf0, 0, 0, 0, 0, 0, 0)), 1);
  assert.equal(read(p.scalar("f4", ">", 0x3f, 0x80, 0, 0)), 1);
});

Deno.test("scalars of one byte have no order", () => {
  assert.equal(read(p.scalar("i1", "|", 0xff)), -1);
  assert.equal(read(p.scalar("u1", "|", 0xff)), 255);
  assert.equal(read(p.scalar("b1", "|", 1)), 1);
  assert.equal(read(p.scalar("b1", "|", 0)), 0);
  refuses(p.scalar("i1", "<", 1), "numpy", "a dtype of an unknown form");
});

Deno.test("other dtypes, and bytes that do not fit, are refused", () => {
  for (
    const code of ["f16", "c16", "O", "O8", "S1", "U1", "V8", "M8", "m8", "i3", "", "__proto__"]
  ) {
    refuses(p.scalar(code, "<", 1), "numpy", `dtype ${code}`);
  }
  for (const content of [[], [1], [1, 2, 3], [1, 2, 3, 4, 5], Array(100).fill(1)]) {
    refuses(p.scalar("i4", "<", ...content), "numpy", "bytes that do not fit their dtype");
  }
});

Deno.test("a dtype has the form that numpy gives it", () => {
  const dtype = p.global("numpy", "dtype");
  const made = (...args: readonly p.Code[]) => p.reduce(dtype, ...args);
  const scalarOf = (type: p.Code) =>
    p.join(p.global("numpy.core.multiarray", "scalar"), type, p.bytes(1), OP.TUPLE2, OP.REDUCE);
  const state = (...items: readonly p.Code[]) => p.join(p.tuple(...items), OP.BUILD);
  const tail = [OP.NONE, OP.NONE, OP.NONE, p.int(-1), p.int(-1), p.int(0)];
  // Older releases of numpy write the flags as integers.
  const older = p.join(
    made(p.text("u1"), p.int(0), p.int(1)),
    state(p.int(3), p.text("|"), ...tail),
  );
  assert.equal(read(scalarOf(older)), 1);
  const form = "a dtype of an unknown form";
  refuses(made(p.text("u1"), OP.NEWTRUE, OP.NEWTRUE), "numpy", form);
  refuses(made(p.int(1), OP.NEWFALSE, OP.NEWTRUE), "numpy", form);
  const whole = made(p.text("u1"), OP.NEWFALSE, OP.NEWTRUE);
  refuses(p.join(whole, state(p.int(4), p.text("|"), ...tail)), "numpy", form);
  refuses(p.join(whole, state(p.int(3), p.text("|"), ...tail, OP.NONE)), "numpy", form);
  refuses(p.join(whole, state(p.int(3), p.text("|"), ...tail.slice(1))), "numpy", form);
  refuses(p.join(whole, state(p.int(3), OP.NONE, ...tail)), "numpy", form);
  // Without its byte order, it fits no bytes.
  refuses(scalarOf(whole), "numpy", "bytes that do not fit their dtype");
  refuses(scalarOf(p.text("u1")), "numpy", "a scalar of str and bytes");
});
