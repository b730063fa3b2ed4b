/** Files of engines before the present layout: version 1, and flat payloads of version 2. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { float, int, payload } from "../support/msgpack.ts";
import { SlotPath } from "../support/slot_path.ts";
import { fixedSlot, loadSlot, slotFileBytes, slotOf } from "../support/slot_bytes.ts";

/** All 38 values of version 1, each another one. */
const FIXED = fixedSlot([
  ...[{ d: 1_700_000_000.5 }, 1, 2, 3, 4, 5, 6, 7, { d: 0.25 }, { d: 8.5 }, { d: 0.5 }, { d: -1 }],
  ...[1, { d: 10.5 }, { d: 11.5 }, { d: 12.5 }, 13],
  ...[1, { d: 2.5 }, { d: 0.75 }],
  ...[1, 14, 15, { d: 0.125 }],
  ...[1, 2, 16, 17, 18, 19, 20, { d: 21.5 }, { d: 22.5 }],
  ...[1, 23, 24, 25, 26],
]);

const FIXED_LOAD = createLoadSnapshot({
  timestamp: 1_700_000_000.5,
  dpRank: 1,
  numRunningReqs: 2,
  numWaitingReqs: 3,
  numUsedTokens: 4,
  numTotalTokens: 5,
  maxTotalNumTokens: 6,
  maxRunningRequests: 7,
  tokenUsage: 0.25,
  genThroughput: 8.5,
  cacheHitRate: 0.5,
  utilization: -1,
  memory: { weightGb: 10.5, kvCacheGb: 11.5, graphGb: 12.5, tokenCapacity: 13 },
  speculative: { acceptLength: 2.5, acceptRate: 0.75 },
  lora: { slotsUsed: 14, slotsTotal: 15, utilization: 0.125 },
  disaggregation: {
    mode: "decode",
    prefillBootstrapQueueReqs: 16,
    prefillInflightQueueReqs: 17,
    decodePreallocQueueReqs: 18,
    decodeTransferQueueReqs: 19,
    decodeRetractedQueueReqs: 20,
    kvTransferSpeedGbS: 21.5,
    kvTransferLatencyMs: 22.5,
  },
  queues: { waiting: 23, grammar: 24, paused: 25, retracted: 26, missing: 1 },
});

Deno.test("all values of version 1 are read", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ version: 1, slotSize: 320, slots: [null, FIXED, null] }));
  using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 3 });
  assert.deepEqual(reader.readAll(), [FIXED_LOAD]);
  const load = reader.read(1);
  assert.equal(reader.read(1), load);
  assert.deepEqual([reader.read(0), reader.read(2)], [null, null]);
});

Deno.test("a rank of version 1 that publishes again is read again", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ version: 1, slotSize: 320, slots: [null, FIXED] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const first = reader.read(1);
  const next = FIXED.slice();
  new DataView(next.buffer).setBigInt64(37 * 8, 99n, true);
  file.patch(12 + 320, next);
  assert.deepEqual(reader.read(1)?.queues?.retracted, 99);
  assert.equal(first?.queues?.retracted, 26);
  assert.equal(reader.stats().publications, 2);
});

Deno.test("sections of version 1 whose flag is not set are left out", () => {
  using file = new SlotPath();
  const slots = [fixedSlot([{ d: 1.5 }, 0, 2]), FIXED];
  file.put(slotFileBytes({ version: 1, slotSize: 304, slots }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.deepEqual(reader.readAll(), [
    createLoadSnapshot({ timestamp: 1.5, numRunningReqs: 2 }),
    FIXED_LOAD,
  ]);
});

Deno.test("an integer of version 1 beyond 2^53 makes the rank corrupt, no other", () => {
  using file = new SlotPath();
  const huge = FIXED.slice();
  new DataView(huge.buffer).setBigInt64(16, 2n ** 53n, true);
  file.put(slotFileBytes({ version: 1, slotSize: 320, slots: [FIXED, FIXED] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const before = reader.readAll();
  file.patch(12, huge);
  assert.deepEqual(reader.readAll(), before);
  assert.deepEqual(reader.health().map(({ state }) => state), ["corrupt", "stale"]);
});

Deno.test("flat sections of version 2 are read as sections", () => {
  using file = new SlotPath();
  const flat = payload({
    timestamp: float(1.5),
    num_running_reqs: int(2),
    has_memory: int(1),
    memory_weight_gb: float(10.5),
    memory_kv_cache_gb: float(11.5),
    memory_token_capacity: int(13),
    has_lora: int(0),
    has_queues: int(1),
    queue_waiting: int(4),
    queue_paused: int(5),
    later: int(6),
  });
  file.put(slotFileBytes({ slots: [slotOf(flat)] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const load = reader.read(0);
  assert.deepEqual({ ...load, extra: null }, {
    ...createLoadSnapshot({
      timestamp: 1.5,
      numRunningReqs: 2,
      memory: { weightGb: 10.5, kvCacheGb: 11.5, tokenCapacity: 13 },
      queues: { waiting: 4, paused: 5, missing: 1 },
    }),
  });
  assert.deepEqual(Object.keys(load?.extra ?? {}), ["later"]);
  assert.equal(reader.read(0), load);
});

Deno.test("an engine that is updated from version 1 to 2 is followed", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ version: 1, slotSize: 320, slots: [FIXED, FIXED] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.equal(reader.readAll().length, 2);
  file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 50 }), null] }));
  assert.equal(reader.read(0)?.numRunningReqs, 50);
  assert.deepEqual(reader.read(1), FIXED_LOAD, "the rank has not published since");
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  writer.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: 51 }));
  assert.equal(reader.read(1)?.numRunningReqs, 51);
});
