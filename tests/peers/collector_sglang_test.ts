// deno-lint-ignore-file no-console -- the reason for a transport that is left out is printed
/** SGLang's own writers push to our collector, and SGLang's own reader reads the file it fills. */

import assert from "node:assert/strict";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { MOMENTS, stepLoad } from "../support/checked_loads.ts";
import { Collector, loadOf, LOOPBACK } from "../support/collector.ts";
import { TempIpc } from "../support/zmq.ts";
import { until } from "../support/wait.ts";
import { peerTests } from "./peer_tests.ts";
import type { PythonPeer } from "./peer.ts";
import type { PeerWriter } from "./peer_handles.ts";

const test = await peerTests();
const SLOT_SIZE = 16_384;

async function openWriters(
  peer: PythonPeer,
  endpoint: string,
  dpSize: number,
): Promise<PeerWriter[]> {
  return await Promise.all(
    Array.from({ length: dpSize }, (_, dpRank) => peer.openZmqWriter(endpoint, { dpSize, dpRank })),
  );
}

/** A load in which every section is there, different in each rank and step. */
function fullLoad(dpRank: number, step: number): LoadSnapshot {
  return createLoadSnapshot({
    ...stepLoad(step, dpRank),
    tokenUsage: 0.5 + step / 1000,
    genThroughput: 1000.25 + dpRank,
    memory: { weightGb: 14.5, tokenCapacity: 500_000 + dpRank },
    speculative: { acceptLength: 2.5, acceptRate: 0.75 },
    lora: { slotsUsed: step % 4, slotsTotal: 4, utilization: 0.25 },
    disaggregation: { mode: "decode", kvTransferSpeedGbS: 1.5 },
    queues: { waiting: step, retracted: dpRank },
  });
}

/** Has every rank write, and compares what each side reads. */
async function assertHeard(peer: PythonPeer, endpoint: string, dpSize: number): Promise<void> {
  await using collector = await Collector.open({ endpoint, dpSize });
  const { reader, file } = collector;
  const writers = await openWriters(peer, reader.endpoint, dpSize);
  const theirs = await peer.openReader(file.path, { dpSize });
  for (const step of [1, 2, 3]) {
    const loads = writers.map((_, dpRank) => fullLoad(dpRank, step));
    await Promise.all(writers.map((writer, dpRank) => writer.write(loads[dpRank]!)));
    await until(
      `all ${dpSize} ranks are at step ${step}`,
      () => reader.readAll().filter((load) => load.numRunningReqs === step).length === dpSize,
    );
    assert.deepEqual(reader.readAll(), loads);
    assert(reader.health().every(({ state }) => state === "live"));
    assert.deepEqual((await theirs.readAll()).map((read) => read.snapshot), loads);
    // The sender's bytes, unchanged.
    const bytes = file.bytes();
    const view = new DataView(bytes.buffer);
    for (const [dpRank, sent] of (await peer.encode(loads)).entries()) {
      const at = 12 + dpRank * SLOT_SIZE;
      assert.deepEqual(bytes.subarray(at + 4, at + 4 + view.getUint32(at, true)), sent);
    }
  }
  const { received, published, superseded } = reader.stats();
  assert.equal(published + superseded, received);
  await Promise.all([...writers, theirs].map((handle) => handle.close()));
}

const ipv6 = canBindIpv6();
if (!ipv6) console.error("left out: IPv6, for this machine has no address [::1]");

for (const dpSize of [1, 8, 64]) {
  test(`${dpSize} of SGLang's ranks are heard over TCP`, async (peer) => {
    await assertHeard(peer, LOOPBACK, dpSize);
  });
  test(`${dpSize} of SGLang's ranks are heard over ipc`, async (peer) => {
    using ipc = new TempIpc();
    await assertHeard(peer, ipc.endpoint, dpSize);
  });
  if (ipv6) {
    test(`${dpSize} of SGLang's ranks are heard over IPv6`, async (peer) => {
      await assertHeard(peer, "tcp://[::1]:*", dpSize);
    });
  }
}

test("SGLang's reader finds every snapshot whole while the collector writes", async (peer) => {
  const dpSize = 8;
  await using collector = await Collector.open({ dpSize });
  const writers = await openWriters(peer, collector.reader.endpoint, dpSize);
  const loops = await Promise.all(
    writers.map((writer, dpRank) =>
      writer.writeLoop(loadOf(dpRank, 0), { moments: MOMENTS, seconds: 2, intervalUs: 2000 })
    ),
  );
  const theirs = await peer.openReader(collector.file.path, { dpSize });
  const last = new Map<number, number>();
  let reads = 0;
  for (const end = performance.now() + 1_800; performance.now() < end;) {
    for (const { snapshot } of await theirs.readAll()) {
      const { dpRank, numRunningReqs: step, numWaitingReqs, numTotalTokens } = snapshot;
      assert.deepEqual([numWaitingReqs, numTotalTokens], [step, step]);
      assert.equal(snapshot.decodeMoments?.length ?? 0, step % (MOMENTS + 1));
      assert(step >= (last.get(dpRank) ?? 0), "it went back");
      last.set(dpRank, step);
    }
    reads++;
  }
  const results = await Promise.all(loops.map((loop) => loop.result()));
  await until(
    "the last step of each rank is readable",
    () => results.every(({ steps }, dpRank) => collector.numberOf(dpRank) === steps),
  );
  assert(reads > 10 && last.size === dpSize, `${reads} reads of ${last.size} ranks`);
  await Promise.all([...writers, theirs].map((handle) => handle.close()));
});

function canBindIpv6(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}
