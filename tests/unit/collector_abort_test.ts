/** A collector under an AbortSignal: before it opens, while it opens, and when it is open. */

import assert from "node:assert/strict";
import { ZmqShmLoadSnapshotReader } from "../../src/zmq/reader.ts";
import { Collector, holdings, LOOPBACK, returnTo } from "../support/collector.ts";
import { SlotPath } from "../support/slot_path.ts";
import { matches } from "../support/raw_libc.ts";
import { sleep } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";

const REASON = new Error("not any more");

Deno.test("an aborted signal opens nothing", async () => {
  using file = new SlotPath();
  const before = await holdings();
  const opening = ZmqShmLoadSnapshotReader.open(LOOPBACK, file.path, {
    dpSize: 1,
    signal: AbortSignal.abort(REASON),
  });
  await assert.rejects(opening, REASON);
  assert.deepEqual(file.all(), []);
  await returnTo(before);
});

Deno.test("a signal that aborts meanwhile lets go of what is open already", async () => {
  using ipc = new TempIpc();
  const before = await holdings();
  for (const delayMs of [0, 1, 5, 10, 20, 40]) {
    using file = new SlotPath();
    const controller = new AbortController();
    const options = { dpSize: 1, signal: controller.signal };
    const opening = ZmqShmLoadSnapshotReader.open(ipc.endpoint, file.path, options);
    const outcome = opening.then((reader) => reader, (error: unknown) => error);
    if (delayMs > 0) await sleep(delayMs);
    controller.abort(REASON);
    const result = await outcome;
    // It may have been open by then: in that case the signal closes it.
    if (result instanceof ZmqShmLoadSnapshotReader) {
      assert.equal(await result.closed, null);
      await result.close();
    } else assert.equal(result, REASON);
    assert.deepEqual(matches(`${ipc.path}*`), []);
  }
  await returnTo(before);
});

Deno.test("a signal closes an open collector", async () => {
  const before = await holdings();
  const controller = new AbortController();
  {
    await using collector = await Collector.open({ signal: controller.signal });
    controller.abort(REASON);
    assert.throws(() => collector.reader.readAll(), TypeError);
    assert.equal(await collector.reader.closed, null);
  }
  await returnTo(before);
});

Deno.test("a collector that was closed has nothing to do with its signal any more", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
  signal.removeEventListener = (
    ...args: Parameters<typeof remove>
  ) => (listeners--, remove(...args));
  for (let round = 0; round < 3; round++) {
    await using _collector = await Collector.open({ signal });
    assert.equal(listeners, 1);
  }
  assert.equal(listeners, 0);
  controller.abort(REASON);
});

Deno.test("a collector that could not open keeps no listener", async () => {
  await using collector = await Collector.open();
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
  await assert.rejects(Collector.open({ endpoint: collector.reader.endpoint, signal }));
  assert.equal(listeners, 0);
});
