/** Keys and elements that this release does not know: kept as they came, and written again. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { SnapshotDecodeError } from "../../src/errors.ts";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { SECTIONS } from "../../src/snapshot/fields.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import * as msgpack from "../support/msgpack.ts";
import { assertSame } from "../support/same.ts";
import {
  anUnknownKey,
  aRawValue,
  aSnapshot,
  someUnknownKeys,
} from "../support/snapshot_arbitraries.ts";

/** Values in forms that no encoder would choose: decoding them and encoding again would lose that. */
const ODD_VALUES: readonly Uint8Array[] = [
  msgpack.int(1, "u64"),
  msgpack.int(-1, "i64"),
  msgpack.int(2n ** 64n - 1n),
  msgpack.float32(0.1),
  msgpack.str("a", 32),
  msgpack.str(Uint8Array.of(0xff, 0xfe)),
  msgpack.bin(Uint8Array.of(1, 2, 3)),
  msgpack.ext(-1, Uint8Array.of(0, 0, 0, 0)),
  Uint8Array.of(0xd4, 0x05, 0x01),
  Uint8Array.of(0xd8, 0x05, ...new Uint8Array(16)),
  msgpack.array([msgpack.array([], 32), msgpack.NIL], 16),
  msgpack.map([[msgpack.int(1), msgpack.map([], 32)], [msgpack.NIL, msgpack.bool(true)]], 16),
  msgpack.map([["a", msgpack.int(1)], ["a", msgpack.int(2)]]),
];

Deno.test("an unknown key and its value survive, byte for byte", () => {
  const entries = ODD_VALUES.map((value, at) => [`fork_${at}`, value] as const);
  const bytes = msgpack.map([["dp_rank", msgpack.int(1)], ...entries], 16);
  const snapshot = decodeLoadSnapshot(bytes);
  assert.deepEqual({ ...snapshot, extra: null }, createLoadSnapshot({ dpRank: 1 }));
  for (const [key, value] of entries) assert.deepEqual(snapshot.extra?.[key]?.bytes, value);
  assert.deepEqual(encodeLoadSnapshot(snapshot), bytes);
});

Deno.test("what is done to one snapshot's unknown values does not show in another's", () => {
  const lora = [1, 2, 3, 4].map((count) => msgpack.int(count));
  const bytes = msgpack.map([["a", msgpack.int(1)], ["lora", msgpack.array(lora)]]);
  for (let round = 0; round < 5; round++) {
    const { extra, lora } = decodeLoadSnapshot(bytes);
    assert.deepEqual(Object.keys(extra!), ["a"]);
    assert.deepEqual([extra!["a"]!.bytes, lora!.extra![0]!.bytes], [[1], [4]].map(toBytes));
    extra!["a"]!.bytes[0] = 99;
    lora!.extra![0]!.bytes[0] = 99;
    delete (extra as Record<string, unknown>)["a"];
    (lora!.extra as unknown[]).length = 0;
  }
});

Deno.test("unknown keys may stand anywhere between known ones", () => {
  const bytes = msgpack.map([
    ["a", msgpack.int(1)],
    ["dp_rank", msgpack.int(2)],
    ["b", msgpack.NIL],
    ["queues", msgpack.array([1, 2, 3, 4, 5].map((count) => msgpack.int(count)))],
    ["c", msgpack.array([])],
    ["num_used_tokens", msgpack.int(3)],
  ]);
  const { dpRank, numUsedTokens, queues, extra } = decodeLoadSnapshot(bytes);
  assert.deepEqual([dpRank, numUsedTokens, queues?.preallocReady], [2, 3, 5]);
  assert.deepEqual(Object.keys(extra ?? {}), ["a", "b", "c"]);
});

Deno.test("any unknown key is a key like any other, those of Object.prototype too", () => {
  fc.assert(fc.property(anUnknownKey, aRawValue, (key, value) => {
    const snapshot = decodeLoadSnapshot(msgpack.map([[msgpack.str(key), value.bytes]]));
    assert.deepEqual(Object.keys(snapshot.extra ?? {}), [key]);
    assert.deepEqual(snapshot.extra?.[key]?.bytes, value.bytes);
    assertSame(decodeLoadSnapshot(encodeLoadSnapshot(snapshot)), snapshot);
  }));
});

Deno.test('"__proto__" changes no prototype', () => {
  const bytes = msgpack.payload({ ["__proto__"]: msgpack.map([["polluted", msgpack.int(1)]]) });
  const { extra } = decodeLoadSnapshot(bytes);
  assert.equal(Object.getPrototypeOf(extra), null);
  assert.deepEqual(Object.keys(extra ?? {}), ["__proto__"]);
  assert.equal("polluted" in {}, false);
});

