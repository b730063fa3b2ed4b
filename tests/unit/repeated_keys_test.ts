/** Keys that stand twice in a payload: the last one counts, as in every reader of MessagePack. */

import assert from "node:assert/strict";
import { decodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import * as msgpack from "../support/msgpack.ts";

Deno.test("of a key that stands twice, the last value counts", () => {
  const bytes = msgpack.map([
    ["dp_rank", msgpack.int(2n ** 60n)],
    ["num_used_tokens", msgpack.int(7)],
    ["dp_rank", msgpack.int(1)],
    [msgpack.str("num_used_tokens", 16), msgpack.int(0)],
    ["decode_moments", msgpack.array([msgpack.float(1), msgpack.float(2)])],
    ["decode_moments", msgpack.array([msgpack.float(3)])],
    ["fork", msgpack.int(1)],
    ["fork", msgpack.str("last")],
  ]);
  const snapshot = decodeLoadSnapshot(bytes);
  assert.equal(snapshot.dpRank, 1);
  assert.equal(snapshot.numUsedTokens, 0);
  assert.deepEqual(snapshot.decodeMoments, [3]);
  assert.equal(snapshot.extra?.["fork"]?.value(), "last");
});

Deno.test("of a section that stands twice nothing is left of the first", () => {
  const long = msgpack.array([1, 2, 3, 4, 5, 6].map((count) => msgpack.int(count)));
  const short = msgpack.array([msgpack.int(9)]);
  const sectionOf = (...sections: readonly Uint8Array[]) =>
    decodeLoadSnapshot(msgpack.map(sections.map((value) => ["queues", value]))).queues;
  assert.deepEqual(
    sectionOf(long, short),
    createLoadSnapshot({ queues: { waiting: 9, missing: 4 } }).queues,
  );
  assert.equal(sectionOf(short, long)?.extra?.length, 1);
  assert.equal(sectionOf(short, long)?.missing, 0);
  assert.equal(sectionOf(long, msgpack.NIL), null);
  assert.equal(sectionOf(msgpack.NIL, short)?.waiting, 9);
});

Deno.test("of a disaggregation section that stands twice the mode is the last one's too", () => {
  const prefill = msgpack.array([msgpack.str("prefill")]);
  const sectionOf = (...sections: readonly Uint8Array[]) =>
    decodeLoadSnapshot(msgpack.map(sections.map((value) => ["disaggregation", value])))
      .disaggregation?.mode;
  assert.equal(sectionOf(prefill, msgpack.array([])), "null");
  assert.equal(sectionOf(prefill, msgpack.NIL), undefined);
  assert.equal(sectionOf(prefill, msgpack.NIL, msgpack.array([])), "null");
});

Deno.test("moments that stand twice may become none", () => {
  const moments = msgpack.array([msgpack.float(1)]);
  const entries = [["decode_moments", moments], ["decode_moments", msgpack.NIL]] as const;
  assert.equal(decodeLoadSnapshot(msgpack.map(entries)).decodeMoments, null);
});
