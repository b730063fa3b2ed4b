/** Payloads from before the sections were nested: flags and keys of the one map become sections. */

import assert from "node:assert/strict";
import { Packr } from "npm:msgpackr@2.1.4/pack";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import * as msgpack from "../support/msgpack.ts";

const packr = new Packr({ useRecords: false, variableMapSize: true });

/** What such an engine sends with everything on; ints of msgpackr are ints up to 32 bits. */
const WHOLE: Readonly<Record<string, number>> = {
  timestamp: 1_764_547_200.5,
  dp_rank: 3,
  num_running_reqs: 4,
  num_waiting_reqs: 5,
  num_used_tokens: 70_000,
  num_total_tokens: 80_000,
  max_total_num_tokens: 500_000,
  max_running_requests: 256,
  token_usage: 0.14,
  gen_throughput: 123.5,
  cache_hit_rate: 0.25,
  utilization: 0.5,
  has_memory: 1,
  memory_weight_gb: 15.5,
  memory_kv_cache_gb: 40.25,
  memory_graph_gb: 1.5,
  memory_token_capacity: 500_001,
  has_speculative: 1,
  speculative_accept_length: 2.5,
  speculative_accept_rate: 0.75,
  has_lora: 1,
  lora_slots_used: 2,
  lora_slots_total: 8,
  lora_utilization: 0.25,
  has_disaggregation: 1,
  disagg_mode: 2,
  prefill_bootstrap_queue_reqs: 11,
  prefill_inflight_queue_reqs: 12,
  decode_prealloc_queue_reqs: 13,
  decode_transfer_queue_reqs: 14,
  decode_retracted_queue_reqs: 15,
  kv_transfer_speed_gb_s: 9.5,
  kv_transfer_latency_ms: 1.25,
  has_queues: 1,
  queue_waiting: 21,
  queue_grammar: 22,
  queue_paused: 23,
  queue_retracted: 24,
};

const EXPECTED = createLoadSnapshot({
  timestamp: 1_764_547_200.5,
  dpRank: 3,
  numRunningReqs: 4,
  numWaitingReqs: 5,
  numUsedTokens: 70_000,
  numTotalTokens: 80_000,
  maxTotalNumTokens: 500_000,
  maxRunningRequests: 256,
  tokenUsage: 0.14,
  genThroughput: 123.5,
  cacheHitRate: 0.25,
  utilization: 0.5,
  memory: { weightGb: 15.5, kvCacheGb: 40.25, graphGb: 1.5, tokenCapacity: 500_001 },
  speculative: { acceptLength: 2.5, acceptRate: 0.75 },
  lora: { slotsUsed: 2, slotsTotal: 8, utilization: 0.25 },
  disaggregation: {
    mode: "decode",
    prefillBootstrapQueueReqs: 11,
    prefillInflightQueueReqs: 12,
    decodePreallocQueueReqs: 13,
    decodeTransferQueueReqs: 14,
    decodeRetractedQueueReqs: 15,
    kvTransferSpeedGbS: 9.5,
    kvTransferLatencyMs: 1.25,
  },
  // The fifth count is younger than this layout.
  queues: { waiting: 21, grammar: 22, paused: 23, retracted: 24, missing: 1 },
});

Deno.test("flat keys become the sections that their flags announce", () => {
  assert.deepEqual(decode(WHOLE), EXPECTED);
});

const SECTIONS = {
  memory: "has_memory",
  speculative: "has_speculative",
  lora: "has_lora",
  disaggregation: "has_disaggregation",
  queues: "has_queues",
} as const;

for (const [name, flag] of Object.entries(SECTIONS)) {
  Deno.test(`without ${flag} there is no ${name} section, and the others are`, () => {
    const { [flag]: _, ...rest } = WHOLE;
    const expected = { ...EXPECTED, [name]: null };
    assert.deepEqual(decode(rest), expected);
    assert.deepEqual(decode({ ...WHOLE, [flag]: 0 }), expected);
  });

  Deno.test(`${flag} alone announces a ${name} section of zeros`, () => {
    const missing = name === "queues" ? 1 : 0;
    assert.deepEqual(
      decode({ dp_rank: 1, [flag]: 1 }),
      createLoadSnapshot({ dpRank: 1, [name]: { missing } }),
    );
  });

  Deno.test(`${flag} is an int and nothing else`, () => {
    for (const value of [1.5, true, null, "1", [1]]) {
      assert.throws(() => decode({ [flag]: value }), {
        name: "SnapshotDecodeError",
        message: new RegExp(`expected int in ${flag}`),
      });
    }
  });
}

