/** Snapshots made of what is known, and the defaults of the rest. */

import assert from "node:assert/strict";
import { CORE_FIELDS, SECTIONS } from "../../src/snapshot/fields.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";

Deno.test("a snapshot of nothing has zeros and no sections", () => {
  const snapshot = createLoadSnapshot();
  for (const { name, type } of CORE_FIELDS) {
    assert.equal(snapshot[name], type === "floats" ? null : 0, name);
  }
  for (const { name } of SECTIONS) assert.equal(snapshot[name], null, name);
  assert.equal(snapshot.extra, null);
  assert.deepEqual(createLoadSnapshot({}), snapshot);
});

Deno.test("a snapshot has the fields of the table, in its order, and extra", () => {
  assert.deepEqual(Object.keys(createLoadSnapshot({ queues: {} })), [
    ...CORE_FIELDS.map((field) => field.name),
    ...SECTIONS.map((section) => section.name),
    "extra",
  ]);
});

Deno.test("a section has the fields of the table, in its order, and its tail", () => {
  const snapshot = createLoadSnapshot(
    { memory: {}, speculative: {}, lora: {}, disaggregation: {}, queues: {} },
  );
  for (const { name, fields } of SECTIONS) {
    const names = fields.map((field) => field.name);
    assert.deepEqual(Object.keys(snapshot[name] ?? {}), [...names, "extra", "missing"], name);
  }
});

Deno.test("a section that is named at all is there, with zeros", () => {
  assert.deepEqual(createLoadSnapshot({ memory: {} }).memory, {
    weightGb: 0,
    kvCacheGb: 0,
    graphGb: 0,
    tokenCapacity: 0,
    extra: null,
    missing: 0,
  });
  assert.equal(createLoadSnapshot({ disaggregation: {} }).disaggregation?.mode, "null");
  assert.equal(createLoadSnapshot({ lora: null }).lora, null);
});

Deno.test("what is given stays as it is", () => {
  const extra = { fork: RawMsgpack.from(1) };
  const tail = [RawMsgpack.from(2)];
  const moments = [1, 2];
  const snapshot = createLoadSnapshot({
    dpRank: 3,
    tokenUsage: -0,
    genThroughput: NaN,
    decodeMoments: moments,
    extra,
    queues: { waiting: 4, extra: tail, missing: 1 },
  });
  assert.equal(snapshot.dpRank, 3);
  assert.equal(snapshot.tokenUsage, -0);
  assert.equal(snapshot.genThroughput, NaN);
  assert.equal(snapshot.decodeMoments, moments);
  assert.equal(snapshot.extra, extra);
  assert.equal(snapshot.queues?.waiting, 4);
  assert.equal(snapshot.queues.extra, tail);
  assert.equal(snapshot.queues.missing, 1);
});

Deno.test("no two snapshots share a section, and none changes with what it was made of", () => {
  const init = { queues: { waiting: 1 } };
  const [one, other] = [createLoadSnapshot(init), createLoadSnapshot(init)];
  init.queues.waiting = 2;
  assert.notEqual(one.queues, other.queues);
  assert.equal(one.queues?.waiting, 1);
});
