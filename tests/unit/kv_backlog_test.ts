/** What an emitter keeps: bounded by rank, in order, and handed on a part at a time. */

import assert from "node:assert/strict";
import { Backlog } from "../../src/kv_metrics/backlog.ts";

function message(number: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Uint32Array.of(number).buffer);
}

function numberOf(bytes: Uint8Array<ArrayBuffer>): number {
  return new Uint32Array(bytes.buffer)[0]!;
}

Deno.test("a backlog keeps the newest of each rank, and hands them on oldest first", () => {
  for (const perRank of [1, 2, 3, 100]) {
    const backlog = new Backlog(perRank);
    let gaveWay = 0;
    for (let n = 0; n < 1000; n++) gaveWay += backlog.keep(n % 2, message(n));
    assert.deepEqual([backlog.length, gaveWay], [2 * perRank, 1000 - 2 * perRank]);
    const got: number[] = [];
    backlog.flush((bytes) => {
      got.push(numberOf(bytes));
      return true;
    });
    const newest = (rank: number) =>
      Array.from({ length: perRank }, (_, n) => 1000 - 2 * (perRank - n) + rank);
    assert.deepEqual(got, [...newest(0), ...newest(1)]);
    assert.equal(backlog.length, 0);
  }
});

Deno.test("what is not taken stays the oldest, and newer ones come after it", () => {
  const backlog = new Backlog(10);
  for (let n = 0; n < 5; n++) backlog.keep(0, message(n));
  const got: number[] = [];
  backlog.flush((bytes) => numberOf(bytes) < 2 && got.push(numberOf(bytes)) > 0);
  backlog.keep(0, message(5));
  backlog.flush((bytes) => got.push(numberOf(bytes)) > 0);
  assert.deepEqual(got, [0, 1, 2, 3, 4, 5]);
});

Deno.test("a long backlog is handed on in parts, so that nothing else waits for all of it", () => {
  const count = 100_000;
  const backlog = new Backlog(count);
  for (let n = 0; n < count; n++) backlog.keep(0, message(n));
  let next = 0;
  let parts = 0;
  while (backlog.length > 0) {
    parts++;
    backlog.flush((bytes) => numberOf(bytes) === next++);
    assert(next <= parts * 1024, "more at once than was said");
  }
  assert.equal(next, count);
});