Deno.test("a key that begins or ends like a known one is unknown", () => {
  for (const key of ["dp_rank\0", "dp_ran", "dp_ranks", "Dp_rank", "\ufeffdp_rank", " queues"]) {
    const snapshot = decodeLoadSnapshot(msgpack.payload({ [key]: msgpack.str("text") }));
    assert.deepEqual(Object.keys(snapshot.extra ?? {}), [key]);
    assert.equal(snapshot.dpRank, 0);
  }
});

Deno.test("a key that is not UTF-8 is refused, in every width", () => {
  const bad = [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]];
  for (const bytes of bad) {
    for (const form of ["fix", 8, 16, 32] as const) {
      const key = msgpack.str(Uint8Array.from(bytes), form);
      assert.throws(() => decodeLoadSnapshot(msgpack.map([[key, msgpack.int(1)]])), {
        name: "SnapshotDecodeError",
        message: /invalid UTF-8 in a map key/,
      });
      const mode = msgpack.payload({ disaggregation: msgpack.array([key]) });
      assert.throws(() => decodeLoadSnapshot(mode), /invalid UTF-8 in mode/);
    }
  }
});

Deno.test("elements behind the known ones survive in each section, byte for byte", () => {
  for (const { name, wire, fields } of SECTIONS) {
    const known = fields.map(({ type }) =>
      type === "string"
        ? msgpack.str("decode")
        : type === "int"
        ? msgpack.int(7)
        : msgpack.float(0.5)
    );
    const bytes = msgpack.map([[wire, msgpack.array([...known, ...ODD_VALUES])]], 16);
    const snapshot = decodeLoadSnapshot(bytes);
    assert.deepEqual(snapshot[name]?.extra?.map((raw) => raw.bytes), ODD_VALUES, name);
    assert.equal(snapshot[name]?.missing, 0);
    assert.deepEqual(encodeLoadSnapshot(snapshot), bytes, name);
  }
});

Deno.test("what is unknown does not depend on the buffer that it came in", () => {
  const bytes = msgpack.payload({ fork: msgpack.str("kept"), lora: msgpack.array([]) });
  const snapshot = decodeLoadSnapshot(bytes);
  bytes.fill(0);
  assert.equal(snapshot.extra?.["fork"]?.value(), "kept");
});

Deno.test("a snapshot with anything unknown in it survives a round trip", () => {
  fc.assert(fc.property(aSnapshot, (snapshot) => {
    assertSame(decodeLoadSnapshot(encodeLoadSnapshot(snapshot)), snapshot);
  }));
});

Deno.test("an unknown value that is cut off is refused wherever the cut is", () => {
  fc.assert(
    fc.property(someUnknownKeys, (extra) => {
      if (extra === null) return;
      const bytes = encodeLoadSnapshot(createLoadSnapshot({ extra }));
      for (let length = 0; length < bytes.length; length++) {
        assert.throws(() => decodeLoadSnapshot(bytes.subarray(0, length)), SnapshotDecodeError);
      }
    }),
    { numRuns: 30 },
  );
});

Deno.test("a known key among the unknown ones cannot change a snapshot's own value", () => {
  for (const key of ["dp_rank", "decode_moments", "queues"]) {
    const extra = { [key]: new RawMsgpack(msgpack.array([])) };
    assert.throws(() => encodeLoadSnapshot(createLoadSnapshot({ dpRank: 1, extra })), {
      name: "RangeError",
      message: new RegExp(key),
    });
  }
});

Deno.test("a raw value can be made and asked for", () => {
  for (const value of [null, true, 7, -7, 1.5, "text", [1, [2]], { a: { b: null } }]) {
    assert.deepEqual(RawMsgpack.from(value).value(), value);
  }
  assert.equal(RawMsgpack.from(2n ** 60n).value(), 2n ** 60n);
  assert.equal(new RawMsgpack(msgpack.int(2n ** 53n - 1n)).value(), 2 ** 53 - 1);
  assert.equal(new RawMsgpack(msgpack.int(-(2n ** 63n))).value(), -(2n ** 63n));
});

Deno.test("a raw value that is not one value is refused when it is encoded", () => {
  for (const bytes of [[], [0xc1], [0x01, 0x02], [0x92, 0x01], [0xa5, 0x61]]) {
    const extra = { key: new RawMsgpack(Uint8Array.from(bytes)) };
    assert.throws(() => encodeLoadSnapshot(createLoadSnapshot({ extra })), {
      name: "RangeError",
      message: /not one MessagePack value/,
    });
  }
});

Deno.test("more keys than two bytes can count survive a round trip", () => {
  const nothing = new RawMsgpack(Uint8Array.of(0xc0));
  const extra = Object.fromEntries(Array.from({ length: 65_537 }, (_, n) => [`k${n}`, nothing]));
  const snapshot = createLoadSnapshot({ dpRank: 3, extra });
  const decoded = decodeLoadSnapshot(encodeLoadSnapshot(snapshot));
  assert.equal(decoded.dpRank, 3);
  assert.equal(Object.keys(decoded.extra!).length, 65_537);
});

function toBytes(values: readonly number[]): Uint8Array {
  return Uint8Array.from(values);
}
