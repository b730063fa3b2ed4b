/** What a receiver and its worker share: messages are whole, in order, and none is lost uncounted. */

import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";
import { RECORD_LENGTH } from "../../src/kv_metrics/message_record.ts";
import { MessageRing } from "../../src/kv_metrics/message_ring.ts";
import { RankTable } from "../../src/kv_metrics/rank_table.ts";
import type { HammerData } from "../support/kv_hammer_worker.ts";
import { sleep } from "../support/wait.ts";

const MESSAGES = 300_000;

/** A message all of whose numbers are the same, so that a torn one shows. */
function record(number: number): Float64Array<ArrayBuffer> {
  return new Float64Array(RECORD_LENGTH).fill(number);
}

function wholeNumberOf(record: Float64Array): number {
  assert(record.every((value) => value === record[0]), `torn: ${record}`);
  return record[0]!;
}

function ringOf(size: number, counts = 0): MessageRing {
  const buffer = new SharedArrayBuffer(MessageRing.byteLength(size));
  new Int32Array(buffer, 0, 2).fill(counts);
  return new MessageRing(size, buffer, 0);
}

/** Runs the worker, and something every time that it has had a little time. */
async function hammer(data: HammerData, look: () => void): Promise<number> {
  const url = new URL("../support/kv_hammer_worker.ts", import.meta.url);
  const worker = new Worker(url, { workerData: data });
  const end = Promise.withResolvers<number>();
  worker.on("message", end.resolve);
  worker.on("error", end.reject);
  let isOver = false;
  end.promise.then(() => isOver = true, () => isOver = true);
  while (!isOver) {
    for (let n = 0; n < 1000; n++) look();
    await sleep(0);
  }
  const result = await end.promise;
  await worker.terminate();
  return result;
}

Deno.test("a ring gives out what it was given, and the oldest gives way", () => {
  for (const size of [1, 2, 3, 5, 8]) {
    const ring = ringOf(size);
    const taken = record(0);
    assert.equal(ring.take(taken), false);
    let overtaken = 0;
    for (let n = 1; n <= 20; n++) overtaken += ring.put(record(n));
    assert.equal(overtaken, 20 - size);
    for (let n = 21 - size; n <= 20; n++) {
      assert.equal(ring.take(taken), true);
      assert.equal(wholeNumberOf(taken), n);
    }
    assert.equal(ring.take(taken), false);
  }
});

Deno.test("a ring of no size keeps nothing", () => {
  const ring = ringOf(0);
  assert.equal(ring.put(record(1)), 1);
  assert.equal(ring.take(record(0)), false);
});

Deno.test("a ring goes on where its counts wrap around", () => {
  for (const counts of [2 ** 31 - 3, -3]) {
    const ring = ringOf(5, counts);
    const taken = record(0);
    for (let n = 1; n <= 20; n++) {
      assert.equal(ring.put(record(n)), 0);
      if (n % 2 === 1) continue;
      for (const expected of [n - 1, n]) {
        assert.equal(ring.take(taken), true);
        assert.equal(wholeNumberOf(taken), expected);
      }
    }
    for (let n = 1; n <= 7; n++) ring.put(record(n));
    ring.take(taken);
    assert.equal(wholeNumberOf(taken), 3);
  }
});

for (const size of [1, 2, 100]) {
  Deno.test(`a ring of ${size} under a writer that never waits loses nothing uncounted`, async () => {
    const buffer = new SharedArrayBuffer(MessageRing.byteLength(size));
    const ring = new MessageRing(size, buffer, 0);
    const taken = record(0);
    let count = 0;
    let last = 0;
    const look = () => {
      if (!ring.take(taken)) return;
      const number = wholeNumberOf(taken);
      assert(number > last, `${number} after ${last}`);
      last = number;
      count++;
    };
    const data: HammerData = { into: "ring", buffer, size, messages: MESSAGES };
    const overtaken = await hammer(data, look);
    for (let n = 0; n < size; n++) look();
    assert.equal(last, MESSAGES);
    assert.equal(count + overtaken, MESSAGES);
  });
}

Deno.test("a table under a writer that never waits shows whole messages, and never an older one", async () => {
  const buffer = new SharedArrayBuffer(RankTable.byteLength(2));
  const table = new RankTable(2, buffer, 0);
  const last = [0, 0];
  const seen = record(0);
  let dpRank = 0;
  const look = () => {
    dpRank = 1 - dpRank;
    if (table.read(dpRank, seen) === 0) return;
    const number = wholeNumberOf(seen);
    assert.equal(number % 2, dpRank);
    assert(number >= last[dpRank]!, `${number} after ${last[dpRank]}`);
    last[dpRank] = number;
  };
  await hammer({ into: "table", buffer, size: 0, messages: MESSAGES }, look);
  look();
  look();
  assert.deepEqual(last, [MESSAGES, MESSAGES - 1]);
});

Deno.test("a table's versions wrap around, and none of them says that nothing is there", () => {
  const buffer = new SharedArrayBuffer(RankTable.byteLength(1));
  const table = new RankTable(1, buffer, 0);
  const seen = record(0);
  assert.equal(table.read(0, seen), 0);
  new Int32Array(buffer, 0, 1)[0] = -3;
  const versions = new Set<number>();
  for (let n = 1; n <= 6; n++) {
    table.put(0, record(n));
    versions.add(table.read(0, seen));
    assert.equal(wholeNumberOf(seen), n);
  }
  assert.deepEqual([versions.size, versions.has(0)], [6, false]);
});
