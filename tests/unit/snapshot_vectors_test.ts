/** Payloads as SGLang's own module writes them, and its digests and layout, byte for byte. */

import assert from "node:assert/strict";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot, type LoadSnapshotInit } from "../../src/snapshot/load_snapshot.ts";

/** Written by SGLang 0.5.23 with msgspec 0.23.0. */
const VECTORS: Readonly<Record<string, readonly [payload: string, snapshot: LoadSnapshotInit]>> = {
  "a rank": ["de0001a764705f72616e6b01", { dpRank: 1 }],
  "five queue counts": [
    "de0002a764705f72616e6b01a6717565756573950102030405",
    { dpRank: 1, queues: { waiting: 1, grammar: 2, paused: 3, retracted: 4, preallocReady: 5 } },
  ],
  "a negative zero": ["de0001ab746f6b656e5f7573616765cb8000000000000000", { tokenUsage: -0 }],
  "the utilization of a prefill engine": [
    "de0001ab7574696c697a6174696f6ecbbff0000000000000",
    { utilization: -1 },
  ],
  "the greatest exact integer": [
    "de0001af6e756d5f757365645f746f6b656e73cf001fffffffffffff",
    { numUsedTokens: Number.MAX_SAFE_INTEGER },
  ],
  "the least exact integer": [
    "de0001af6e756d5f757365645f746f6b656e73d3ffe0000000000001",
    { numUsedTokens: Number.MIN_SAFE_INTEGER },
  ],
  "integers of three widths": [
    "de0003a974696d657374616d70cb41da4b36a0200000b06e756d5f72756e6e696e675f72657173d0df" +
    "b5746f74616c5f70726566696c6c5f627573795f7573ce00011170",
    { timestamp: 1_764_547_200.5, numRunningReqs: -33, totalPrefillBusyUs: 70_000 },
  ],
  "decode moments": [
    "de0001ae6465636f64655f6d6f6d656e747392cb3ff0000000000000cb7ff0000000000000",
    { decodeMoments: [1, Infinity] },
  ],
  "no decode moment": ["de0001ae6465636f64655f6d6f6d656e747390", { decodeMoments: [] }],
  "memory": [
    "de0001a66d656d6f727994cb3ff8000000000000cb0000000000000000cb7ff8000000000000ce0007a120",
    { memory: { weightGb: 1.5, graphGb: NaN, tokenCapacity: 500_000 } },
  ],
  "speculative decoding and LoRA": [
    "de0002ab73706563756c617469766592cb4004000000000000cb3fe999999999999a" +
    "a46c6f7261930108cb3fc0000000000000",
    {
      speculative: { acceptLength: 2.5, acceptRate: 0.8 },
      lora: { slotsUsed: 1, slotsTotal: 8, utilization: 0.125 },
    },
  ],
  "disaggregation": [
    "de0001ae6469736167677265676174696f6e98a770726566696c6c0102030405cb3ff8000000000000" +
    "cb3fd0000000000000",
    {
      disaggregation: {
        mode: "prefill",
        prefillBootstrapQueueReqs: 1,
        prefillInflightQueueReqs: 2,
        decodePreallocQueueReqs: 3,
        decodeTransferQueueReqs: 4,
        decodeRetractedQueueReqs: 5,
        kvTransferSpeedGbS: 1.5,
        kvTransferLatencyMs: 0.25,
      },
    },
  ],
};

for (const [name, [payload, init]] of Object.entries(VECTORS)) {
  Deno.test(`SGLang's payload with ${name} is decoded`, () => {
    assert.deepEqual(decodeLoadSnapshot(Uint8Array.fromHex(payload)), createLoadSnapshot(init));
  });

  Deno.test(`a snapshot with ${name} is encoded as SGLang does`, () => {
    assert.equal(encodeLoadSnapshot(createLoadSnapshot(init)).toHex(), payload);
  });
}

// msgspec takes the head's width from the number of the struct's fields, which is beyond 15.
Deno.test("a default snapshot of rank 0 is an empty map with a head of three bytes", () => {
  assert.equal(encodeLoadSnapshot(createLoadSnapshot()).toHex(), "de0000");
});

Deno.test("an empty map in every width is a default snapshot of rank 0", () => {
  for (const payload of ["80", "de0000", "df00000000"]) {
    assert.deepEqual(decodeLoadSnapshot(Uint8Array.fromHex(payload)), createLoadSnapshot());
  }
});

Deno.test("four queue counts are those of an engine before the fifth was added", () => {
  const snapshot = decodeLoadSnapshot(
    Uint8Array.fromHex("82a764705f72616e6b01a67175657565739401020304"),
  );
  assert.deepEqual(
    snapshot,
    createLoadSnapshot({
      dpRank: 1,
      queues: { waiting: 1, grammar: 2, paused: 3, retracted: 4, preallocReady: 0, missing: 1 },
    }),
  );
});

Deno.test("five queue counts lack nothing, in the shortest head too", () => {
  const snapshot = decodeLoadSnapshot(
    Uint8Array.fromHex("82a764705f72616e6b01a6717565756573950102030405"),
  );
  assert.deepEqual(
    snapshot,
    createLoadSnapshot({
      dpRank: 1,
      queues: { waiting: 1, grammar: 2, paused: 3, retracted: 4, preallocReady: 5 },
    }),
  );
});
