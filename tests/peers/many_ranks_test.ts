/** Groups and slots that are larger than usual, together with SGLang's own module. */

import assert from "node:assert/strict";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Collector, loadOf, payloadOf } from "../support/collector.ts";
import { SlotPath } from "../support/slot_path.ts";
import { until } from "../support/wait.ts";
import { peerTests } from "./peer_tests.ts";

const RANKS = 1024;
const LARGE_SLOT = 512 * 1024;

const test = await peerTests();

test("1,024 ranks, a few of them SGLang's, are read alike by both", async (peer) => {
  using file = new SlotPath();
  const theirs = [0, 511, 1023];
  for (const dpRank of theirs) {
    const writer = await peer.openWriter(file.path, { dpSize: RANKS, dpRank });
    await writer.write(loadOf(dpRank, dpRank + 1));
  }
  using reader = new ShmLoadSnapshotReader(file.path);
  for (let dpRank = 0; dpRank < RANKS; dpRank++) {
    if (theirs.includes(dpRank)) continue;
    using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: RANKS, dpRank });
    writer.write(loadOf(dpRank, dpRank + 1));
  }
  const ours = reader.readAll();
  assert.deepEqual(
    ours.map(({ numRunningReqs }) => numRunningReqs),
    Array.from({ length: RANKS }, (_, dpRank) => dpRank + 1),
  );
  const their = await peer.openReader(file.path, { dpSize: RANKS });
  assert.deepEqual((await their.readAll()).map(({ snapshot }) => snapshot), ours);
});

test("SGLang's reader reads what our collector keeps of 1,024 ranks", async (peer) => {
  await using collector = await Collector.open({ dpSize: RANKS });
  const { reader } = collector;
  using push = new PushSocket(reader.endpoint, { sendHighWaterMark: 0 });
  for (let dpRank = 0; dpRank < RANKS; dpRank++) push.send(payloadOf(dpRank, 7));
  await until("all are read", () => reader.readAll().length === RANKS);
  const their = await peer.openReader(reader.path, { dpSize: RANKS });
  const loads = await their.readAll();
  assert.deepEqual(loads.map(({ snapshot }) => snapshot), reader.readAll());
});

test("slots of 512 KiB of ours are read by SGLang's reader, which takes any size", async (peer) => {
  using file = new SlotPath();
  const options = { dpSize: 3, slotSize: LARGE_SLOT };
  const loads = [0, 1, 2].map((dpRank) =>
    createLoadSnapshot({
      dpRank,
      timestamp: dpRank + 1,
      decodeMoments: new Array<number>(50_000).fill(dpRank + 0.5),
    })
  );
  for (const [dpRank, load] of loads.entries()) {
    using writer = new ShmLoadSnapshotWriter(file.path, { ...options, dpRank });
    writer.write(load);
  }
  const their = await peer.openReader(file.path, { dpSize: 3 });
  assert.deepEqual((await their.readAll()).map(({ snapshot }) => snapshot), loads);
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.deepEqual(reader.readAll(), loads);
});

test("a collector with slots of 512 KiB keeps long loads, and SGLang reads them", async (peer) => {
  await using collector = await Collector.open({ dpSize: 2, slotSize: LARGE_SLOT });
  const { reader } = collector;
  const writer = await peer.openZmqWriter(reader.endpoint, { dpSize: 2, dpRank: 1 });
  const load = createLoadSnapshot({
    dpRank: 1,
    timestamp: 1,
    numRunningReqs: 5,
    decodeMoments: new Array<number>(40_000).fill(0.5),
  });
  await until("it is heard", () => {
    void writer.write(load);
    return reader.read(1) !== null;
  }, 50);
  assert.deepEqual(reader.read(1), load);
  const their = await peer.openReader(reader.path, { dpSize: 2 });
  assert.deepEqual((await their.read(1))?.snapshot, load);
});
