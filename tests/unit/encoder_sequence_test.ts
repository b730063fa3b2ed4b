/**
 * One encoder for all snapshots of a rank: what it has written before must not show in what it
 * writes now.
 */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { SnapshotEncoder } from "../../src/snapshot/encoder.ts";
import { CORE_FIELDS, SECTIONS } from "../../src/snapshot/fields.ts";
import { PAYLOAD_AT } from "../../src/snapshot/image.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import { assertSame } from "../support/same.ts";
import { aFloat, anInt, aPlainSnapshot, aSnapshot } from "../support/snapshot_arbitraries.ts";

/** From one snapshot to the next. */
type Step = (last: LoadSnapshot) => LoadSnapshot;

/** Now and then, a value that the encoder refuses. */
const aWrongValue = fc.constantFrom<unknown>(1.5, NaN, 2 ** 53, undefined, null, "1", 1n, {});

const aValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 8, arbitrary: anInt },
  { weight: 2, arbitrary: fc.constantFrom(0, -0) },
  { weight: 4, arbitrary: aFloat },
  { weight: 1, arbitrary: aWrongValue },
);

const someNames = fc.subarray(CORE_FIELDS.map(({ name }) => name), { maxLength: 4 });

const aCoreChange: fc.Arbitrary<Step> = fc.tuple(someNames, fc.array(aValue, { minLength: 4 }))
  .map(([names, values]): Step => (last) => {
    const numbers = names.filter((name) => name !== "decodeMoments");
    return { ...last, ...Object.fromEntries(numbers.map((name, at) => [name, values[at]])) };
  });

/** Changes a section's value, or its mode; where the section is not there, nothing. */
const aSectionChange: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom(...SECTIONS),
  fc.nat(),
  aValue,
  fc.constantFrom("null", "decode", "decodE", "prefill", ""),
).map(([{ name, fields }, at, value, mode]): Step => (last) => {
  const section = last[name];
  const field = fields[at % fields.length]!;
  const changed = field.type === "string" ? mode : value;
  return section === null ? last : { ...last, [name]: { ...section, [field.name]: changed } };
});

/** Takes a section, the moments or the extra keys from elsewhere, or drops them. */
const aPartChange: fc.Arbitrary<Step> = fc.tuple(
  fc.subarray(["decodeMoments", "extra", ...SECTIONS.map(({ name }) => name)] as const),
  fc.option(aSnapshot),
).map(([names, other]): Step => (last) => ({
  ...last,
  ...Object.fromEntries(names.map((name) => [name, other === null ? null : other[name]])),
}));

/** Several changes at once, one of them a wrong value: the encoder may stop at any of them. */
const aWildChange: fc.Arbitrary<Step> = fc.tuple(
  aPartChange,
  fc.array(fc.tuple(fc.constantFrom(...SECTIONS), fc.nat(), aWrongValue), { maxLength: 3 }),
).map(([part, wrongs]): Step => (last) =>
  wrongs.reduce((snapshot, [{ name, fields }, at, value]) => {
    const field = fields[at % fields.length]!.name;
    return { ...snapshot, [name]: { ...emptyOf(name), ...snapshot[name], [field]: value } };
  }, part(last))
);

const someSteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: aWildChange },
    { weight: 1, arbitrary: fc.constant<Step>((last) => ({ ...last })) },
    { weight: 8, arbitrary: aCoreChange },
    { weight: 8, arbitrary: aSectionChange },
    { weight: 2, arbitrary: aPartChange },
    { weight: 1, arbitrary: aSnapshot.map((snapshot): Step => () => snapshot) },
  ),
  { minLength: 1, maxLength: 16, size: "max" },
);

Deno.test("any sequence of snapshots is encoded like each one alone", () => {
  fc.assert(
    fc.property(fc.oneof(aPlainSnapshot, aSnapshot), someSteps, (first, steps) => {
      const encoder = new SnapshotEncoder();
      let snapshot = first;
      for (const step of [(same: LoadSnapshot) => same, ...steps]) {
        snapshot = step(snapshot);
        const got = outcome(() => encodeWith(encoder, snapshot));
        assertSame(got, outcome(() => encodeAlone(snapshot)));
        assertSame(got, outcome(() => encodeLoadSnapshot(snapshot)));
      }
    }),
    { numRuns: 1000 },
  );
});

