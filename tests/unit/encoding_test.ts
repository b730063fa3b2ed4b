/** What is left out of a payload, how long each value is, and what cannot be encoded. */

import assert from "node:assert/strict";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { CORE_FIELDS, SECTIONS } from "../../src/snapshot/fields.ts";
import {
  createLoadSnapshot,
  type LoadSnapshot,
  type LoadSnapshotInit,
} from "../../src/snapshot/load_snapshot.ts";
import * as msgpack from "../support/msgpack.ts";

/** SGLang's struct has more fields than a short head can count, so its head is never short. */
function payload(entries: Readonly<Record<string, Uint8Array>>): Uint8Array {
  return msgpack.map(Object.entries(entries), 16);
}

Deno.test("each core value is left out while it is the default, and stands under its key else", () => {
  for (const { name, wire, type } of CORE_FIELDS) {
    const fallback = type === "floats" ? null : 0;
    assert.deepEqual(encode({ [name]: fallback }), payload({}), name);
    const value = type === "int"
      ? msgpack.int(1)
      : type === "float"
      ? msgpack.float(1)
      : msgpack.array([msgpack.float(1)]);
    const given = type === "floats" ? [1] : 1;
    assert.deepEqual(encode({ [name]: given }), payload({ [wire]: value }), name);
  }
});

Deno.test("in a section no default is left out", () => {
  for (const { name, wire, fields } of SECTIONS) {
    const items = fields.map(({ type }) =>
      type === "int" ? msgpack.int(0) : type === "string" ? msgpack.str("null") : msgpack.float(0)
    );
    assert.deepEqual(encode({ [name]: {} }), payload({ [wire]: msgpack.array(items) }), name);
    assert.deepEqual(encode({ [name]: null }), payload({}), name);
  }
});

Deno.test("an empty list of decode moments is not the same as none", () => {
  assert.deepEqual(encode({ decodeMoments: [] }), payload({ decode_moments: msgpack.array([]) }));
  assert.deepEqual(decodeLoadSnapshot(encode({ decodeMoments: [] })).decodeMoments, []);
});

Deno.test("a negative zero is a value, as a float; as an integer it is zero", () => {
  assert.deepEqual(
    encode({ tokenUsage: -0, dpRank: -0 }),
    payload({ token_usage: msgpack.float(-0) }),
  );
  assert.deepEqual(
    encode({ lora: { slotsUsed: -0, utilization: -0 } }),
    payload({ lora: msgpack.array([msgpack.int(0), msgpack.int(0), msgpack.float(-0)]) }),
  );
});

Deno.test("an integer takes its shortest form", () => {
  for (const form of msgpack.INT_FORMS) {
    const range = msgpack.INT_RANGES[form].map(Number).filter(Number.isSafeInteger);
    for (const edge of range.filter((value) => value !== 0)) {
      const expected = payload({ dp_rank: msgpack.int(edge) });
      assert.deepEqual(encode({ dpRank: edge }), expected, `${edge}`);
      assert.equal(decodeLoadSnapshot(expected).dpRank, edge);
    }
  }
  for (const edge of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
    assert.deepEqual(encode({ dpRank: edge }), payload({ dp_rank: msgpack.int(edge) }));
  }
});

Deno.test("a float always has eight bytes, whole numbers too", () => {
  for (const value of [3, 0.5, -1, 2 ** 60, NaN, Infinity, -Infinity, 5e-324]) {
    assert.deepEqual(
      encode({ genThroughput: value }),
      payload({ gen_throughput: msgpack.float(value) }),
    );
  }
});

Deno.test("a string takes the head that its length needs", () => {
  const rest = [...Array(5).fill(msgpack.int(0)), msgpack.float(0), msgpack.float(0)];
  const forms = { 31: "fix", 32: 8, 255: 8, 256: 16, 65_535: 16, 65_536: 32 } as const;
  for (const [length, form] of Object.entries(forms)) {
    const mode = "m".repeat(Number(length));
    assert.deepEqual(
      encode({ disaggregation: { mode } }),
      payload({ disaggregation: msgpack.array([msgpack.str(mode, form), ...rest]) }),
      length,
    );
  }
});

Deno.test("a list takes the head that its length needs", () => {
  const forms = { 15: "fix", 16: 16, 65_535: 16, 65_536: 32 } as const;
  for (const [length, form] of Object.entries(forms)) {
    const decodeMoments = Array<number>(Number(length)).fill(1.5);
    const items = decodeMoments.map(msgpack.float);
    assert.deepEqual(
      encode({ decodeMoments }),
      payload({ decode_moments: msgpack.array(items, form) }),
      length,
    );
  }
});

Deno.test("an integer field takes only integers up to 2^53", () => {
  for (const value of [1.5, -0.1, NaN, Infinity, -Infinity, 2 ** 53, -(2 ** 53), 1e300]) {
    const expected = { name: "RangeError", message: /dpRank|waiting/ };
    assert.throws(() => encode({ dpRank: value }), expected, `${value}`);
    assert.throws(() => encode({ queues: { waiting: value } }), expected, `${value}`);
  }
});

Deno.test("a value of the wrong type is refused wherever it stands", () => {
  const wrong = [undefined, null, "1", 1n, true, {}, [1]];
  for (const { name, type } of CORE_FIELDS) {
    for (const value of wrong) {
      if (type === "floats" && (value === null || Array.isArray(value))) continue;
      assert.throws(() => encode({ [name]: value }), TypeError, `${name}: ${typeof value}`);
    }
  }
  for (const section of SECTIONS) {
    for (const { name, type } of section.fields) {
      for (const value of wrong) {
        if (type === "string" && typeof value === "string") continue;
        const init = { [section.name]: { [name]: value } };
        assert.throws(() => encode(init), TypeError, `${section.name}.${name}: ${typeof value}`);
      }
    }
  }
  assert.throws(() => encode({ decodeMoments: [1, "2"] }), TypeError);
  assert.throws(() => encode({ decodeMoments: [1n] }), TypeError);
});

/** The compiler would refuse some of the values; callers without one can still pass them. */
function encode(init: Readonly<Record<string, unknown>>): Uint8Array {
  const snapshot: LoadSnapshot = createLoadSnapshot(init as LoadSnapshotInit);
  return encodeLoadSnapshot(snapshot);
}
