// deno-lint-ignore-file no-console -- the reason for a test that is left out is printed
/** Our writer and SGLang's own collector. */

import assert from "node:assert/strict";
import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import {
  type ReaderCaller,
  type ServerArgs,
  shouldUseZmq,
  zmqAddressFor,
  zmqReaderOwner,
} from "../../src/topology.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { HANG_MS, sleep } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";
import type { PeerZmqReader } from "./peer_handles.ts";
import { peerTests } from "./peer_tests.ts";
import { TempShm } from "./temp_shm.ts";

const peerTest = await peerTests();

const LOOPBACK = "tcp://127.0.0.1:*";

/** A load with all sections; `n` tells one from another. */
function loadOf(dpRank: number, n: number): LoadSnapshot {
  return createLoadSnapshot({
    timestamp: 1700000000 + n / 8,
    dpRank,
    numRunningReqs: n,
    numTotalTokens: n * 100_000,
    tokenUsage: n / 1024,
    memory: { weightGb: 15.5, kvCacheGb: 40, graphGb: 1.25, tokenCapacity: 1_000_000 },
    speculative: { acceptLength: 2.5, acceptRate: 0.75 },
    lora: { slotsUsed: 1, slotsTotal: 4, utilization: 0.25 },
    disaggregation: { mode: "decode", decodeTransferQueueReqs: n },
    queues: { waiting: n, grammar: 0, paused: 0, retracted: 1, preallocReady: 2 },
  });
}

/** Reads a rank until it has a load that fits. */
async function readUntil(
  reader: PeerZmqReader,
  dpRank: number,
  fits: (load: LoadSnapshot) => boolean,
) {
  const deadline = performance.now() + HANG_MS;
  for (;;) {
    const read = await reader.read(dpRank);
    if (read !== null && fits(read.snapshot)) return read;
    assert.ok(performance.now() < deadline, `waited in vain for rank ${dpRank}`);
    await sleep(5);
  }
}

for (const kind of ["TCP", "IPv6", "ipc"] as const) {
  const ignore = kind === "IPv6" && !hasIpv6();
  if (ignore) console.error("left out: SGLang's collector over IPv6: this machine has none");
  else {
    peerTest(`SGLang's collector reads what our writer sends over ${kind}`, async (peer) => {
      using shm = new TempShm();
      using ipc = new TempIpc();
      const endpoint = { TCP: LOOPBACK, IPv6: "tcp://[::1]:*", ipc: ipc.endpoint }[kind];
      const reader = await peer.openZmqReader(endpoint, shm.path, { dpSize: 3 });
      using writer = new ZmqLoadSnapshotWriter(reader.endpoint, { dpSize: 3, dpRank: 1 });
      for (const n of [1, 127, 70_000]) {
        const load = loadOf(1, n);
        assert.equal(writer.write(load), "sent");
        const read = await readUntil(reader, 1, ({ numRunningReqs }) => numRunningReqs === n);
        assert.deepEqual(read.snapshot, load);
        assert.deepEqual(read.reencoded, encodeLoadSnapshot(load));
      }
      assert.deepEqual([await reader.read(0), await reader.read(2)], [null, null]);
      await reader.close();
    });
  }
}

peerTest("sixty-four writers reach one collector", async (peer) => {
  using shm = new TempShm();
  const dpSize = 64;
  const reader = await peer.openZmqReader(LOOPBACK, shm.path, { dpSize });
  using stack = new DisposableStack();
  for (let dpRank = 0; dpRank < dpSize; dpRank++) {
    const options = { dpSize, dpRank };
    const writer = stack.use(new ZmqLoadSnapshotWriter(reader.endpoint, options));
    writer.write(loadOf(dpRank, dpRank + 1));
  }
  for (let dpRank = 0; dpRank < dpSize; dpRank++) {
    const { snapshot } = await readUntil(reader, dpRank, () => true);
    assert.equal(snapshot.numRunningReqs, dpRank + 1);
  }
  assert.equal((await reader.readAll()).length, dpSize);
  await reader.close();
});