Deno.test("a few snapshots in any order are encoded like each one alone", () => {
  // More kinds than an encoder keeps: some come back to a draft, some to none.
  const aPool = fc.array(fc.oneof(aPlainSnapshot, aSnapshot), { minLength: 2, maxLength: 12 });
  const anOrder = fc.array(fc.nat(), { maxLength: 40, size: "max" });
  fc.assert(
    fc.property(aPool, anOrder, aFloat, (pool, order, step) => {
      const encoder = new SnapshotEncoder();
      order.forEach((at, n) => {
        const snapshot = { ...pool[at % pool.length]!, timestamp: n * step };
        assert.deepEqual(encodeWith(encoder, snapshot), encodeAlone(snapshot));
      });
    }),
    { numRuns: 300 },
  );
});

Deno.test("what it had before, an encoder writes over", () => {
  const encoder = new SnapshotEncoder();
  const images = new Set<unknown>();
  for (let round = 1; round <= 3; round++) {
    for (const numRunningReqs of [0, 5, 500, 70_000]) {
      const load = createLoadSnapshot({ timestamp: round, numRunningReqs, queues: {} });
      assert.deepEqual(encodeWith(encoder, load), encodeAlone(load));
      images.add(encoder.image);
    }
  }
  assert.equal(images.size, 4);
});

Deno.test("of long payloads, an encoder keeps one", () => {
  const encoder = new SnapshotEncoder();
  const images = new Set<unknown>();
  for (let n = 0; n < 20; n++) {
    // Small ones in between, and each long one is of another kind.
    encodeWith(encoder, createLoadSnapshot({ numRunningReqs: n % 2 }));
    const decodeMoments = new Array<number>(20_000 - n).fill(n);
    const load = createLoadSnapshot({ decodeMoments });
    assert.deepEqual(encodeWith(encoder, load), encodeAlone(load));
    images.add(encoder.image);
  }
  assert.equal(images.size, 1);
});

Deno.test("what a getter says is asked once", () => {
  const encoder = new SnapshotEncoder();
  let moments = 1;
  const growing = {
    ...createLoadSnapshot({ dpRank: 1 }),
    get decodeMoments() {
      return new Array<number>(moments++).fill(0.5);
    },
  };
  encodeWith(encoder, growing);
  encodeWith(encoder, growing);
  const load = createLoadSnapshot({ dpRank: 1, decodeMoments: [1, 2], queues: { waiting: 3 } });
  for (const good of [load, { ...load, decodeMoments: [3] }, { ...load, queues: null }]) {
    assert.deepEqual(encodeWith(encoder, good), encodeAlone(good));
  }
});

Deno.test("after a snapshot that it refused, an encoder goes on as if nothing had been", () => {
  fc.assert(
    fc.property(aPlainSnapshot, aSectionChange, aCoreChange, (first, one, other) => {
      const encoder = new SnapshotEncoder();
      encodeWith(encoder, first);
      outcome(() => encodeWith(encoder, one(other(first))));
      assert.deepEqual(encodeWith(encoder, first), encodeAlone(first));
    }),
    { numRuns: 300 },
  );
});

Deno.test("a section of a refused snapshot is forgotten with it", () => {
  const encoder = new SnapshotEncoder();
  const good = createLoadSnapshot({ dpRank: 1, queues: { waiting: 1 } });
  encodeWith(encoder, good);
  const bad = createLoadSnapshot({ memory: { tokenCapacity: 1.5 }, queues: { waiting: 1 } });
  const worse = { ...bad, queues: { ...bad.queues, waiting: "1" } } as unknown as LoadSnapshot;
  for (const refused of [worse, bad, worse]) {
    assert.equal(typeof outcome(() => encodeWith(encoder, refused)), "string");
    assert.deepEqual(encodeWith(encoder, good), encodeAlone(good));
  }
});

