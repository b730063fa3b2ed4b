/** KvMetrics and real Python: what it sends is read, and what is written it reads, to the bit. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import type { KvMetricsMessage } from "../../src/kv_metrics/kv_metrics.ts";
import { decodeKvMetricsMsgpack, encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { decodeKvMetricsPickle } from "../../src/kv_metrics/pickle_reader.ts";
import type { PickleForm } from "../../src/kv_metrics/pickle_layout.ts";
import { encodeKvMetricsPickle, KV_METRICS_MODULES } from "../../src/kv_metrics/pickle_writer.ts";
import { PickleRefusedError } from "../../src/errors.ts";
import { aMessage, aPartialMessage } from "../support/kv_arbitraries.ts";
import { KvMutations } from "../support/kv_mutations.ts";
import { valuesOf } from "../support/kv_vectors.ts";
import { type DriverValue, Float } from "./driver_values.ts";
import { kvPeerTests, type PythonForm, toPython } from "./kv_peer.ts";

const test = await kvPeerTests();

const SEED = 20_250_601;
const PROTOCOLS = [2, 3, 4, 5] as const;
const [FIRST] = KV_METRICS_MODULES;
const NEWEST = KV_METRICS_MODULES[3];

function sample(arbitrary: fc.Arbitrary<KvMetricsMessage>, count: number): KvMetricsMessage[] {
  return fc.sample(arbitrary, { seed: SEED, numRuns: count });
}

for (const form of ["plain", "dataclass", "slots", "struct", "positional"] as const) {
  for (const module of KV_METRICS_MODULES) {
    test(`a ${form} class of ${module} is read in every protocol`, async (peer) => {
      const messages = sample(aPartialMessage, 25);
      const records = messages.map(toPython);
      for (const protocol of PROTOCOLS) {
        const pickles = await peer.dumps({ module, form }, protocol, records);
        assert.deepEqual(pickles.map(decodeKvMetrics), messages);
      }
    });
  }
}

for (const form of ["plain", "struct"] as const) {
  test(`1,000 records of a ${form} class come from Python equal to the bit`, async (peer) => {
    const messages = sample(aMessage, 1000);
    const pickles = await peer.dumps({ module: FIRST, form }, 5, messages.map(toPython));
    assert.deepEqual(pickles.map(decodeKvMetrics), messages);
  });

  test(`1,000 records go to Python's ${form} class equal to the bit`, async (peer) => {
    const messages = sample(aMessage, 1000);
    for (const protocol of [4, 5] as const) {
      const pickles = messages.map((message) =>
        encodeKvMetricsPickle(message, { module: NEWEST, form, protocol })
      );
      const loaded = await peer.loads({ module: NEWEST, form }, pickles);
      assert.deepEqual(loaded, messages.map(valuesOf));
    }
  });
}

test("what is written has the bytes of Python's own pickle, in each form and protocol", async (peer) => {
  const messages = sample(aPartialMessage, 250);
  for (const form of ["plain", "slots", "struct"] as const) {
    for (const module of KV_METRICS_MODULES) {
      for (const protocol of [4, 5] as const) {
        const pickles = await peer.dumps({ module, form }, protocol, messages.map(toPython));
        const ours = messages.map((message) =>
          encodeKvMetricsPickle(message, { module, form, protocol })
        );
        assert.deepEqual(ours.map(hex), pickles.map(hex));
      }
    }
  }
});

const TAKEN_BY: Readonly<Record<PickleForm, readonly PythonForm[]>> = {
  plain: ["plain", "dataclass"],
  slots: ["plain", "dataclass", "slots"],
  struct: ["dataclass", "slots", "struct", "positional"],
};

test("each form is taken by the classes that it is for, and refused by the others", async (peer) => {
  const messages = sample(aMessage, 3);
  for (const form of ["plain", "slots", "struct"] as const) {
    const pickles = messages.map((message) => encodeKvMetricsPickle(message, { form }));
    for (const taker of ["plain", "dataclass", "slots", "struct", "positional"] as const) {
      const loaded = await peer.loads({ module: NEWEST, form: taker }, pickles);
      if (TAKEN_BY[form].includes(taker)) assert.deepEqual(loaded, messages.map(valuesOf));
      else for (const one of loaded) assert("error" in one, `${taker} took ${form}`);
    }
  }
});

test("a class whose attributes were never set is a message without values", async (peer) => {
  for (const protocol of PROTOCOLS) {
    const [none, one] = await peer.dumps({ module: FIRST, form: "bare" }, protocol, [[], [7]]);
    assert.deepEqual(valuesOf(decodeKvMetrics(none!)), Array(8).fill(null));
    assert.deepEqual(valuesOf(decodeKvMetrics(one!)), [7, ...Array(7).fill(null)]);
  }
});

/** By numpy's names. `float128` and complex numbers have no place in a number. */
const SCALARS: Readonly<Record<string, readonly number[]>> = {
  bool_: [0, 1],
  int8: [0, 127, -128],
  int16: [0, 32_767, -32_768],
  int32: [0, 2 ** 31 - 1, -(2 ** 31)],
  int64: [0, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER],
  longlong: [1],
  uint8: [0, 255],
  uint16: [0, 65_535],
  uint32: [0, 2 ** 32 - 1],
  uint64: [0, Number.MAX_SAFE_INTEGER],
  float16: [0, -0, 0.5, 65_504, 2 ** -24],
  float32: [0, -0, 0.5, 2 ** -149, 3.4028234663852886e38],
  float64: [0, -0, 0.1, 5e-324, Number.MAX_VALUE],
};

