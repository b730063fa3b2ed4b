/** Generated snapshots, with every field, section, default and extreme. */

import fc from "npm:fast-check@4.11.0";
import { CORE_FIELDS, type FieldType, SECTIONS } from "../../src/snapshot/fields.ts";
import {
  createLoadSnapshot,
  type LoadSnapshot,
  type LoadSnapshotInit,
} from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import * as msgpack from "./msgpack.ts";

/** Where one form of an integer ends and the next begins. */
const INT_EDGES: readonly number[] = [
  ...[5, 7, 8, 15, 16, 31, 32].flatMap((bits) => [2 ** bits - 1, 2 ** bits]),
  ...[5, 7, 15, 31].flatMap((bits) => [-(2 ** bits), -(2 ** bits) - 1]),
  ...[0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER],
];

const FLOAT_EDGES: readonly number[] = [
  ...[0, -0, 1, -1, 0.1, 5e-324, -5e-324, 2 ** -1022, 2 ** 53, 2 ** 64, 1e308],
  ...[Number.MAX_VALUE, -Number.MAX_VALUE, Infinity, -Infinity, NaN],
];

/** Modes, and strings at the edges of their forms. */
const MODES: readonly string[] = [
  ...["null", "prefill", "decode", "", "\0", "\ufeffnull", "décode 🚀", "prefilL"],
  ...[31, 32, 255, 256, 65_535, 65_536].map((length) => "m".repeat(length)),
];

/** Integers that a field holds exactly. */
export const anInt: fc.Arbitrary<number> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...INT_EDGES) },
  { weight: 3, arbitrary: fc.nat({ max: 100_000 }) },
  fc.maxSafeInteger(),
);

/** Floats of every kind. */
export const aFloat: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(...FLOAT_EDGES),
  fc.double(),
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.integer(),
);

/** Modes of every length; long ones are rare. */
export const aMode: fc.Arbitrary<string> = fc.oneof(
  { weight: 60, arbitrary: fc.constantFrom(...MODES.slice(0, 3)) },
  { weight: 30, arbitrary: fc.constantFrom(...MODES.slice(0, -2)) },
  { weight: 20, arbitrary: fc.string({ unit: "binary" }) },
  { weight: 1, arbitrary: fc.constantFrom(...MODES) },
);

/** Decode moments: none, an empty list, a few, or more than a short head can count. */
export const someMoments: fc.Arbitrary<number[] | null> = fc.option(
  fc.oneof(
    fc.array(aFloat, { maxLength: 8 }),
    fc.array(aFloat, { minLength: 14, maxLength: 18 }),
  ),
);

const VALUES: Readonly<Record<FieldType, fc.Arbitrary<unknown>>> = {
  int: anInt,
  float: aFloat,
  string: aMode,
  floats: someMoments,
};

/** One MessagePack value of any kind. */
export const aRawValue: fc.Arbitrary<RawMsgpack> = fc.letrec<{ value: msgpack.Bytes }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constant(msgpack.NIL),
    fc.boolean().map(msgpack.bool),
    anInt.map((value) => msgpack.int(value)),
    aFloat.map(msgpack.float),
    fc.float().map(msgpack.float32),
    fc.string({ unit: "binary" }).map((text) => msgpack.str(text)),
    fc.uint8Array().map(msgpack.bin),
    fc.uint8Array().map((content) => msgpack.ext(7, content)),
    fc.array(tie("value")).map((items) => msgpack.array(items)),
    fc.array(fc.tuple(fc.string(), tie("value"))).map((entries) => msgpack.map(entries)),
  ),
})).value.map((bytes) => new RawMsgpack(bytes));

/** A key that no release knows. */
export const anUnknownKey: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom("__proto__", "constructor", "toString", "", "0", "17", "\ufeffdp_rank"),
  fc.constantFrom("dp_ranks", "dp_ran", "queue", "decode_metrics_windows", "k".repeat(300)),
  fc.string({ unit: "binary" }),
).filter((key) =>
  // A flag of the old layout would turn other keys into sections.
  !key.startsWith("has_") && !CORE_FIELDS.some((field) => field.wire === key) &&
  !SECTIONS.some((section) => section.wire === key)
);

/** Elements behind the known ones of a section. */
export const someElements: fc.Arbitrary<RawMsgpack[] | null> = fc.option(
  fc.array(aRawValue, { minLength: 1, maxLength: 14 }),
  { freq: 2 },
);

/** Unknown keys and their values. */
export const someUnknownKeys: fc.Arbitrary<Record<string, RawMsgpack> | null> = fc.option(
  fc.dictionary(anUnknownKey, aRawValue, { minKeys: 1, maxKeys: 6, noNullPrototype: false }),
  { freq: 2 },
);

/** Snapshots of which SGLang's own module knows every value. */
export const aPlainSnapshot: fc.Arbitrary<LoadSnapshot> = snapshots(fc.constant(null));

/** Snapshots with keys and elements that no release knows as well. */
export const aSnapshot: fc.Arbitrary<LoadSnapshot> = fc.tuple(
  snapshots(someElements),
  someUnknownKeys,
).map(([snapshot, extra]) => ({ ...snapshot, extra }));

/** Most fields keep their default in most snapshots, as in life; in some, none does. */
function snapshots(elements: fc.Arbitrary<RawMsgpack[] | null>): fc.Arbitrary<LoadSnapshot> {
  const core = Object.fromEntries(CORE_FIELDS.map(({ name, type }) => [name, VALUES[type]]));
  const sections = Object.fromEntries(SECTIONS.map(({ name, fields }) => {
    const values = Object.fromEntries(fields.map(({ name, type }) => [name, VALUES[type]]));
    return [name, fc.option(fc.record({ ...values, extra: elements }), { freq: 2 })];
  }));
  return fc.oneof(
    fc.record({ ...core, ...sections }, { requiredKeys: [] }),
    fc.record({ ...core, ...sections }),
    // The table has the names, so these are a snapshot's own.
  ).map((init) => createLoadSnapshot(init as LoadSnapshotInit));
}
