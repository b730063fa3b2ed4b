/** Payloads made to harm: cut off, lying about lengths, nested without end. */

import assert from "node:assert/strict";
import { SnapshotDecodeError } from "../../src/errors.ts";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import * as msgpack from "../support/msgpack.ts";

const WHOLE = encodeLoadSnapshot(createLoadSnapshot({
  timestamp: 1_764_547_200.5,
  dpRank: 1,
  numUsedTokens: 70_000,
  numTotalTokens: 2 ** 40,
  numRunningReqs: 200,
  decodeMoments: [1, 2, 3],
  memory: { weightGb: 1, tokenCapacity: 500_000, extra: [RawMsgpack.from([1, { a: 2 }])] },
  disaggregation: { mode: "prefill", kvTransferSpeedGbS: 1.5 },
  queues: { waiting: 300, retracted: -70_000 },
  extra: { fork: RawMsgpack.from({ list: [1, 2.5, "three", null] }) },
}));

/** A one-element list or map around another, so many times. */
function nest(depth: number, opening: Uint8Array, core: Uint8Array): Uint8Array {
  return msgpack.join([...Array<Uint8Array>(depth).fill(opening), core]);
}

Deno.test("a payload that is cut off anywhere is refused", () => {
  for (let length = 0; length < WHOLE.length; length++) {
    assert.throws(() => decodeLoadSnapshot(WHOLE.subarray(0, length)), {
      name: "SnapshotDecodeError",
    }, `${length} bytes`);
  }
});

Deno.test("a byte behind the map is refused, whatever it is", () => {
  for (const byte of [0x00, 0x80, 0xc0, 0xc1, 0xff]) {
    assert.throws(() => decodeLoadSnapshot(msgpack.concat(WHOLE, Uint8Array.of(byte))), {
      name: "SnapshotDecodeError",
      message: /bytes after the map/,
    });
  }
});

Deno.test("an error tells where in the payload the fault stands", () => {
  assert.equal(errorOf(new Uint8Array()).offset, 0);
  assert.equal(errorOf(Uint8Array.of(0xc0)).offset, 0);
  const faults: readonly (readonly [Uint8Array, RegExp])[] = [
    [msgpack.float(1), /expected int in num_used_tokens, found float at byte 26$/],
    [msgpack.int(2n ** 53n), /an integer beyond 2\^53 at byte 26$/],
    [msgpack.int(1).subarray(1), /the end of the payload at byte 26$/],
    [msgpack.int(70_000).subarray(0, 3), /the end of the payload at byte 26$/],
  ];
  for (const [value, message] of faults) {
    const error = errorOf(
      msgpack.payload({ dp_rank: msgpack.int(1), num_used_tokens: value }),
    );
    assert.match(error.message, message);
    assert.equal(error.offset, 26);
  }
});

Deno.test("a head that is cut off is told as that", () => {
  for (const head of [msgpack.mapHead(1, 16), msgpack.mapHead(1, 32)]) {
    assert.match(errorOf(head.subarray(0, 2)).message, /the end of the payload at byte 0$/);
  }
  const list = msgpack.payload({ queues: msgpack.arrayHead(5, 32).subarray(0, 4) });
  assert.match(errorOf(list).message, /the end of the payload at byte 8$/);
});

Deno.test("a head that counts more than there is costs nothing", () => {
  const lies = [0xffff_ffff, 0x7fff_ffff, 0x8000_0000, 0x1_0000, 6];
  const queues = msgpack.array([1, 2, 3, 4, 5].map((count) => msgpack.int(count)));
  for (const count of lies) {
    const head = msgpack.arrayHead(count, 32);
    const payloads = [
      msgpack.concat(msgpack.mapHead(count, 32), msgpack.str("dp_rank"), msgpack.int(1)),
      msgpack.payload({ queues: msgpack.concat(head, queues.subarray(1)) }),
      msgpack.payload({ decode_moments: msgpack.concat(head, queues.subarray(1)) }),
      msgpack.payload({ fork: msgpack.concat(head, queues.subarray(1)) }),
      msgpack.payload({ fork: msgpack.concat(msgpack.mapHead(count, 32), msgpack.NIL) }),
    ];
    for (const payload of payloads) errorOf(payload);
  }
});

