/** Collectors that are killed: what they leave behind is taken over, and their writers go on. */

import assert from "node:assert/strict";
import { EndpointInUseError } from "../../src/errors.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { Child } from "../support/child.ts";
import { Collector, loadOf } from "../support/collector.ts";
import { matches } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";

const SCENARIOS = new URL("./fixtures/collector_scenarios.ts", import.meta.url).href;
const LOOPBACK = "tcp://127.0.0.1:*";

interface Seen {
  readonly states: readonly string[];
  readonly numbers: readonly number[];
}

/** Starts a collector in a process of its own; tells where it is bound. */
async function startCollector(endpoint: string, path: string) {
  const child = Child.deno(["--allow-ffi", "--allow-read", SCENARIOS, "watches", endpoint, path]);
  try {
    const bound = (await child.line()).replace("open ", "");
    return { child, bound, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
  } catch (error) {
    await child[Symbol.asyncDispose]();
    throw error;
  }
}

/** Writes until the collector has seen it. */
async function isHeard(child: Child, writer: ZmqLoadSnapshotWriter, number: number) {
  for (;;) {
    writer.write(loadOf(writer.dpRank, number));
    const seen = await child.ask<Seen>("look");
    if (seen.numbers.includes(number)) return seen;
    await sleep(10);
  }
}

for (const transport of ["ipc", "tcp"] as const) {
  Deno.test(`what a killed collector on ${transport} leaves is taken over by the next`, async () => {
    using ipc = new TempIpc();
    using file = new SlotPath();
    let endpoint = transport === "ipc" ? ipc.endpoint : LOOPBACK;
    let writer: ZmqLoadSnapshotWriter | null = null;
    try {
      for (let round = 1; round <= 3; round++) {
        await using collector = await startCollector(endpoint, file.path);
        endpoint = collector.bound;
        // The same writer finds each of them.
        writer ??= new ZmqLoadSnapshotWriter(endpoint, { dpSize: 2, dpRank: 0 });
        if (round > 1) {
          const { states, numbers } = await collector.child.ask<Seen>("look");
          assert.deepEqual([...numbers].slice(0, 1), [round - 1], "the last value is still there");
          assert.match(states[0]!, /^(stale|live)$/);
        }
        await isHeard(collector.child, writer, round);
        collector.child.kill("SIGKILL");
        assert.equal((await collector.child.status).signal, "SIGKILL");
        const left = transport === "ipc" ? [ipc.path, ipc.lockPath] : [];
        assert.deepEqual(matches(`${ipc.path}*`), left);
        assert.deepEqual(file.all(), [file.path]);
      }
      await using last = await Collector.open({ endpoint, path: file.path });
      assert.equal(last.numberOf(0), 3);
      writer!.write(loadOf(0, 4));
      await last.shows(0, 4);
    } finally {
      writer?.close();
    }
    assert.deepEqual(matches(`${ipc.path}*`), []);
  });
}

Deno.test("a collector that stands still keeps its endpoint, and goes on where it was", async () => {
  using ipc = new TempIpc();
  using file = new SlotPath();
  await using collector = await startCollector(ipc.endpoint, file.path);
  using writer = new ZmqLoadSnapshotWriter(ipc.endpoint, { dpSize: 2, dpRank: 1 });
  await isHeard(collector.child, writer, 1);
  collector.child.kill("SIGSTOP");
  using other = new SlotPath();
  await assert.rejects(
    Collector.open({ endpoint: ipc.endpoint, path: other.path }),
    EndpointInUseError,
  );
  for (let n = 2; n <= 5000; n++) assert.equal(writer.write(loadOf(1, n)), "sent");
  collector.child.kill("SIGCONT");
  for (;;) {
    const { numbers } = await collector.child.ask<Seen>("look");
    if (numbers[0] === 5000) break;
    await sleep(10);
  }
  assert.equal((await collector.child.end()).code, 0);
});

Deno.test("a collector that is killed with its slot file's lock leaves it free", async () => {
  using file = new SlotPath();
  for (let round = 0; round < 5; round++) {
    await using collector = await startCollector(LOOPBACK, file.path);
    using writer = new ZmqLoadSnapshotWriter(collector.bound, { dpSize: 2, dpRank: 0 });
    // Somewhere in the middle of it.
    const until = performance.now() + 30;
    while (performance.now() < until) {
      writer.write(loadOf(0, round));
      if (Math.random() < 0.1) await sleep(0);
    }
    collector.child.kill("SIGKILL");
    await collector.child.status;
    assert.equal(file.isFree(), true);
  }
  await using last = await Collector.open({ path: file.path });
  assert.notEqual(last.reader.health()[0]?.state, "corrupt");
  using writer = new ZmqLoadSnapshotWriter(last.reader.endpoint, { dpSize: 2, dpRank: 0 });
  writer.write(loadOf(0, 99));
  await last.shows(0, 99);
});