Deno.test("the mode is a number: null, prefill, decode, and null for what is unknown", () => {
  const modes = ["null", "prefill", "decode", "null", "null"];
  const got = [0, 1, 2, 3, -1].map((mode) =>
    decode({ has_disaggregation: 1, disagg_mode: mode }).disaggregation?.mode
  );
  assert.deepEqual(got, modes);
});

Deno.test("flat values are checked as strictly as nested ones", () => {
  const bad: readonly (readonly [string, unknown])[] = [
    ["memory_token_capacity", 1.5],
    ["memory_weight_gb", "1"],
    ["disagg_mode", "decode"],
    ["queue_waiting", null],
    ["lora_utilization", true],
  ];
  for (const [key, value] of bad) {
    assert.throws(() => decode({ has_memory: 1, has_queues: 1, [key]: value }), {
      name: "SnapshotDecodeError",
      message: new RegExp(`in ${key}, found`),
    });
  }
});

Deno.test("a whole number in an int field may not come as a float", () => {
  for (const value of [msgpack.float(1), msgpack.float32(1)]) {
    const bytes = msgpack.payload({ has_lora: msgpack.int(1), lora_slots_used: value });
    assert.throws(() => decodeLoadSnapshot(bytes), /expected int in lora_slots_used, found float/);
  }
});

Deno.test("a float that is a whole number may come as an int", () => {
  assert.equal(decode({ has_memory: 1, memory_weight_gb: 15 }).memory?.weightGb, 15);
});

Deno.test("integers are exact up to 2^53 here too", () => {
  const payloadOf = (value: bigint) =>
    msgpack.payload({ has_memory: msgpack.int(1), memory_token_capacity: msgpack.int(value) });
  const greatest = 2n ** 53n - 1n;
  assert.equal(decodeLoadSnapshot(payloadOf(greatest)).memory?.tokenCapacity, Number(greatest));
  assert.equal(decodeLoadSnapshot(payloadOf(-greatest)).memory?.tokenCapacity, -Number(greatest));
  for (const value of [greatest + 1n, -greatest - 1n, 2n ** 64n - 1n]) {
    assert.throws(() => decodeLoadSnapshot(payloadOf(value)), { name: "SnapshotDecodeError" });
  }
});

Deno.test("other unknown keys stay beside the sections", () => {
  const snapshot = decode({ ...WHOLE, fork_key: 7, ["__proto__"]: 8 });
  assert.deepEqual(Object.keys(snapshot.extra ?? {}).sort(), ["__proto__", "fork_key"]);
  assert.equal(snapshot.extra?.["fork_key"]?.value(), 7);
  assert.equal(Object.getPrototypeOf(snapshot.extra), null);
  assert.deepEqual({ ...snapshot, extra: null }, EXPECTED);
});

Deno.test("a nested section beside flat keys is the one that counts", () => {
  const snapshot = decode({ ...WHOLE, queues: [1, 2, 3, 4, 5], lora: null });
  assert.deepEqual(
    snapshot.queues,
    createLoadSnapshot({
      queues: { waiting: 1, grammar: 2, paused: 3, retracted: 4, preallocReady: 5 },
    }).queues,
  );
  assert.deepEqual(snapshot.lora, EXPECTED.lora);
  assert.equal(decode({ has_memory: 1, queues: [1, 2, 3, 4, 5] }).queues?.waiting, 1);
});

Deno.test("keys without any flag are no sections, only unknown", () => {
  const snapshot = decode({ memory_weight_gb: 1.5, disagg_mode: 1 });
  assert.equal(snapshot.memory, null);
  assert.deepEqual(Object.keys(snapshot.extra ?? {}), ["memory_weight_gb", "disagg_mode"]);
});

Deno.test("what was flat is written nested", () => {
  const again = decodeLoadSnapshot(encodeLoadSnapshot(decode(WHOLE)));
  assert.deepEqual(again, { ...EXPECTED, queues: { ...EXPECTED.queues, missing: 0 } });
});

function decode(values: Readonly<Record<string, unknown>>): LoadSnapshot {
  // A map, so that "__proto__" is a key.
  return decodeLoadSnapshot(packr.pack(new Map(Object.entries(values))));
}