Deno.test("a string, bytes or extension longer than the payload is refused", () => {
  for (const tag of [0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xd9, 0xda, 0xdb]) {
    const head = Uint8Array.of(tag, 0xff, 0xff, 0xff, 0xff, 0xff);
    errorOf(msgpack.payload({ fork: head }));
    errorOf(msgpack.map([[head, msgpack.int(1)]]));
    errorOf(msgpack.payload({ disaggregation: msgpack.concat(msgpack.arrayHead(1), head) }));
  }
});

Deno.test("a known key is not looked for behind the end", () => {
  for (const key of ["lora", "dp_rank", "total_prefill_uncached_tokens"]) {
    const whole = msgpack.str(key);
    for (let length = 1; length <= whole.length; length++) {
      errorOf(msgpack.concat(msgpack.mapHead(1), whole.subarray(0, length)));
    }
  }
});

Deno.test("values are nested 64 deep at most", () => {
  const openings = [Uint8Array.of(0x91), Uint8Array.of(0x81, 0x01), Uint8Array.of(0xdc, 0, 1)];
  for (const opening of openings) {
    const payloadOf = (depth: number) =>
      msgpack.payload({ fork: nest(depth, opening, msgpack.int(7)) });
    const deepest = decodeLoadSnapshot(payloadOf(64));
    assert.deepEqual(deepest.extra?.["fork"]?.bytes, nest(64, opening, msgpack.int(7)));
    assert.match(errorOf(payloadOf(65)).message, /nested deeper than 64/);
    assert.match(errorOf(payloadOf(100_000)).message, /nested deeper than 64/);
  }
});

Deno.test("a section's further elements may be nested as deep as a key's value", () => {
  const payloadOf = (depth: number) =>
    msgpack.payload({
      speculative: msgpack.array([
        msgpack.float(1),
        msgpack.float(1),
        nest(depth, Uint8Array.of(0x91), msgpack.NIL),
      ]),
    });
  assert.equal(decodeLoadSnapshot(payloadOf(64)).speculative?.extra?.length, 1);
  errorOf(payloadOf(65));
});

Deno.test("as a key, a value of any depth is refused", () => {
  errorOf(msgpack.map([[nest(100_000, Uint8Array.of(0x91), msgpack.NIL), msgpack.int(1)]]));
  errorOf(msgpack.map([[nest(100_000, Uint8Array.of(0x81), msgpack.NIL), msgpack.int(1)]]));
});

Deno.test("many keys and elements are no harm", () => {
  const keys = Array.from({ length: 70_000 }, (_, n) => [`k${n}`, msgpack.int(n)] as const);
  const { extra } = decodeLoadSnapshot(msgpack.map(keys, 32));
  assert.equal(Object.keys(extra ?? {}).length, 70_000);
  const items = Array<Uint8Array>(70_000).fill(msgpack.NIL);
  const queues = [...Array<Uint8Array>(5).fill(msgpack.int(1)), ...items];
  const snapshot = decodeLoadSnapshot(msgpack.payload({ queues: msgpack.array(queues) }));
  assert.equal(snapshot.queues?.extra?.length, 70_000);
  assert.deepEqual(decodeLoadSnapshot(encodeLoadSnapshot(snapshot)), snapshot);
});

Deno.test("a payload beyond 64 MiB is refused before it is looked at", () => {
  assert.match(errorOf(new Uint8Array(64 * 1024 * 1024 + 1)).message, /beyond 64 MiB/);
});

function errorOf(payload: Uint8Array): SnapshotDecodeError {
  try {
    decodeLoadSnapshot(payload);
  } catch (error) {
    assert(error instanceof SnapshotDecodeError, String(error));
    return error;
  }
  assert.fail(`decoded: ${payload.subarray(0, 100).toHex()}`);
}