const INEXACT: readonly DriverValue[] = [
  { np: ["int64", 2 ** 53] },
  { np: ["uint64", 2 ** 63] },
  { np: ["int64", -(2 ** 53)] },
  2n ** 53n,
  -(2n ** 63n),
  2n ** 64n,
  2n ** 3000n,
];

for (const numpy1 of [false, true]) {
  test(`scalars of numpy ${numpy1 ? 1 : 2} are read in every type and protocol`, async (peer) => {
    const values = Object.entries(SCALARS).flatMap(([type, all]) =>
      all.map((value) => [type, value] as const)
    );
    // Each alone, and all kinds in one message, where they share dtypes and names in the memo.
    const records = values.map(([type, value]) => [{ np: [type, pythonFloat(type, value)] }]);
    const mixed = values.slice(-8);
    const records8 = [mixed.map(([type, value]) => ({ np: [type, pythonFloat(type, value)] }))];
    for (const protocol of PROTOCOLS) {
      const pickles = await peer.dumps(
        { module: FIRST, form: "plain" },
        protocol,
        [...records, ...records8],
        { numpy1 },
      );
      const messages = pickles.map(decodeKvMetrics);
      assert.deepEqual(
        messages.slice(0, -1).map((message) => message.requestActiveSlots),
        values.map(([, value]) => value),
      );
      assert.deepEqual(valuesOf(messages.at(-1)!), mixed.map(([, value]) => value));
    }
  });
}

test("integers beyond 2^53 are refused, Python's and numpy's", async (peer) => {
  for (const protocol of PROTOCOLS) {
    const records = INEXACT.map((value) => [1, 2, value]);
    const pickles = await peer.dumps({ module: FIRST, form: "plain" }, protocol, records);
    for (const pickle of pickles) {
      assert.throws(() => decodeKvMetrics(pickle), {
        name: "PickleRefusedError",
        reason: "integer",
      });
    }
  }
});

test("a value that Python shares between fields is read in each of them", async (peer) => {
  const shared = { np: ["float64", new Float(0.25)] };
  for (const protocol of PROTOCOLS) {
    const [pickle] = await peer.dumps({ module: FIRST, form: "plain" }, protocol, [
      [1, 2, 3, 4, 5, shared, shared, 0],
    ]);
    assert.deepEqual(valuesOf(decodeKvMetrics(pickle!)), [1, 2, 3, 4, 5, 0.25, 0.25, 0]);
  }
});

test("1,000 records go through msgspec both ways, equal to the bit and to the byte", async (peer) => {
  const messages = sample(aMessage, 1000);
  const payloads = await peer.encode(NEWEST, messages.map(toPython));
  assert.deepEqual(payloads.map(decodeKvMetricsMsgpack), messages);
  const ours = messages.map(encodeKvMetricsMsgpack);
  assert.deepEqual(ours.map(hex), payloads.map(hex));
  assert.deepEqual(await peer.decode(NEWEST, ours), messages.map(valuesOf));
});

test("a changed pickle that is read holds what Python reads in it", async (peer) => {
  const mutations = new KvMutations(SEED);
  const read: { readonly pickle: Uint8Array; readonly values: readonly (number | null)[] }[] = [];
  for (let n = 0; n < 30_000; n++) {
    const pickle = mutations.next();
    try {
      read.push({ pickle, values: valuesOf(decodeKvMetricsPickle(pickle)) });
    } catch (error) {
      if (!(error instanceof PickleRefusedError)) throw error;
    }
  }
  assert(read.length > 1000, `only ${read.length} were read`);
  const collected = await peer.collect(read.map(({ pickle }) => pickle));
  read.forEach(({ pickle, values }, n) => {
    const found = collected[n]!;
    assert(!("error" in found), `${pickle.toHex()}: Python says ${JSON.stringify(found)}`);
    assert.deepEqual(values, found.map((value) => value === null ? null : Number(value)));
  });
});

function pythonFloat(type: string, value: number): DriverValue {
  return type.startsWith("float") ? new Float(value) : value;
}

function hex(bytes: Uint8Array): string {
  return bytes.toHex();
}
