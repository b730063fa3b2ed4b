/** Heads of every width, keys in every form and order, and what cannot be a key or a map. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { SnapshotDecodeError } from "../../src/errors.ts";
import { decodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { CORE_FIELDS, SECTIONS } from "../../src/snapshot/fields.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import * as msgpack from "../support/msgpack.ts";

const STRING_FORMS = ["fix", 8, 16, 32] as const;
const LIST_FORMS = ["fix", 16, 32] as const;

/** Every key of the table with a value for it, in wire order. */
const ENTRIES: readonly (readonly [string, Uint8Array])[] = [
  ...CORE_FIELDS.map(({ wire, type }, at) =>
    [wire, type === "floats" ? msgpack.array([msgpack.float(at)]) : msgpack.int(at + 1)] as const
  ),
  ...SECTIONS.map(({ wire, fields }) =>
    [
      wire,
      msgpack.array(
        fields.map(({ type }, at) =>
          type === "string" ? msgpack.str("decode") : msgpack.int(at + 1)
        ),
      ),
    ] as const
  ),
];

const WHOLE = decodeLoadSnapshot(msgpack.map(ENTRIES, 16));

Deno.test("a map may have a head of any width", () => {
  for (const form of LIST_FORMS) {
    const bytes = msgpack.map([["dp_rank", msgpack.int(5)]], form);
    assert.deepEqual(decodeLoadSnapshot(bytes), createLoadSnapshot({ dpRank: 5 }));
  }
  assert.deepEqual(decodeLoadSnapshot(msgpack.map(ENTRIES, 32)), WHOLE);
});

Deno.test("a list may have a head of any width", () => {
  for (const form of LIST_FORMS) {
    const { queues, decodeMoments } = decodeLoadSnapshot(msgpack.payload({
      decode_moments: msgpack.array([msgpack.float(1.5)], form),
      queues: msgpack.array([1, 2, 3, 4, 5].map((count) => msgpack.int(count)), form),
    }));
    assert.deepEqual(decodeMoments, [1.5]);
    assert.equal(queues?.preallocReady, 5);
    assert.equal(queues.missing, 0);
  }
});

Deno.test("a known key may be a string of any width", () => {
  for (const form of STRING_FORMS) {
    const entries = ENTRIES.map(([key, value]) => [msgpack.str(key, form), value] as const);
    assert.deepEqual(decodeLoadSnapshot(msgpack.map(entries, 16)), WHOLE);
  }
});

Deno.test("the mode may be a string of any width", () => {
  for (const form of STRING_FORMS) {
    const mode = msgpack.str("prefill", form);
    const bytes = msgpack.payload({ disaggregation: msgpack.array([mode, msgpack.int(3)]) });
    assert.equal(decodeLoadSnapshot(bytes).disaggregation?.mode, "prefill");
    assert.equal(decodeLoadSnapshot(bytes).disaggregation?.prefillBootstrapQueueReqs, 3);
  }
});

Deno.test("keys may come in any order, some, all or none of them, in mixed forms", () => {
  const someEntries = fc.shuffledSubarray([...ENTRIES]).chain((entries) =>
    fc.tuple(
      fc.constant(entries),
      fc.array(fc.constantFrom(...STRING_FORMS), {
        minLength: entries.length,
        maxLength: entries.length,
      }),
    )
  );
  fc.assert(fc.property(someEntries, ([entries, forms]) => {
    const wires = entries.map(([key]) => key);
    const names = [...CORE_FIELDS, ...SECTIONS].filter(({ wire }) => wires.includes(wire));
    const expected = Object.fromEntries(names.map(({ name }) => [name, WHOLE[name]]));
    const bytes = msgpack.map(
      entries.map(([key, value], at) => [msgpack.str(key, forms[at]), value]),
      16,
    );
    assert.deepEqual(decodeLoadSnapshot(bytes), createLoadSnapshot(expected));
  }));
});

Deno.test("a key that is no string is refused", () => {
  const keys = [
    msgpack.int(1),
    msgpack.float(1),
    msgpack.NIL,
    msgpack.bool(true),
    msgpack.bin(new TextEncoder().encode("dp_rank")),
    msgpack.array([msgpack.str("dp_rank")]),
    msgpack.map([]),
    msgpack.ext(1, Uint8Array.of(1)),
    Uint8Array.of(0xc1),
  ];
  for (const key of keys) {
    assert.throws(() => decodeLoadSnapshot(msgpack.map([[key, msgpack.int(1)]])), {
      name: "SnapshotDecodeError",
      message: /expected str in a map key/,
    });
  }
});

Deno.test("a payload that is no map is refused", () => {
  const values = [
    msgpack.NIL,
    msgpack.int(1),
    msgpack.str("dp_rank"),
    msgpack.array([msgpack.map([])]),
    msgpack.array([]),
    new Uint8Array(),
  ];
  for (const value of values) {
    assert.throws(() => decodeLoadSnapshot(value), SnapshotDecodeError);
  }
});

Deno.test("a section that is neither a list nor nil is refused", () => {
  for (const { wire } of SECTIONS) {
    assert.equal(decodeLoadSnapshot(msgpack.payload({ [wire]: msgpack.NIL })).memory, null);
    for (const value of [msgpack.map([]), msgpack.int(1), msgpack.str(""), msgpack.bool(false)]) {
      const bytes = msgpack.payload({ [wire]: value });
      assert.throws(() => decodeLoadSnapshot(bytes), {
        name: "SnapshotDecodeError",
        message: /expected array, found/,
      });
    }
  }
});
