/** A collector whose slot file is swept away: its own reader is told of the new one at once. */

import assert from "node:assert/strict";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Collector, payloadOf } from "../support/collector.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep, until } from "../support/wait.ts";

/** The collector looks after its file once in each tick of the kernel's coarse clock. */
const TICK_MS = 20;
/** Readers look at their path too, but only now and then: some rounds fall in between. */
const ROUNDS = 10;

Deno.test("after a poll, what came is readable although the file had to be restored", async () => {
  await using collector = await Collector.open();
  const { reader, file } = collector;
  using push = new PushSocket(reader.endpoint);
  push.send(payloadOf(0, 0));
  await collector.shows(0, 0);
  for (let round = 1; round <= ROUNDS; round++) {
    file.unlink();
    await sleep(TICK_MS);
    push.send(payloadOf(0, round));
    await collector.counts("restores", round);
    assert.equal(await reader.poll(), true);
    assert.equal(collector.numberOf(0), round);
    assert.deepEqual(reader.readAll().map((load) => load.numRunningReqs), [round]);
    assert(reader.health()[0]!.ageMs! < 10_000);
  }
});

Deno.test("a watcher gets a snapshot that is published in a restored file", async () => {
  await using collector = await Collector.open();
  const { reader, file } = collector;
  using push = new PushSocket(reader.endpoint);
  const updates = reader.watch();
  for (let round = 1; round <= ROUNDS; round++) {
    let number: number | undefined;
    void updates.next().then(({ value }) => number = value?.snapshot.numRunningReqs);
    file.unlink();
    await sleep(TICK_MS);
    push.send(payloadOf(0, round));
    await until(`the watcher gets ${round}`, () => number !== undefined);
    assert.equal(number, round);
  }
  await updates.return!();
});

Deno.test("a reader that is told to looks at its path with the next read", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 0 })] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  for (let round = 1; round <= ROUNDS; round++) {
    file.replace(slotFileBytes({ slots: [loadSlot({ numRunningReqs: round })] }));
    reader.recheckPath();
    assert.equal(reader.read(0)?.numRunningReqs, round);
  }
  reader.close();
  reader.recheckPath();
});
