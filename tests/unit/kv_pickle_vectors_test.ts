/** Pickles as Python writes them: read, and written byte for byte. */

import assert from "node:assert/strict";
import { createKvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import { PickleMachine } from "../../src/kv_metrics/pickle_machine.ts";
import { decodeKvMetricsPickle, readUsual } from "../../src/kv_metrics/pickle_reader.ts";
import {
  encodeKvMetricsPickle,
  KV_METRICS_MODULES,
  type PickleOptions,
  PickleWriter,
} from "../../src/kv_metrics/pickle_writer.ts";
import { KV_VECTORS, valuesOf } from "../support/kv_vectors.ts";

const METRICS = createKvMetrics({
  requestActiveSlots: 3,
  requestTotalSlots: 128,
  kvActiveBlocks: 512,
  kvTotalBlocks: 8192,
  numRequestsWaiting: 2,
  gpuCacheUsagePerc: 0.0625,
  gpuPrefixCacheHitRate: 0.5,
});

for (const { name, pickle, values } of KV_VECTORS) {
  Deno.test(`${name}: is read`, () => {
    assert.deepEqual(valuesOf(decodeKvMetricsPickle(pickle)), values);
  });

  Deno.test(`${name}: the shortcut finds what the machine does, or nothing`, () => {
    const view = new DataView(pickle.buffer);
    assert.deepEqual(new PickleMachine(pickle, view).run(), values);
    const found = readUsual(pickle, view);
    if (found !== null) assert.deepEqual(found, values);
  });

  Deno.test(`${name}: is read in the middle of a larger buffer`, () => {
    const buffer = new Uint8Array(pickle.length + 20).fill(0x2e);
    buffer.set(pickle, 7);
    const message = decodeKvMetricsPickle(buffer.subarray(7, 7 + pickle.length));
    assert.deepEqual(valuesOf(message), values);
  });
}

Deno.test("the shortcut takes the usual pickles of each form", () => {
  const usual = KV_VECTORS.filter(({ pickle }) =>
    readUsual(pickle, new DataView(pickle.buffer)) !== null
  );
  assert.deepEqual(usual.map(({ name }) => name), [
    "a plain class, protocol 4",
    "a plain class of which nothing was set, protocol 5",
    "a dataclass with slots, protocol 4",
    "a struct of keywords, protocol 5",
  ]);
});

const [FIRST] = KV_METRICS_MODULES;

const WRITTEN: readonly (readonly [vector: string, options: PickleOptions])[] = [
  ["a plain class, protocol 4", { protocol: 4, module: FIRST }],
  ["a dataclass with slots, protocol 4", { protocol: 4, form: "slots" }],
  ["a struct of keywords, protocol 5", {}],
];

for (const [vector, options] of WRITTEN) {
  Deno.test(`${vector}: is written as Python does`, () => {
    const { pickle } = KV_VECTORS.find(({ name }) => name === vector)!;
    assert.equal(encodeKvMetricsPickle(METRICS, options).toHex(), pickle.toHex());
  });
}

Deno.test("protocol 5 differs from 4 in one byte", () => {
  const [four, five] = [4, 5].map((protocol) =>
    encodeKvMetricsPickle(METRICS, { protocol: protocol as 4 | 5, module: FIRST })
  );
  assert.equal(five![1], 5);
  five![1] = 4;
  assert.deepEqual(five, four);
});

Deno.test("a writer leaves nothing of a longer pickle in the next one", () => {
  const writer = new PickleWriter({ module: FIRST });
  const long = writer.write(createKvMetrics({ kvActiveBlocks: 2 ** 40, dataParallelRank: -1 }));
  const short = writer.write(METRICS);
  assert.deepEqual(short, encodeKvMetricsPickle(METRICS, { module: FIRST }));
  assert(long.length > short.length);
  assert.equal(decodeKvMetricsPickle(long).kvActiveBlocks, 2 ** 40);
});

Deno.test("a module's name may be as long as a short text", () => {
  const module = `sglang.${"m".repeat(248)}`;
  const pickle = encodeKvMetricsPickle(METRICS, { module });
  assert.deepEqual(decodeKvMetricsPickle(pickle), METRICS);
  assert.throws(() => encodeKvMetricsPickle(METRICS, { module: `${module}m` }), RangeError);
});

Deno.test("only what Python can read is written", () => {
  const wrong: readonly unknown[] = [
    { protocol: 3 },
    { protocol: 6 },
    { module: "" },
    { module: "sglang..scheduler" },
    { module: "sglang.srt\nos" },
    { module: "sglang.é" },
    { form: "dict" },
    { form: "toString" },
  ];
  for (const options of wrong) {
    assert.throws(() => new PickleWriter(options as PickleOptions), RangeError);
  }
});

Deno.test("a count that is no safe integer, and a value that is no number, are not written", () => {
  for (const kvActiveBlocks of [0.5, NaN, Infinity, 2 ** 53]) {
    assert.throws(() => encodeKvMetricsPickle({ ...METRICS, kvActiveBlocks }), {
      name: "RangeError",
      message: `Cannot encode kvActiveBlocks: ${kvActiveBlocks} is not a safe integer`,
    });
  }
  for (const value of ["1", undefined, 1n, true]) {
    const message = { ...METRICS, gpuCacheUsagePerc: value } as unknown as typeof METRICS;
    assert.throws(() => encodeKvMetricsPickle(message), TypeError);
  }
});
