/** Every message comes back equal to the bit, in both encodings and each form. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { KvMetricsDecodeError } from "../../src/errors.ts";
import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import { encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { PickleMachine } from "../../src/kv_metrics/pickle_machine.ts";
import { readUsual } from "../../src/kv_metrics/pickle_reader.ts";
import { encodeKvMetricsPickle, KV_METRICS_MODULES } from "../../src/kv_metrics/pickle_writer.ts";
import { aPartialMessage } from "../support/kv_arbitraries.ts";
import { valuesOf } from "../support/kv_vectors.ts";

const anOption = fc.record({
  protocol: fc.constantFrom(4 as const, 5 as const),
  module: fc.constantFrom(...KV_METRICS_MODULES, "sglang.fork"),
  form: fc.constantFrom("plain" as const, "slots" as const, "struct" as const),
});

Deno.test("a message comes back from a pickle of any form", () => {
  fc.assert(fc.property(aPartialMessage, anOption, (message, options) => {
    const pickle = encodeKvMetricsPickle(message, options);
    assert.deepEqual(decodeKvMetrics(pickle), message);
    assert.deepEqual(
      new PickleMachine(pickle, new DataView(pickle.buffer)).run(),
      valuesOf(message),
    );
  }));
});

Deno.test("the shortcut reads what is written, but for integers beyond 32 bits", () => {
  fc.assert(fc.property(aPartialMessage, anOption, (message, options) => {
    const pickle = encodeKvMetricsPickle(message, options);
    const isWide = valuesOf(message).some((value, n) =>
      value !== null && n !== 5 && n !== 6 && (value < -(2 ** 31) || value >= 2 ** 31)
    );
    const found = readUsual(pickle, new DataView(pickle.buffer));
    assert.deepEqual(found, isWide ? null : valuesOf(message));
  }));
});

Deno.test("a message comes back from MessagePack", () => {
  fc.assert(fc.property(aPartialMessage, (message) => {
    assert.deepEqual(decodeKvMetrics(encodeKvMetricsMsgpack(message)), message);
  }));
});

Deno.test("any bytes give a message or a typed error", () => {
  const start = fc.constantFrom([], [0x80, 4], [0x80, 2], [0x99, 0xa9], [0xdc, 0, 9]);
  const bytes = fc.tuple(start, fc.uint8Array({ maxLength: 300 }))
    .map(([head, rest]) => Uint8Array.of(...head, ...rest));
  fc.assert(
    fc.property(bytes, (content) => {
      try {
        decodeKvMetrics(content);
      } catch (error) {
        assert(error instanceof KvMetricsDecodeError);
      }
    }),
    { numRuns: 5000 },
  );
});
