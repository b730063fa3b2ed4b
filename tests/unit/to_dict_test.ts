/** A snapshot as SGLang's HTTP API shows it, with the sections that are asked for. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import { toDict } from "../../src/snapshot/to_dict.ts";

const CORE = {
  timestamp: 0,
  dp_rank: 2,
  num_running_reqs: 0,
  num_waiting_reqs: 0,
  num_waiting_uncached_tokens: 0,
  num_used_tokens: 0,
  num_total_tokens: 0,
  num_active_tokens: 0,
  num_prealloc_ready_tokens: 0,
  max_total_num_tokens: 0,
  max_running_requests: 0,
  token_usage: 0.25,
  gen_throughput: 0,
  cache_hit_rate: 0,
  utilization: -1,
  total_prefill_uncached_tokens: 0,
  total_prefill_busy_us: 0,
  decode_moments: [1, 2.5],
};

/** Each section by the name that asks for it. */
const SECTIONS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  memory: { memory: { weight_gb: 1, kv_cache_gb: 2, graph_gb: 0.5, token_capacity: 1000 } },
  spec: { speculative: { accept_length: 2.5, accept_rate: 0.75 } },
  lora: { lora: { slots_used: 1, slots_total: 8, utilization: 0.125 } },
  disagg: {
    disaggregation: {
      mode: "decode",
      prefill_bootstrap_queue_reqs: 1,
      prefill_inflight_queue_reqs: 2,
      decode_prealloc_queue_reqs: 3,
      decode_transfer_queue_reqs: 4,
      decode_retracted_queue_reqs: 5,
      kv_transfer_speed_gb_s: 6.5,
      kv_transfer_latency_ms: 7.5,
    },
  },
  queues: { queues: { waiting: 1, grammar: 2, paused: 3, retracted: 4, prealloc_ready: 5 } },
};

const ALL = { ...CORE, ...Object.assign({}, ...Object.values(SECTIONS)) };

const SNAPSHOT = createLoadSnapshot({
  dpRank: 2,
  tokenUsage: 0.25,
  utilization: -1,
  decodeMoments: [1, 2.5],
  memory: { weightGb: 1, kvCacheGb: 2, graphGb: 0.5, tokenCapacity: 1000 },
  speculative: { acceptLength: 2.5, acceptRate: 0.75 },
  lora: { slotsUsed: 1, slotsTotal: 8, utilization: 0.125 },
  disaggregation: {
    mode: "decode",
    prefillBootstrapQueueReqs: 1,
    prefillInflightQueueReqs: 2,
    decodePreallocQueueReqs: 3,
    decodeTransferQueueReqs: 4,
    decodeRetractedQueueReqs: 5,
    kvTransferSpeedGbS: 6.5,
    kvTransferLatencyMs: 7.5,
  },
  queues: { waiting: 1, grammar: 2, paused: 3, retracted: 4, preallocReady: 5 },
});

Deno.test("without a choice everything is shown, in SGLang's order", () => {
  assert.deepEqual(toDict(SNAPSHOT), ALL);
  assert.deepEqual(Object.keys(toDict(SNAPSHOT)), [
    ...Object.keys(CORE),
    ...["memory", "speculative", "lora", "disaggregation", "queues"],
  ]);
});

for (const [name, section] of Object.entries(SECTIONS)) {
  Deno.test(`"${name}" adds its section to the core values`, () => {
    assert.deepEqual(toDict(SNAPSHOT, [name]), { ...CORE, ...section });
  });
}

Deno.test("any choice of sections gives just those", () => {
  fc.assert(fc.property(fc.subarray(["core", ...Object.keys(SECTIONS)]), (include) => {
    const expected = Object.assign({}, CORE, ...include.map((name) => SECTIONS[name] ?? {}));
    assert.deepEqual(toDict(SNAPSHOT, include), expected);
    assert.deepEqual(toDict(SNAPSHOT, new Set(include)), expected);
    assert.deepEqual(toDict(SNAPSHOT, [...include, "all", ...include]), ALL);
  }));
});

Deno.test('nothing asked for, and "core", give the core values', () => {
  assert.deepEqual(toDict(SNAPSHOT, []), CORE);
  assert.deepEqual(toDict(SNAPSHOT, ["core"]), CORE);
  assert.deepEqual(toDict(SNAPSHOT, new Set(["core", "core"])), CORE);
});

Deno.test("a section that the snapshot lacks is not shown, asked for or not", () => {
  const { decode_moments, ...core } = toDict(createLoadSnapshot(), ["queues", "lora"]);
  assert.equal(decode_moments, null);
  assert.equal(Object.keys(core).length, 17);
  assert.deepEqual(toDict({ ...SNAPSHOT, lora: null }, ["lora", "spec"]), {
    ...CORE,
    ...SECTIONS["spec"],
  });
});

Deno.test("an unknown section is an error that lists the valid ones", () => {
  for (const include of [["gpu"], ["core", "gpu"], ["spec", "gpu"]]) {
    assert.throws(() => toDict(SNAPSHOT, include), {
      name: "RangeError",
      message: /\bgpu\b.*\ball, core, disagg, lora, memory, queues, spec\b/,
    });
  }
});

Deno.test("names are taken exactly: no case, no blanks, no wire names, no prototype", () => {
  for (const name of ["Core", " core", "", "speculative", "disaggregation", "toString", "c"]) {
    assert.throws(() => toDict(SNAPSHOT, [name]), RangeError, name);
  }
});

Deno.test('beside "all", an unknown section is no error', () => {
  assert.deepEqual(toDict(SNAPSHOT, ["gpu", "all"]), ALL);
});

Deno.test("what no release knows is not shown", () => {
  const snapshot = createLoadSnapshot({
    extra: { fork: RawMsgpack.from(1) },
    speculative: { acceptLength: 1, extra: [RawMsgpack.from(2)], missing: 1 },
  });
  assert.deepEqual(toDict(snapshot)["speculative"], { accept_length: 1, accept_rate: 0 });
  assert.equal("fork" in toDict(snapshot) || "extra" in toDict(snapshot), false);
});

Deno.test("the dict is the caller's own", () => {
  const dict = toDict(SNAPSHOT);
  dict["dp_rank"] = 9;
  Object.assign(dict["queues"] as object, { waiting: 9 });
  assert.deepEqual(toDict(SNAPSHOT), ALL);
});
