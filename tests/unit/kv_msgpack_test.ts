/** KvMetrics in MessagePack, and the two encodings told apart. */

import assert from "node:assert/strict";
import { KvMetricsDecodeError, PickleRefusedError } from "../../src/errors.ts";
import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import { createKvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import { decodeKvMetricsMsgpack, encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { KV_VECTORS, valuesOf } from "../support/kv_vectors.ts";
import * as m from "../support/msgpack.ts";

/** As msgspec writes it. */
const VECTOR = "99a94b764d65747269637303cc80cd0200cd200002cb3fb0000000000000cb3fe000000000000000";
const METRICS = createKvMetrics({
  requestActiveSlots: 3,
  requestTotalSlots: 128,
  kvActiveBlocks: 512,
  kvTotalBlocks: 8192,
  numRequestsWaiting: 2,
  gpuCacheUsagePerc: 0.0625,
  gpuPrefixCacheHitRate: 0.5,
});

const NAME = m.str("KvMetrics");
const ZEROS = Array<m.Bytes>(8).fill(m.int(0));

function messageOf(...values: readonly m.Bytes[]): m.Bytes {
  return m.array([NAME, ...values]);
}

function refuses(bytes: Uint8Array, reason: string, what: string | RegExp): void {
  assert.throws(() => decodeKvMetrics(bytes), (error) => {
    assert(error instanceof KvMetricsDecodeError && !(error instanceof PickleRefusedError));
    assert.equal(error.reason, reason);
    if (typeof what === "string") assert.equal(error.what, what);
    else assert.match(error.what, what);
    return true;
  });
}

Deno.test("msgspec's bytes are read and written", () => {
  assert.deepEqual(decodeKvMetrics(Uint8Array.fromHex(VECTOR)), METRICS);
  assert.equal(encodeKvMetricsMsgpack(METRICS).toHex(), VECTOR);
});

Deno.test("the first byte tells pickle from MessagePack", () => {
  for (const { pickle, values } of KV_VECTORS) {
    assert.deepEqual(valuesOf(decodeKvMetrics(pickle)), values);
  }
  refuses(new Uint8Array(), "encoding", "nothing");
  // An older pickle, a map, text, nil.
  for (const byte of [0x63, 0x28, 0x81, 0xde, 0xa9, 0xc0, 0x7b]) {
    refuses(Uint8Array.of(byte, 0, 0), "encoding", `a first byte of 0x${byte.toString(16)}`);
  }
  assert.throws(() => decodeKvMetrics(Uint8Array.of(0x80)), PickleRefusedError);
});

Deno.test("every form of a number is read, in a count and in a share", () => {
  for (const form of m.INT_FORMS) {
    const [least, greatest] = m.INT_RANGES[form].map(Number);
    for (const value of [least!, greatest!, 7]) {
      if (!Number.isSafeInteger(value)) continue;
      const message = decodeKvMetrics(messageOf(m.int(value, form), ...ZEROS.slice(1)));
      assert.equal(message.requestActiveSlots, value);
      const shares = messageOf(...ZEROS.slice(0, 5), m.int(value, form));
      assert.equal(decodeKvMetrics(shares).gpuCacheUsagePerc, value);
    }
  }
  const floats = messageOf(m.float(3), m.float32(0.5), m.bool(true), m.bool(false), m.NIL);
  assert.deepEqual(valuesOf(decodeKvMetrics(floats)), [3, 0.5, 1, 0, null, null, null, null]);
});

Deno.test("64-bit integers are exact up to 2^53, and refused beyond", () => {
  for (const value of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
    const message = decodeKvMetrics(messageOf(m.int(value)));
    assert.equal(message.requestActiveSlots, value);
  }
  for (const value of [2n ** 53n, -(2n ** 53n), 2n ** 64n - 1n, -(2n ** 63n)]) {
    refuses(messageOf(m.int(value)), "integer", "an integer beyond 2^53");
  }
});

Deno.test("heads and names in longer forms are the same", () => {
  for (const form of [16, 32] as const) {
    const head = m.arrayHead(9, form);
    assert.deepEqual(
      valuesOf(decodeKvMetrics(m.concat(head, NAME, ...ZEROS))),
      Array(8).fill(0),
    );
  }
  for (const form of [8, 16, 32] as const) {
    decodeKvMetrics(m.concat(m.arrayHead(9), m.str("KvMetrics", form), ...ZEROS));
  }
});

Deno.test("an older sender's missing values are null, a newer one's further ones are passed", () => {
  assert.deepEqual(valuesOf(decodeKvMetrics(messageOf())), Array(8).fill(null));
  assert.deepEqual(
    valuesOf(decodeKvMetrics(messageOf(m.int(7), m.int(8)))),
    [7, 8, ...Array(6).fill(null)],
  );
  const further = [m.NIL, m.bool(true), m.float(1), m.str("worker"), m.bin(Uint8Array.of(1, 2))];
  assert.deepEqual(valuesOf(decodeKvMetrics(messageOf(...ZEROS, ...further))), Array(8).fill(0));
  refuses(messageOf(...ZEROS, m.array([])), "value", "a value of tag 0x90");
});

Deno.test("another class is refused, and what has none", () => {
  for (const name of ["KvMetricz", "LoadEvent", "", "KvMetrics2"]) {
    refuses(m.array([m.str(name), ...ZEROS]), "class", "another class");
  }
  refuses(m.array([]), "class", "an empty array");
  for (
    const other of [m.int(0), m.NIL, m.bin(new TextEncoder().encode("KvMetrics")), m.array([])]
  ) {
    refuses(m.array([other, ...ZEROS]), "class", "no name of a class");
  }
});

Deno.test("a field holds a number or nil", () => {
  const wrong: readonly (readonly [m.Bytes, string])[] = [
    [m.str("7"), "text in request_active_slots"],
    [m.bin(Uint8Array.of(7)), "text in request_active_slots"],
    [m.array([]), "a value of tag 0x90"],
    [m.map([]), "a value of tag 0x80"],
    [m.ext(1, new Uint8Array(4)), "a value of tag 0xc7"],
    [Uint8Array.of(0xc1), "a value of tag 0xc1"],
  ];
  for (const [value, what] of wrong) refuses(messageOf(value, ...ZEROS.slice(1)), "value", what);
});

Deno.test("a message that is cut off anywhere, or has a byte behind it, is refused", () => {
  const whole = Uint8Array.fromHex(VECTOR);
  for (let length = 1; length < whole.length; length++) {
    assert.throws(() => decodeKvMetrics(whole.subarray(0, length)), { reason: "truncated" });
  }
  for (const byte of [0x00, 0xc0, 0xff]) {
    refuses(m.concat(whole, Uint8Array.of(byte)), "trailing", "1 bytes behind the end");
  }
});

Deno.test("a count or a length that lies costs nothing", () => {
  const lies = [
    m.concat(m.arrayHead(0xffff_ffff, 32), NAME, ...ZEROS),
    m.concat(m.arrayHead(0xffff, 16), NAME, ...ZEROS),
    m.concat(m.arrayHead(10), NAME, ...ZEROS),
    m.concat(m.arrayHead(10), NAME, ...ZEROS, Uint8Array.of(0xdb, 0xff, 0xff, 0xff, 0xff)),
    Uint8Array.of(0x99, 0xdb, 0, 0, 0, 9, 0x4b),
  ];
  for (const lie of lies) assert.throws(() => decodeKvMetrics(lie), { reason: "truncated" });
});

Deno.test("the longest message that is read has 8,192 bytes", () => {
  const long = messageOf(...ZEROS, m.str("x".repeat(8192)));
  assert.throws(() => decodeKvMetricsMsgpack(long), { reason: "size", offset: 8192 });
});

Deno.test("a count that is no safe integer, and a value that is no number, are not written", () => {
  assert.throws(() => encodeKvMetricsMsgpack({ ...METRICS, kvActiveBlocks: 0.5 }), RangeError);
  const message = { ...METRICS, gpuCacheUsagePerc: "1" } as unknown as typeof METRICS;
  assert.throws(() => encodeKvMetricsMsgpack(message), TypeError);
});
