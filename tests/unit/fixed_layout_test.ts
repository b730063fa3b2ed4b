/** Layout version 1: 38 values of eight bytes, little endian, at fixed places. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { SnapshotDecodeError } from "../../src/errors.ts";
import { decodeFixedLayout, FIXED_PAYLOAD_SIZE } from "../../src/snapshot/fixed_layout.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";

/** The layout in the words of Python's `struct`: d is a float, q an integer. */
const FORMAT = "dqqqqqqqddddqdddqqddqqqdqqqqqqqddqqqqq";

/** The places of the flags that say which sections are there. */
const FLAGS = { memory: 12, speculative: 17, lora: 20, disaggregation: 24, queues: 33 } as const;

/** Each value is its place, and floats have a half besides; the flags are on. */
const WHOLE = Array.from(FORMAT, (type, at) => type === "d" ? at + 0.5 : at);

const EXPECTED = createLoadSnapshot({
  timestamp: 0.5,
  dpRank: 1,
  numRunningReqs: 2,
  numWaitingReqs: 3,
  numUsedTokens: 4,
  numTotalTokens: 5,
  maxTotalNumTokens: 6,
  maxRunningRequests: 7,
  tokenUsage: 8.5,
  genThroughput: 9.5,
  cacheHitRate: 10.5,
  utilization: 11.5,
  memory: { weightGb: 13.5, kvCacheGb: 14.5, graphGb: 15.5, tokenCapacity: 16 },
  speculative: { acceptLength: 18.5, acceptRate: 19.5 },
  lora: { slotsUsed: 21, slotsTotal: 22, utilization: 23.5 },
  disaggregation: {
    mode: "decode",
    prefillBootstrapQueueReqs: 26,
    prefillInflightQueueReqs: 27,
    decodePreallocQueueReqs: 28,
    decodeTransferQueueReqs: 29,
    decodeRetractedQueueReqs: 30,
    kvTransferSpeedGbS: 31.5,
    kvTransferLatencyMs: 32.5,
  },
  queues: { waiting: 34, grammar: 35, paused: 36, retracted: 37, missing: 1 },
});

const MODE = 25;

Deno.test("38 values make 304 bytes", () => {
  assert.equal(FORMAT.length, 38);
  assert.equal(FIXED_PAYLOAD_SIZE, 304);
});

Deno.test("each value is read from its place, in its type", () => {
  assert.deepEqual(decode(WHOLE.with(MODE, 2)), EXPECTED);
});

Deno.test("the values may start anywhere in a buffer", () => {
  for (const start of [0, 12, 13, 332]) {
    assert.deepEqual(decode(WHOLE.with(MODE, 2), start), EXPECTED);
  }
});

for (const [name, flag] of Object.entries(FLAGS)) {
  Deno.test(`the ${name} section is there when its flag is not 0`, () => {
    const values = WHOLE.with(MODE, 2);
    assert.deepEqual(decode(values.with(flag, 0)), { ...EXPECTED, [name]: null });
    assert.deepEqual(decode(values.with(flag, 1)), EXPECTED);
    assert.deepEqual(decode(values.with(flag, -1)), EXPECTED);
  });
}

Deno.test("the mode is a number: null, prefill, decode, and null for what is unknown", () => {
  const modes = [0, 1, 2, 3, -1].map((mode) => decode(WHOLE.with(MODE, mode)).disaggregation?.mode);
  assert.deepEqual(modes, ["null", "prefill", "decode", "null", "null"]);
});

Deno.test("zeros are a default snapshot", () => {
  assert.deepEqual(decode(Array(38).fill(0)), createLoadSnapshot());
});

Deno.test("floats pass as they are, integers up to 2^53", () => {
  fc.assert(fc.property(fc.double(), fc.maxSafeInteger(), (float, int) => {
    const values = WHOLE.with(0, float).with(32, float).with(1, int).with(37, int);
    const { timestamp, dpRank, disaggregation, queues } = decode(values);
    assert.deepEqual([timestamp, dpRank], [float, int]);
    assert.deepEqual([disaggregation?.kvTransferLatencyMs, queues?.retracted], [float, int]);
  }));
});

Deno.test("an integer beyond 2^53 is refused, and the error tells its place", () => {
  for (const value of [2n ** 53n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n)]) {
    for (const at of [1, 16, 37]) {
      const view = viewOf(WHOLE, 12);
      view.setBigInt64(12 + at * 8, value, true);
      assert.throws(() => decodeFixedLayout(view, 12), (error: unknown) => {
        assert(error instanceof SnapshotDecodeError);
        assert.match(error.message, /beyond 2\^53/);
        assert.equal(error.offset, at * 8);
        return true;
      });
    }
  }
});

function decode(values: readonly number[], start: number = 0): LoadSnapshot {
  return decodeFixedLayout(viewOf(values, start), start);
}

function viewOf(values: readonly number[], start: number): DataView {
  const view = new DataView(new ArrayBuffer(start + FIXED_PAYLOAD_SIZE));
  values.forEach((value, index) => {
    const at = start + index * 8;
    if (FORMAT[index] === "d") view.setFloat64(at, value, true);
    else view.setBigInt64(at, BigInt(value), true);
  });
  return view;
}
