/** Payloads that are made key by key, and steps from one payload to the next. */

import fc from "npm:fast-check@4.11.0";
import { CORE_FIELDS, type FieldType, SECTIONS } from "../../src/snapshot/fields.ts";
import * as msgpack from "./msgpack.ts";
import { nudge } from "./nudge.ts";
import { aMode, anUnknownKey, aRawValue } from "./snapshot_arbitraries.ts";

/** A key and its value, both encoded. */
export interface Entry {
  readonly key: string;
  readonly encodedKey: Uint8Array;
  readonly value: Uint8Array;
}

/** What happens to a payload on its way, without lasting. */
type Noise =
  | { readonly kind: "none" }
  | { readonly kind: "edit"; readonly edits: readonly (readonly [at: number, byte: number])[] }
  | { readonly kind: "cut"; readonly at: number }
  | { readonly kind: "tail"; readonly bytes: Uint8Array };

/** A lasting change of the keys, and the noise of the moment. */
export interface Step {
  readonly change:
    | { readonly kind: "none" }
    | { readonly kind: "values"; readonly every: number; readonly bytes: readonly number[] }
    | { readonly kind: "put"; readonly entries: readonly Entry[] }
    | { readonly kind: "repeat"; readonly entry: Entry }
    | { readonly kind: "drop"; readonly at: number }
    | { readonly kind: "swap"; readonly at: number };
  readonly headForm: 16 | 32;
  readonly noise: Noise;
}

/** One form is far more frequent than the others: only so do many payloads have the same shape. */
const anEncodedInt = fc.oneof(
  { weight: 12, arbitrary: inForm("fix", 0n, 127n) },
  { weight: 1, arbitrary: inForm("fix") },
  { weight: 1, arbitrary: inForm("u32") },
  { weight: 1, arbitrary: inForm("i16") },
  { weight: 1, arbitrary: inForm("u64", 2n ** 53n - 3n, 2n ** 53n - 1n) },
  { weight: 1, arbitrary: inForm("i64", -(2n ** 53n) + 1n, 2n ** 53n - 1n) },
);

const anEncodedFloat = fc.oneof(
  { weight: 12, arbitrary: fc.double().map(msgpack.float) },
  { weight: 1, arbitrary: fc.float().map(msgpack.float32) },
  { weight: 1, arbitrary: fc.constantFrom(...msgpack.INT_FORMS).chain((form) => inForm(form)) },
);

const someModes = fc.constantFrom("decode", "decodE", "décod", "null");

const ENCODED: Readonly<Record<FieldType, fc.Arbitrary<Uint8Array>>> = {
  int: anEncodedInt,
  float: anEncodedFloat,
  string: fc.oneof(
    { weight: 4, arbitrary: someModes.map((mode) => msgpack.str(mode)) },
    { weight: 1, arbitrary: aMode.map((mode) => msgpack.str(mode.slice(0, 300))) },
  ),
  floats: fc.oneof(
    { weight: 1, arbitrary: fc.constant(msgpack.NIL) },
    {
      weight: 4,
      arbitrary: fc.array(anEncodedFloat, { maxLength: 3 }).map((x) => msgpack.array(x)),
    },
  ),
};

/** Values that are refused in some or all fields. */
const aRiskyValue: fc.Arbitrary<Uint8Array> = fc.oneof(
  inForm("u64", 2n ** 53n - 2n, 2n ** 53n + 2n),
  inForm("i64", -(2n ** 53n) - 2n, -(2n ** 53n) + 2n),
  fc.constantFrom(...msgpack.INT_FORMS).chain((form) => inForm(form)),
  aRawValue.map((raw) => raw.bytes),
);

/** A section of any length; most often it is the table's. */
function aSection(types: readonly FieldType[]): fc.Arbitrary<Uint8Array> {
  const items = fc.tuple(...types.map((type) => ENCODED[type]));
  const rest = fc.array(aRawValue, { maxLength: 2 });
  return fc.oneof(
    { weight: 12, arbitrary: items.map((values) => msgpack.array(values)) },
    { weight: 1, arbitrary: fc.constant(msgpack.NIL) },
    {
      weight: 1,
      arbitrary: fc.tuple(items, fc.nat({ max: types.length }), rest).map(([values, cut, more]) =>
        more.length > 0
          ? msgpack.array([...values, ...more.map((raw) => raw.bytes)])
          : msgpack.array(values.slice(0, cut))
      ),
    },
  );
}

/** Known keys with a value of their type. */
const KNOWN: readonly fc.Arbitrary<Entry>[] = [
  ...CORE_FIELDS.map(({ wire, type }) => entryOf(wire, ENCODED[type])),
  ...SECTIONS.map(({ wire, fields }) => entryOf(wire, aSection(fields.map(({ type }) => type)))),
];

