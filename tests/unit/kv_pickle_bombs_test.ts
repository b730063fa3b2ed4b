/** Pickles that are huge, deep, cut off, or lie about lengths: refused before they cost anything. */

import assert from "node:assert/strict";
import { PickleRefusedError } from "../../src/errors.ts";
import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import { KV_VECTORS } from "../support/kv_vectors.ts";
import * as p from "../support/pickle.ts";

const { OP } = p;

/** As many instructions as fit into the longest pickle that is read. */
const FILL = 8000;

function reasonOf(pickle: Uint8Array): string {
  try {
    decodeKvMetrics(pickle);
  } catch (error) {
    assert(error instanceof PickleRefusedError, String(error));
    return error.reason;
  }
  assert.fail(`decoded: ${pickle.subarray(0, 100).toHex()}`);
}

/** Bombs by name: what is repeated, and what is done with it. */
const BOMBS: Readonly<Record<string, (count: number) => p.Code>> = {
  "a flat tuple": (count) => p.tuple(p.repeat(count, OP.NONE)),
  "a flat list": (count) => p.join(OP.EMPTY_LIST, OP.MARK, p.repeat(count, OP.NONE), OP.APPENDS),
  "a flat dict": (count) =>
    p.join(OP.EMPTY_DICT, OP.MARK, p.repeat(count, p.join(p.text(""), OP.NONE)), OP.SETITEMS),
  "nested marks": (count) => p.repeat(count, OP.MARK),
  "nested tuples": (count) => p.join(OP.EMPTY_TUPLE, p.repeat(count, OP.TUPLE1)),
  "nested pairs": (count) => p.join(OP.NONE, p.repeat(count, p.join(OP.NONE, OP.TUPLE2))),
  "nested lists": (count) => p.repeat(count, OP.EMPTY_LIST),
  "nested dicts": (count) => p.repeat(count, OP.EMPTY_DICT),
  "a growing memo": (count) => p.join(OP.NONE, p.repeat(count, OP.MEMOIZE)),
  "objects": (count) => p.repeat(count, p.OBJECT),
  "names": (count) => p.repeat(count, p.text("KvMetrics")),
  "calls": (count) =>
    p.repeat(count, p.reduce(p.global("_codecs", "encode"), p.text("a"), p.text("latin1"))),
};

for (const [name, bomb] of Object.entries(BOMBS)) {
  Deno.test(`a bomb of ${name} is refused for its size, and as well where it fits`, () => {
    for (const count of [10_000_000, 1_000_000]) {
      const code = count === 10_000_000 && bomb(1).length > 8 ? bomb(count / 10) : bomb(count);
      assert.equal(reasonOf(p.pickle(4, code)), "size");
    }
    const fitting = bomb(Math.floor(FILL / (bomb(2).length - bomb(1).length)));
    assert(fitting.length < 8192);
    const reason = reasonOf(p.pickle(4, fitting));
    assert(["stack", "depth", "memo", "opcode", "dict", "call"].includes(reason), reason);
  });
}

Deno.test("the longest pickle that is read has 8,192 bytes", () => {
  const padded = (length: number) => {
    const spare = length - p.pickle(4, p.kvMetrics([p.text("pad"), p.longText("")])).length;
    return p.pickle(4, p.kvMetrics([p.text("pad"), p.longText("x".repeat(spare))]));
  };
  assert.equal(padded(8192).length, 8192);
  assert.equal(decodeKvMetrics(padded(8192)).kvActiveBlocks, null);
  assert.equal(reasonOf(padded(8193)), "size");
});

Deno.test("a pickle that is cut off anywhere is refused", () => {
  for (const { name, pickle } of KV_VECTORS) {
    for (let length = 1; length < pickle.length; length++) {
      const reason = reasonOf(pickle.subarray(0, length));
      // Where there is a frame, it tells at once.
      const expected = pickle[2] === 0x95 && length >= 11 ? "frame" : "truncated";
      assert.equal(reason, expected, `${name}, ${length} bytes`);
    }
  }
});

Deno.test("a length that lies is refused, whatever it counts", () => {
  const lies: readonly p.Code[] = [
    p.text("a", 255),
    p.longText("a", 0xffff_ffff),
    p.longText("a", 0x7fff_ffff),
    p.longText("a", 0x8000_0000),
    p.longText("a", 100),
    p.raw("C", 255, 1),
    p.raw(0x8a, 255, 1),
    p.raw(0x8b, 255, 255, 255, 255, 1),
    p.raw(0x8b, 255, 255, 255, 127, 1),
  ];
  for (const lie of lies) {
    assert.equal(reasonOf(p.pickle(4, lie)), "truncated");
    assert.equal(
      reasonOf(p.pickle(4, p.kvMetrics([p.text("kv_active_blocks"), lie]))),
      "truncated",
    );
  }
  // A name's line without an end.
  assert.equal(reasonOf(p.join(p.raw(0x80, 2), p.raw("c", 0x61, 0x62))), "truncated");
  assert.equal(reasonOf(p.join(p.raw(0x80, 2), p.raw("c", 0x61, 0x0a, 0x62))), "truncated");
});

Deno.test("a shorter length than is meant leaves no KvMetrics either", () => {
  for (const { pickle } of KV_VECTORS) {
    for (let at = 0; at < pickle.length; at++) {
      if (pickle[at] !== 0x8c || pickle[at + 1]! < 2) continue;
      const lie = pickle.slice();
      lie[at + 1]!--;
      reasonOf(lie);
    }
  }
});