peerTest("a flood ends with the newest load, and the writer never waits", async (peer) => {
  using shm = new TempShm();
  const reader = await peer.openZmqReader(LOOPBACK, shm.path, { dpSize: 1 });
  using writer = new ZmqLoadSnapshotWriter(reader.endpoint, { dpSize: 1, dpRank: 0 });
  for (let n = 1; n <= 20_000; n++) assert.equal(writer.write(loadOf(0, n)), "sent");
  const { snapshot } = await readUntil(
    reader,
    0,
    ({ numRunningReqs }) => numRunningReqs === 20_000,
  );
  assert.equal(snapshot.numTotalTokens, 2_000_000_000);
  await reader.close();
});

peerTest("a collector that comes after its writer, and again, gets the newest", async (peer) => {
  using ipc = new TempIpc();
  using writer = new ZmqLoadSnapshotWriter(ipc.endpoint, { dpSize: 1, dpRank: 0 });
  for (const round of [1, 2, 3]) {
    using shm = new TempShm();
    writer.write(loadOf(0, round * 10));
    const reader = await peer.openZmqReader(ipc.endpoint, shm.path, { dpSize: 1 });
    const read = readUntil(reader, 0, ({ numRunningReqs }) => numRunningReqs === round * 10 + 1);
    // What was sent into the connection that has ended may be lost; the next one is not.
    writer.write(loadOf(0, round * 10 + 1));
    const timer = setInterval(() => writer.write(loadOf(0, round * 10 + 1)), 20);
    try {
      await read;
    } finally {
      clearInterval(timer);
    }
    await reader.close();
  }
});

peerTest("SGLang comes to the same transport, owner and address", async (peer) => {
  const callers: readonly ReaderCaller[] = [
    "DataParallelController",
    "TokenizerManager",
    "MultiTokenizerRouter",
  ];
  for (const { useZmq, ...args } of combinations()) {
    const { enableDpAttention: attnDpEnabled, dpSize: numDpRanks, ...same } = args;
    const theirs = { ...same, attnDpEnabled, numDpRanks, useZmq };
    const environment = { SGLANG_LOAD_SNAPSHOT_USE_ZMQ: useZmq ? "1" : "0" };
    assert.equal(shouldUseZmq(args, environment), await peer.shouldUseZmq(theirs));
    for (const caller of callers) {
      const owns = await peer.zmqReaderOwner(theirs, caller);
      assert.equal(zmqReaderOwner(args, caller, environment), owns, JSON.stringify(theirs));
    }
  }
  for (const instanceId of ["4c00ec5647f7", "", "a/b", "modèle-日本 №½", "x".repeat(60)]) {
    assert.equal(zmqAddressFor({ instanceId }), await peer.zmqAddrFor({ instanceId }));
    const named = { instanceId, loadCollectorIpcName: "tcp://10.0.0.1:5005" };
    assert.equal(zmqAddressFor(named), await peer.zmqAddrFor(named));
  }
});

/** Every combination of the arguments that decide. */
function* combinations(): Generator<Required<ServerArgs> & { readonly useZmq: boolean }> {
  const flags = [false, true];
  const methods = ["round_robin", "total_requests", "Total_Tokens", "follow_bootstrap_room"];
  for (const enableDpAttention of flags) {
    for (const nnodes of [1, 2]) {
      for (const nodeRank of [0, 1]) {
        for (const dpSize of [1, 2, 8]) {
          for (const loadBalanceMethod of methods) {
            for (const tokenizerWorkerNum of [1, 2]) {
              for (const useZmq of flags) {
                const nodes = { enableDpAttention, nnodes, nodeRank };
                yield { ...nodes, dpSize, loadBalanceMethod, tokenizerWorkerNum, useZmq };
              }
            }
          }
        }
      }
    }
  }
}

function hasIpv6(): boolean {
  return Deno.networkInterfaces().some(({ address }) => address === "::1");
}
