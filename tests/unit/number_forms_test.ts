/** Every form that MessagePack has for a number, in every kind of field. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { SnapshotDecodeError } from "../../src/errors.ts";
import { decodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { CORE_FIELDS, SECTIONS } from "../../src/snapshot/fields.ts";
import * as msgpack from "../support/msgpack.ts";

const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);

/** An integer and a form that can hold it. */
const anIntAndForm = fc.constantFrom(...msgpack.INT_FORMS).chain((form) => {
  const [min, max] = msgpack.INT_RANGES[form];
  return fc.tuple(fc.oneof(fc.bigInt({ min, max }), fc.constantFrom(min, max)), fc.constant(form));
});

const NO_NUMBERS: Readonly<Record<string, Uint8Array>> = {
  nil: msgpack.NIL,
  false: msgpack.bool(false),
  true: msgpack.bool(true),
  "a string": msgpack.str("1"),
  "a long string": msgpack.str("1", 32),
  "an empty string": msgpack.str(""),
  bytes: msgpack.bin(Uint8Array.of(1)),
  "a list": msgpack.array([msgpack.int(1)]),
  "an empty list": msgpack.array([]),
  "a map": msgpack.map([]),
  "an extension": msgpack.ext(1, Uint8Array.of(1)),
  "an unused tag": Uint8Array.of(0xc1),
};

Deno.test("an integer field takes every form, exactly up to 2^53 and no further", () => {
  fc.assert(fc.property(anIntAndForm, ([value, form]) => {
    const bytes = msgpack.payload({ num_used_tokens: msgpack.int(value, form) });
    if (value <= MAX_EXACT && value >= -MAX_EXACT) {
      assert.equal(decodeLoadSnapshot(bytes).numUsedTokens, Number(value));
    } else {
      assert.throws(() => decodeLoadSnapshot(bytes), tooLarge);
    }
  }));
});

Deno.test("the border of exact integers is sharp on both sides", () => {
  for (const sign of [1n, -1n]) {
    const forms = sign > 0n ? ["u64", "i64"] as const : ["i64"] as const;
    for (const form of forms) {
      const exact = msgpack.payload({ dp_rank: msgpack.int(sign * MAX_EXACT, form) });
      assert.equal(decodeLoadSnapshot(exact).dpRank, Number(sign) * Number.MAX_SAFE_INTEGER);
      for (const beyond of [1n, 2n, 3n, 2n ** 62n]) {
        const bytes = msgpack.payload({
          dp_rank: msgpack.int(sign * (MAX_EXACT + beyond), form),
        });
        assert.throws(() => decodeLoadSnapshot(bytes), tooLarge, `${sign} * ${beyond}`);
      }
    }
  }
  const greatest = msgpack.payload({ dp_rank: msgpack.int(2n ** 64n - 1n, "u64") });
  assert.throws(() => decodeLoadSnapshot(greatest), tooLarge);
});

Deno.test("a float field takes integers of every form, rounded like Python does", () => {
  fc.assert(fc.property(anIntAndForm, ([value, form]) => {
    const item = msgpack.int(value, form);
    const bytes = msgpack.payload({
      timestamp: item,
      decode_moments: msgpack.array([item, item]),
      lora: msgpack.array([msgpack.int(1), msgpack.int(1), item]),
    });
    const { timestamp, decodeMoments, lora } = decodeLoadSnapshot(bytes);
    const expected = Number(value);
    assert.deepEqual([timestamp, decodeMoments, lora?.utilization], [
      expected,
      [expected, expected],
      expected,
    ]);
  }));
});

Deno.test("a float field takes floats of both widths: NaN, infinities, zeros of both signs", () => {
  const special = fc.constantFrom(0, -0, NaN, Infinity, -Infinity, 5e-324, Number.MAX_VALUE);
  fc.assert(fc.property(fc.oneof(special, fc.double(), fc.float()), (value) => {
    const { tokenUsage, genThroughput } = decodeLoadSnapshot(
      msgpack.payload({
        token_usage: msgpack.float(value),
        gen_throughput: msgpack.float32(value),
      }),
    );
    assert.equal(tokenUsage, value);
    assert.equal(genThroughput, Math.fround(value));
  }));
});

