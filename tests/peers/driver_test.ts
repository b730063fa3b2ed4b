/** The driver against SGLang's own module: what other peer tests rely on. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { type DriverSnapshot, Float, NumpyScalar } from "./driver_values.ts";
import { peerTests } from "./peer_tests.ts";
import { TempShm } from "./temp_shm.ts";

const test = await peerTests();

const hex = (bytes: Uint8Array) => bytes.toHex();

test("SGLang derives the slot file's path from the engine's name", async (peer) => {
  assert.deepEqual(
    await peer.shmPathFor(["4c00ec5647f7", "default", "", "ipc:///tmp/tmpabc123"]),
    [
      "/dev/shm/sglang_loads_4c00ec5647f7_b4fb99a3.shm",
      "/dev/shm/sglang_loads_default_0ffc6dbe.shm",
      "/dev/shm/sglang_loads_default_36e9d246.shm",
      "/dev/shm/sglang_loads_tmpabc123_3c574a91.shm",
    ],
  );
});

test("SGLang lays out a header of 12 bytes and slots of 16 KiB", async (peer) => {
  const { magic, ...rest } = await peer.constants();
  assert.equal(new TextDecoder().decode(magic), "SLNS");
  assert.deepEqual(rest, { version: 2, header_size: 12, slot_size: 16_384 });
  assert.equal(await peer.fileSize(2), 32_780);
  assert.equal(await peer.fileSize(3, 100), 312);
  assert.equal(await peer.slotOffset(1), 16_396);
  assert.equal(await peer.slotOffset(2, 100), 212);
});

test("msgspec omits defaults, and what it computed is not one", async (peer) => {
  // The map's header is of 3 bytes however few keys follow: it is chosen by the struct's 23 fields.
  assert.deepEqual(
    (await peer.encode([
      createLoadSnapshot(),
      createLoadSnapshot({ dpRank: 1 }),
      createLoadSnapshot({ tokenUsage: -0 }),
      { token_usage: new Float(0) },
      { token_usage: 5 },
      {
        num_running_reqs: new NumpyScalar("int64", 0),
        token_usage: new NumpyScalar("float32", 0.5),
      },
    ])).map(hex),
    [
      "de0000",
      "de0001a764705f72616e6b01",
      "de0001ab746f6b656e5f7573616765cb8000000000000000",
      "de0001ab746f6b656e5f7573616765cb0000000000000000",
      "de0001ab746f6b656e5f757361676505",
      // A zero of numpy is not Python's zero, so it is written as well.
      "de0002b06e756d5f72756e6e696e675f7265717300ab746f6b656e5f7573616765cb3fe0000000000000",
    ],
  );
});

test("SGLang's reader wants all five queue counts", async (peer) => {
  const [four, five, trailing, empty] = await peer.decode([
    "82a764705f72616e6b01a67175657565739401020304",
    "82a764705f72616e6b01a6717565756573950102030405",
    "80c0",
    "",
  ].map((payload) => Uint8Array.fromHex(payload)));
  assert(four?.ok === false && four.type === "ValidationError");
  assert(five?.ok);
  assert.deepEqual(
    five.snapshot,
    createLoadSnapshot({
      dpRank: 1,
      queues: { waiting: 1, grammar: 2, paused: 3, retracted: 4, preallocReady: 5 },
    }),
  );
  assert(trailing?.ok === false && trailing.type === "DecodeError");
  assert(empty?.ok === false);
});

test("snapshots cross to Python and back without loss", async (peer) => {
  const snapshots = [
    createLoadSnapshot(),
    createLoadSnapshot({
      timestamp: 1_764_547_200.123456,
      dpRank: 7,
      numRunningReqs: Number.MAX_SAFE_INTEGER,
      totalPrefillBusyUs: Number.MIN_SAFE_INTEGER,
      tokenUsage: -0,
      genThroughput: Infinity,
      cacheHitRate: NaN,
      utilization: -Infinity,
      decodeMoments: [0, 5e-324, 1.7976931348623157e308, NaN, 3],
      memory: { weightGb: 0.1, kvCacheGb: 2, graphGb: 0, tokenCapacity: 500_000 },
      speculative: { acceptLength: 2.5, acceptRate: 0.8 },
      lora: { slotsUsed: 1, slotsTotal: 8, utilization: 0.125 },
      disaggregation: { mode: "décode 🚀", kvTransferSpeedGbS: 12.5, decodeRetractedQueueReqs: 3 },
      queues: { waiting: 1, grammar: 2, paused: 3, retracted: 4, preallocReady: 5 },
    }),
  ];
  const decoded = await peer.decode(await peer.encode(snapshots));
  assert.deepEqual(decoded.map((one) => one.ok && one.snapshot), snapshots);
});

test("integers beyond 2^53 come back exactly", async (peer) => {
  const snapshot: DriverSnapshot = { num_used_tokens: 2n ** 63n, num_total_tokens: -(2n ** 63n) };
  const [payload] = await peer.encode([snapshot]);
  assert(payload);
  assert.match(hex(payload), /cf8000000000000000.*d38000000000000000$/);
});

test("SGLang's JSON holds the sections that were asked for", async (peer) => {
  const snapshot = createLoadSnapshot({ dpRank: 2, speculative: { acceptLength: 2.5 } });
  const [all, core, spec, unknown] = await peer.toDict([
    [snapshot, null],
    [snapshot, ["core"]],
    [snapshot, ["spec"]],
    [snapshot, ["gpu"]],
  ]);
  assert(all?.ok && core?.ok && spec?.ok);
  assert.deepEqual(all.dict, spec.dict);
  assert.deepEqual(all.dict, {
    ...core.dict,
    speculative: { accept_length: 2.5, accept_rate: 0 },
  });
  assert.equal(Object.keys(core.dict).length, 18);
  assert(unknown?.ok === false);
  assert.match(unknown.error, /^Invalid include sections: \{'gpu'\}\. Valid options: \['all'/);
});

test("what SGLang writes, SGLang reads", async (peer) => {
  using file = new TempShm();
  const writer = await peer.openWriter(file.path, { dpSize: 2, dpRank: 1 });
  const reader = await peer.openReader(file.path, { dpSize: 2 });
  assert.equal(hex((await Deno.readFile(file.path)).subarray(0, 12)), "534c4e530200020000400000");
  assert.deepEqual((await reader.read(1))?.snapshot, createLoadSnapshot({ dpRank: 1 }));
  assert.equal(await reader.read(0), null);

  const snapshot = createLoadSnapshot({ dpRank: 1, numRunningReqs: 3, tokenUsage: 0.25 });
  await writer.write(snapshot);
  assert.deepEqual((await reader.readAll()).map((one) => one.snapshot), [snapshot]);
  await writer.writeRaw(Uint8Array.of(0xc1));
  assert.equal(await reader.read(1), null);

  await writer.close();
  await reader.close();
});

test("an exception of Python's keeps its type", async (peer) => {
  await assert.rejects(
    peer.openWriter("/dev/shm/loadslots_test_unused.shm", { dpSize: 2, dpRank: 2 }),
    { name: "PeerError", type: "ValueError", message: /invalid dp_rank=2 for dp_size=2/ },
  );
  await assert.rejects(
    peer.openWriter("/dev/shm", { dpSize: 2, dpRank: 0 }),
    { name: "PeerError", type: "IsADirectoryError" },
  );
});

test("what SGLang pushes over ZeroMQ, SGLang reads", async (peer) => {
  using file = new TempShm();
  const reader = await peer.openZmqReader("tcp://127.0.0.1:*", file.path, { dpSize: 2 });
  assert.match(reader.endpoint, /^tcp:\/\/127\.0\.0\.1:\d+$/);
  const writer = await peer.openZmqWriter(reader.endpoint, { dpSize: 2, dpRank: 1 });
  const snapshot = createLoadSnapshot({ dpRank: 1, numRunningReqs: 3 });
  await writer.write(snapshot);
  let read = await reader.read(1);
  // The message crosses a connection that is still being made.
  for (let tries = 0; read === null && tries < 100; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    read = await reader.read(1);
  }
  assert.deepEqual(read?.snapshot, snapshot);
  await reader.poll();
  await writer.close();
  await reader.close();
});

test("SGLang's rules for ZeroMQ follow the server's arguments", async (peer) => {
  assert.equal(await peer.shouldUseZmq({}), false);
  assert.equal(await peer.shouldUseZmq({ attnDpEnabled: true, nnodes: 2 }), true);
  assert.equal(await peer.shouldUseZmq({ useZmq: true }), true);
  const dispatching = { useZmq: true, numDpRanks: 2, loadBalanceMethod: "TOTAL_TOKENS" };
  assert.equal(await peer.zmqReaderOwner(dispatching, "DataParallelController"), true);
  assert.equal(await peer.zmqReaderOwner(dispatching, "TokenizerManager"), false);
  const several = { useZmq: true, tokenizerWorkerNum: 2 };
  assert.equal(await peer.zmqReaderOwner(several, "MultiTokenizerRouter"), true);
  assert.equal(
    await peer.zmqAddrFor({ instanceId: "default" }),
    "ipc:///tmp/sglang_load_collector_default_0ffc6dbe.sock",
  );
  assert.equal(
    await peer.zmqAddrFor({ instanceId: "default", loadCollectorIpcName: "tcp://[::1]:30006" }),
    "tcp://[::1]:30006",
  );
});
