/** Writers that are there first, come later, restart; and a collector that restarts under them. */

import assert from "node:assert/strict";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { Collector, loadOf } from "../support/collector.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep, until } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";
import { PythonPeer } from "./peer.ts";
import { peerTests } from "./peer_tests.ts";

const test = await peerTests();
const FOUR = 4;

/** A TCP endpoint that nobody is bound to, for the moment. */
async function freeEndpoint(): Promise<string> {
  await using collector = await Collector.open();
  return collector.reader.endpoint;
}

for (const transport of ["tcp", "ipc"]) {
  test(`writers that were there before a collector on ${transport} are heard`, async (peer) => {
    using ipc = new TempIpc();
    const endpoint = transport === "ipc" ? ipc.endpoint : await freeEndpoint();
    const theirs = await peer.openZmqWriter(endpoint, { dpSize: 2, dpRank: 0 });
    using ours = new ZmqLoadSnapshotWriter(endpoint, { dpSize: 2, dpRank: 1 });
    for (let n = 1; n <= 50; n++) {
      await theirs.write(loadOf(0, n));
      ours.write(loadOf(1, n));
    }
    await using collector = await Collector.open({ endpoint });
    // Of what they could not send they kept the newest.
    await collector.shows(0, 50);
    await collector.shows(1, 50);
    await theirs.close();
  });
}

test("writers may come while others push, and go without disturbing them", async (peer) => {
  await using collector = await Collector.open({ dpSize: FOUR });
  const { endpoint } = collector.reader;
  const steady = await peer.openZmqWriter(endpoint, { dpSize: FOUR, dpRank: 0 });
  const loop = await steady.writeLoop(loadOf(0, 0), { intervalUs: 1000 });
  for (let round = 1; round <= 20; round++) {
    const before = collector.numberOf(0) ?? 0;
    using ours = new ZmqLoadSnapshotWriter(endpoint, { dpSize: FOUR, dpRank: 1 + round % 3 });
    ours.write(loadOf(1 + round % 3, round));
    await collector.shows(1 + round % 3, round);
    await until("the steady one goes on", () => collector.numberOf(0)! > before);
  }
  await loop.stop();
  const { steps } = await loop.result();
  await collector.shows(0, steps);
});

test("a writer that restarts a hundred times is heard each time", async (peer) => {
  await using collector = await Collector.open();
  const { endpoint } = collector.reader;
  for (let n = 1; n <= 100; n++) {
    const theirs = await peer.openZmqWriter(endpoint, { dpSize: 2, dpRank: 0 });
    using ours = new ZmqLoadSnapshotWriter(endpoint, { dpSize: 2, dpRank: 1 });
    await theirs.write(loadOf(0, n));
    ours.write(loadOf(1, n));
    await collector.shows(0, n);
    await collector.shows(1, n);
    await theirs.close();
  }
  const { received, published, superseded } = collector.reader.stats();
  assert.deepEqual([received, published + superseded], [200, 200]);
});

test("a writer's process that is killed and comes back is heard again", async () => {
  await using collector = await Collector.open();
  for (let n = 1; n <= 4; n++) {
    await using peer = await PythonPeer.start();
    const writer = await peer.openZmqWriter(collector.reader.endpoint, { dpSize: 2, dpRank: 0 });
    await writer.write(loadOf(0, n));
    await collector.shows(0, n);
    peer.kill("SIGKILL");
    assert.equal((await peer.status).signal, "SIGKILL");
  }
});

for (const transport of ["tcp", "ipc"]) {
  test(`a collector on ${transport} that restarts finds its running writers again`, async (peer) => {
    using ipc = new TempIpc();
    using file = new SlotPath();
    const endpoint = transport === "ipc" ? ipc.endpoint : await freeEndpoint();
    const writers = await Promise.all(
      Array.from(
        { length: FOUR },
        (_, dpRank) => peer.openZmqWriter(endpoint, { dpSize: FOUR, dpRank }),
      ),
    );
    const loops = await Promise.all(
      writers.map((writer, dpRank) => writer.writeLoop(loadOf(dpRank, 0), { intervalUs: 2000 })),
    );
    const last = Array<number>(FOUR).fill(0);
    for (let round = 1; round <= 10; round++) {
      await using collector = await Collector.open({ endpoint, path: file.path, dpSize: FOUR });
      await until(
        `all are heard in round ${round}`,
        () => collector.reader.health().every(({ state }) => state === "live"),
      );
      for (const { dpRank, numRunningReqs } of collector.reader.readAll()) {
        assert(numRunningReqs >= last[dpRank]!, `rank ${dpRank} went back`);
        last[dpRank] = numRunningReqs;
      }
      if (round % 3 === 0) await sleep(50);
    }
    await using collector = await Collector.open({ endpoint, path: file.path, dpSize: FOUR });
    await until(
      "all are heard at last",
      () => collector.reader.health().every(({ state }) => state === "live"),
    );
    // What they sent to a collector that was about to close went with it.
    await Promise.all(loops.map((loop) => loop.stop()));
    const results = await Promise.all(loops.map((loop) => loop.result()));
    for (const [dpRank, { steps }] of results.entries()) await collector.shows(dpRank, steps);
  });
}