Deno.test("each integer field of the table takes an integer, and no float", () => {
  forEachField("int", (name, payloadOf, read) => {
    assert.equal(read(decodeLoadSnapshot(payloadOf(msgpack.int(70_000)))), 70_000, name);
    for (const float of [msgpack.float(1), msgpack.float32(1)]) {
      assert.throws(() => decodeLoadSnapshot(payloadOf(float)), {
        name: "SnapshotDecodeError",
        message: new RegExp(`expected int in ${name}, found float at byte \\d+$`),
      });
    }
  });
});

Deno.test("each float field of the table takes floats and integers", () => {
  forEachField("float", (name, payloadOf, read) => {
    assert.equal(read(decodeLoadSnapshot(payloadOf(msgpack.float(0.5)))), 0.5, name);
    assert.equal(read(decodeLoadSnapshot(payloadOf(msgpack.int(-7)))), -7, name);
  });
});

Deno.test("no field takes what is no number", () => {
  for (const type of ["int", "float"] as const) {
    forEachField(type, (name, payloadOf) => {
      for (const [what, bytes] of Object.entries(NO_NUMBERS)) {
        assert.throws(
          () => decodeLoadSnapshot(payloadOf(bytes)),
          SnapshotDecodeError,
          `${what} in ${name}`,
        );
      }
    });
  }
  for (const [what, bytes] of Object.entries(NO_NUMBERS)) {
    const moments = msgpack.payload({ decode_moments: msgpack.array([msgpack.float(1), bytes]) });
    assert.throws(() => decodeLoadSnapshot(moments), SnapshotDecodeError, what);
  }
});

Deno.test("decode moments are a list or nil, and nothing else", () => {
  for (const [what, bytes] of Object.entries({ ...NO_NUMBERS, int: msgpack.int(1) })) {
    const payload = msgpack.payload({ decode_moments: bytes });
    if (what === "nil") assert.equal(decodeLoadSnapshot(payload).decodeMoments, null);
    else if (what === "an empty list") {
      assert.deepEqual(decodeLoadSnapshot(payload).decodeMoments, []);
    } else if (what !== "a list") {
      assert.throws(() => decodeLoadSnapshot(payload), SnapshotDecodeError, what);
    }
  }
});

Deno.test("the mode is a string, and nothing else", () => {
  for (const [what, bytes] of Object.entries({ ...NO_NUMBERS, int: msgpack.int(1) })) {
    const payload = msgpack.payload({ disaggregation: msgpack.array([bytes]) });
    if (what.endsWith(" string")) decodeLoadSnapshot(payload);
    else assert.throws(() => decodeLoadSnapshot(payload), SnapshotDecodeError, what);
  }
});

function tooLarge(error: unknown): boolean {
  return error instanceof SnapshotDecodeError && error.message.includes("beyond 2^53");
}

/** Visits each field of a type, in the core and in the sections, by its wire name. */
function forEachField(
  type: "int" | "float",
  visit: (
    name: string,
    payloadOf: (value: Uint8Array) => Uint8Array,
    read: (snapshot: object) => unknown,
  ) => void,
): void {
  const get = (values: unknown, name: string) => (values as Record<string, unknown>)[name];
  for (const { name, wire } of CORE_FIELDS.filter((field) => field.type === type)) {
    visit(wire, (value) => msgpack.payload({ [wire]: value }), (snapshot) => get(snapshot, name));
  }
  for (const section of SECTIONS) {
    section.fields.forEach((field, at) => {
      if (field.type !== type) return;
      const before = section.fields.slice(0, at).map((other) =>
        other.type === "string" ? msgpack.str("null") : msgpack.int(0)
      );
      visit(
        field.wire,
        (value) => msgpack.payload({ [section.wire]: msgpack.array([...before, value]) }),
        (snapshot) => get(get(snapshot, section.name), field.name),
      );
    });
  }
}