Deno.test("a snapshot whose getter encodes another one is encoded as it is", () => {
  const inner = createLoadSnapshot({ dpRank: 3, numUsedTokens: 70_000, queues: { waiting: 5 } });
  const outer = createLoadSnapshot({ dpRank: 1, numRunningReqs: 9, memory: { weightGb: 1.5 } });
  const asked: Uint8Array[] = [];
  const tricky: LoadSnapshot = {
    ...outer,
    get numTotalTokens() {
      asked.push(encodeLoadSnapshot(inner));
      return 5;
    },
  };
  const expected = encodeAlone({ ...outer, numTotalTokens: 5 });
  for (let round = 0; round < 3; round++) assert.deepEqual(encodeLoadSnapshot(tricky), expected);
  assert(asked.length >= 3);
  for (const bytes of asked) assert.deepEqual(bytes, encodeAlone(inner));
});

Deno.test("an encoder does not keep what it was given", () => {
  const encoder = new SnapshotEncoder();
  const memory = { ...createLoadSnapshot({ memory: {} }).memory!, weightGb: 1 };
  const snapshot = { ...createLoadSnapshot({ dpRank: 1 }), memory };
  encodeWith(encoder, snapshot);
  memory.weightGb = 2;
  snapshot.dpRank = 3;
  assert.deepEqual(encodeWith(encoder, snapshot), encodeAlone(snapshot));
});

Deno.test("a value goes through every form it can have and back", () => {
  const encoder = new SnapshotEncoder();
  const values = [0, -0, 1, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32, 2 ** 53 - 1];
  const both = [...values, ...values.map((value) => -value)];
  for (const numUsedTokens of [...both, ...both.toReversed()]) {
    const count = numUsedTokens;
    const snapshot = createLoadSnapshot({ numUsedTokens, queues: { waiting: count }, lora: {} });
    const bytes = encodeWith(encoder, snapshot);
    assert.deepEqual(bytes, encodeAlone(snapshot), `${count}`);
    assert.equal(decodeLoadSnapshot(bytes).queues?.waiting, count + 0);
  }
});

Deno.test("the least change of a value is written", () => {
  const encoder = new SnapshotEncoder();
  const base = createLoadSnapshot({ timestamp: 1_764_547_200.5, memory: {}, queues: {} });
  for (const bit of [1, 2, 2 ** 20, 2 ** 31]) {
    for (const value of [2 ** 40, 2 ** 52 + 1, 2 ** 53 - 1 - bit, -(2 ** 33)]) {
      for (const number of [value, value + bit, value]) {
        const snapshot: LoadSnapshot = {
          ...base,
          timestamp: base.timestamp + bit * 2 ** -22,
          numUsedTokens: number,
          memory: { ...base.memory!, weightGb: number },
          queues: { ...base.queues!, waiting: number },
        };
        assert.deepEqual(encodeWith(encoder, snapshot), encodeAlone(snapshot));
      }
    }
  }
});

Deno.test("elements that no release knows appear, change and vanish again", () => {
  for (const { name } of SECTIONS) {
    const encoder = new SnapshotEncoder();
    const tails = [null, [RawMsgpack.from(1)], [RawMsgpack.from(2)], null, [], null];
    for (const extra of tails) {
      const snapshot = createLoadSnapshot({ [name]: { extra } });
      assert.deepEqual(encodeWith(encoder, snapshot), encodeAlone(snapshot), name);
    }
  }
});

function emptyOf(name: (typeof SECTIONS)[number]["name"]): object {
  return createLoadSnapshot({ [name]: {} })[name] ?? {};
}

/** As an encoder does that has seen nothing yet. */
function encodeAlone(snapshot: LoadSnapshot): Uint8Array {
  return encodeWith(new SnapshotEncoder(), snapshot);
}

function encodeWith(encoder: SnapshotEncoder, snapshot: LoadSnapshot): Uint8Array {
  const end = encoder.encode(snapshot);
  return encoder.image.bytes.slice(PAYLOAD_AT, end);
}

/** The bytes, or the class of what was thrown. */
function outcome(encode: () => Uint8Array): Uint8Array | string {
  try {
    return encode();
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    return error.name;
  }
}
