/** `watch` on a collector: woken by its worker, ended with it. */

import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Collector, payloadOf } from "../support/collector.ts";

Deno.test("a watcher of a collector gets what arrives", async () => {
  await using collector = await Collector.open();
  using push = new PushSocket(collector.reader.endpoint);
  const updates = collector.reader.watch();
  for (let number = 1; number <= 50; number++) {
    const waiting = updates.next();
    push.send(payloadOf(number % 2, number));
    const { value } = await waiting;
    assert.deepEqual([value?.dpRank, value?.snapshot.numRunningReqs], [number % 2, number]);
    assert(value!.ageMs !== null && value!.ageMs >= 0);
  }
  await updates.return!();
});

Deno.test("what an earlier collector left is given first, with the age that it has", async () => {
  await using collector = await Collector.open();
  using push = new PushSocket(collector.reader.endpoint);
  push.send(payloadOf(1, 5));
  await collector.shows(1, 5);
  await collector.reader.close();
  await using next = await Collector.open({ path: collector.file.path });
  const updates = next.reader.watch();
  const { value } = await updates.next();
  assert.deepEqual([value?.dpRank, value?.snapshot.numRunningReqs], [1, 5]);
  assert(value!.ageMs !== null && value!.ageMs >= 0);
  await updates.return!();
});

Deno.test("watchers of a collector end with it, by signal, and by their own wish", async () => {
  await using collector = await Collector.open();
  const abort = new AbortController();
  const { reader } = collector;
  const [aborted, left, closed] = [
    reader.watch({ signal: abort.signal }),
    reader.watch(),
    reader.watch(),
  ];
  const waiting = [aborted.next(), left.next(), closed.next()];
  await delay(20);
  abort.abort();
  await left.return!();
  assert.deepEqual((await waiting[0])?.done, true);
  assert.deepEqual((await waiting[1])?.done, true);
  await reader.close();
  assert.deepEqual((await waiting[2])?.done, true);
  assert.throws(() => reader.watch(), {
    name: "TypeError",
    message: "Cannot watch load: the reader is closed",
  });
});
