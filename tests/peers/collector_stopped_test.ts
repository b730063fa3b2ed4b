/** A process of SGLang's that is stopped with the slot file's lock: the collector goes on draining. */

import assert from "node:assert/strict";
import { PushSocket } from "../../src/zmq/socket.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { Collector, loadOf, payloadOf } from "../support/collector.ts";
import { until } from "../support/wait.ts";
import type { PythonPeer } from "./peer.ts";
import { peerTests } from "./peer_tests.ts";

const test = await peerTests();
const MESSAGES = 20_000;

async function stop(peer: PythonPeer): Promise<void> {
  peer.kill("SIGSTOP");
  await until(
    "the process is stopped",
    () => /\) T/.test(Deno.readTextFileSync(`/proc/${peer.pid}/stat`)),
  );
}

for (const [mode, after] of [["exclusive", "SIGCONT"], ["shared", "SIGKILL"]] as const) {
  test(`with a process stopped that holds the ${mode} lock, all is drained; ${after} ends it`, async (peer) => {
    await using collector = await Collector.open();
    const { reader } = collector;
    using writer = new ZmqLoadSnapshotWriter(reader.endpoint, { dpSize: 2, dpRank: 1 });
    writer.write(loadOf(1, 1));
    await collector.shows(1, 1);
    const lock = await peer.holdLock(collector.file.path, mode);
    await stop(peer);

    using push = new PushSocket(reader.endpoint, { sendHighWaterMark: 0 });
    for (let n = 1; n <= MESSAGES; n++) push.send(payloadOf(0, n));
    await collector.counts("received", 1 + MESSAGES);
    await collector.counts("lockMisses", 5);
    assert.equal(reader.stats().superseded, MESSAGES - 1);
    assert.equal(await reader.poll({ timeoutMs: 100 }), false);
    assert.deepEqual([collector.numberOf(0), collector.numberOf(1)], [null, 1]);
    assert.equal(reader.health()[1]?.state, "live");

    peer.kill(after);
    if (after === "SIGCONT") await lock.release();
    await collector.shows(0, MESSAGES);
    assert.equal(await reader.poll(), true);
    assert.deepEqual([reader.stats().published, reader.stats().fileFaults], [2, 0]);
  });
}

test("a reader of SGLang's that locks for each read does not hold the collector up", async (peer) => {
  await using collector = await Collector.open();
  const { reader } = collector;
  using writer = new ZmqLoadSnapshotWriter(reader.endpoint, { dpSize: 2, dpRank: 0 });
  const theirs = await peer.openReader(collector.file.path, { dpSize: 2 });
  const loops = [await theirs.readLoop(), await theirs.readLoop(), await theirs.readLoop()];
  for (let n = 1; n <= 300; n++) {
    writer.write(loadOf(0, n));
    await collector.shows(0, n);
  }
  await Promise.all(loops.map((loop) => loop.stop()));
  for (const loop of loops) assert((await loop.result()).steps > 0);
  await theirs.close();
});