const FLAT_KEYS = ["has_memory", "memory_weight_gb", "has_queues", "queue_waiting", "disagg_mode"];

/** Any key, the old layout's too, and now and then with a value that may not stand there. */
export const anEntry: fc.Arbitrary<Entry> = fc.oneof(
  { weight: 24, arbitrary: fc.oneof(...KNOWN) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.oneof(...KNOWN), aRiskyValue)
      .map(([entry, value]) => ({ ...entry, value })),
  },
  {
    weight: 1,
    arbitrary: anUnknownKey.chain((key) => entryOf(key, aRawValue.map((raw) => raw.bytes))),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...FLAT_KEYS).chain((key) => entryOf(key, anEncodedInt)),
  },
);

/** Keys in the wire's order: all that are known, or some. */
export const someEntries: fc.Arbitrary<readonly Entry[]> = fc.oneof(
  fc.tuple(...KNOWN),
  fc.tuple(...KNOWN).chain((entries) => fc.subarray(entries)),
);

const someNoise: fc.Arbitrary<Noise> = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Noise>({ kind: "none" }) },
  {
    weight: 3,
    arbitrary: fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 })
      .map((edits): Noise => ({ kind: "edit", edits })),
  },
  { weight: 1, arbitrary: fc.nat().map((at): Noise => ({ kind: "cut", at })) },
  {
    weight: 1,
    arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes): Noise => ({ kind: "tail", bytes })),
  },
);

/** A step from one payload to the next. */
export const aStep: fc.Arbitrary<Step> = fc.record({
  change: fc.oneof<fc.MaybeWeightedArbitrary<Step["change"]>[]>(
    { weight: 2, arbitrary: fc.constant({ kind: "none" }) },
    {
      weight: 24,
      arbitrary: fc.record({
        kind: fc.constant("values"),
        every: fc.integer({ min: 1, max: 30 }),
        bytes: fc.array(fc.nat({ max: 255 }), { minLength: 1, maxLength: 40 }),
      }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("put"),
        entries: fc.array(anEntry, { minLength: 1, maxLength: 5 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("repeat"), entry: anEntry }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("drop"), at: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("swap"), at: fc.nat() }) },
  ),
  headForm: fc.constantFrom(16, 16, 16, 32),
  noise: someNoise,
});

/** The payloads that steps lead to, the first one included. */
export function payloadsOf(first: readonly Entry[], steps: readonly Step[]): Uint8Array[] {
  let entries = first;
  return [
    encode(entries, 16),
    ...steps.map(({ change, headForm, noise }) => {
      entries = changed(entries, change);
      return disturbed(encode(entries, headForm), noise);
    }),
  ];
}

function changed(entries: readonly Entry[], change: Step["change"]): readonly Entry[] {
  switch (change.kind) {
    case "none":
      return entries;
    case "values":
      return entries.map((entry, at) =>
        (at + 1) % change.every === 0
          ? { ...entry, value: nudge(entry.value, change.bytes) }
          : entry
      );
    case "put":
      return change.entries.reduce((result, entry) => {
        const at = result.findIndex(({ key }) => key === entry.key);
        return at < 0 ? [...result, entry] : result.with(at, entry);
      }, entries);
    case "repeat":
      return [...entries, change.entry];
    case "drop":
      return entries.toSpliced(change.at % (entries.length + 1), 1);
    case "swap": {
      const at = change.at % (entries.length + 1);
      return [...entries.slice(at), ...entries.slice(0, at)];
    }
  }
}

function disturbed(payload: Uint8Array, noise: Noise): Uint8Array {
  switch (noise.kind) {
    case "none":
      return payload;
    case "edit": {
      const edited = payload.slice();
      for (const [at, byte] of noise.edits) edited[at % edited.length] = byte;
      return edited;
    }
    case "cut":
      return payload.subarray(0, noise.at % (payload.length + 1));
    case "tail":
      return msgpack.concat(payload, noise.bytes);
  }
}

function encode(entries: readonly Entry[], headForm: 16 | 32): Uint8Array {
  return msgpack.map(entries.map(({ encodedKey, value }) => [encodedKey, value]), headForm);
}

function entryOf(key: string, value: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Entry> {
  return fc.record({
    key: fc.constant(key),
    encodedKey: fc.oneof(
      { weight: 30, arbitrary: fc.constant(msgpack.str(key)) },
      { weight: 1, arbitrary: fc.constant(msgpack.str(key, 16)) },
    ),
    value,
  });
}

function inForm(
  form: msgpack.IntForm,
  min: bigint = msgpack.INT_RANGES[form][0],
  max: bigint = msgpack.INT_RANGES[form][1],
): fc.Arbitrary<Uint8Array> {
  return fc.bigInt({ min, max }).map((value) => msgpack.int(value, form));
}
