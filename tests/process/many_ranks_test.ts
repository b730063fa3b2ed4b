/** A group of 1,024 ranks, by every way that a load takes. */

import assert from "node:assert/strict";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Collector, loadOf, payloadOf } from "../support/collector.ts";
import { mappingsOf, openDescriptors } from "../support/own_resources.ts";
import { SlotPath } from "../support/slot_path.ts";
import { until } from "../support/wait.ts";

const RANKS = 1024;
const ALL = Array.from({ length: RANKS }, (_, dpRank) => dpRank);

/** So slow that no rank turns stale meanwhile. */
const SLOW_MS = 600_000;

/** Writes one number in every rank, each by a writer of its own. */
function writeAll(path: string, numberOf: (dpRank: number) => number): void {
  // Whoever is the first to open a slot file loads libc, and the last one lets go of it.
  using _first = new ShmLoadSnapshotReader(path);
  for (const dpRank of ALL) {
    using writer = new ShmLoadSnapshotWriter(path, { dpSize: RANKS, dpRank });
    writer.write(loadOf(dpRank, numberOf(dpRank)));
  }
}

Deno.test("1,024 ranks are written by 1,024 writers, and read at once", () => {
  using file = new SlotPath();
  const descriptors = openDescriptors();
  writeAll(file.path, (dpRank) => dpRank + 1);
  {
    using reader = new ShmLoadSnapshotReader(file.path, { dpSize: RANKS, staleAfterMs: SLOW_MS });
    assert.equal(mappingsOf(file.path).length, 1);
    assert.deepEqual(
      reader.readAll().map(({ dpRank, numRunningReqs }) => [dpRank, numRunningReqs]),
      ALL.map((dpRank) => [dpRank, dpRank + 1]),
    );
    assert(reader.health().every(({ state, ageMs }) => state === "live" && ageMs !== null));
    const { publications } = reader.stats();
    writeAll(file.path, (dpRank) => 2 * dpRank);
    for (const dpRank of ALL) assert.equal(reader.read(dpRank)?.numRunningReqs, 2 * dpRank);
    assert.equal(reader.stats().publications, publications + RANKS);
    assert.equal(reader.stats().lockMisses, 0);
    assert.throws(() => reader.read(RANKS), RangeError);
  }
  assert.equal(openDescriptors(), descriptors);
});

Deno.test("a watcher of 1,024 ranks gets each of them, and each change", async () => {
  using file = new SlotPath();
  writeAll(file.path, () => 1);
  using reader = new ShmLoadSnapshotReader(file.path);
  const seen = new Map<number, number>();
  const abort = new AbortController();
  const watching = (async () => {
    for await (const { dpRank, snapshot } of reader.watch({ signal: abort.signal })) {
      seen.set(dpRank, snapshot.numRunningReqs);
    }
  })();
  await until("all were given", () => seen.size === RANKS);
  writeAll(file.path, () => 2);
  await until("all changes were given", () => ALL.every((dpRank) => seen.get(dpRank) === 2));
  abort.abort();
  await watching;
});

Deno.test("a collector takes 1,024 ranks from one connection, and from a hundred", async () => {
  await using collector = await Collector.open({ dpSize: RANKS, staleAfterMs: SLOW_MS });
  const { reader } = collector;
  const isAll = (number: number) => {
    const loads = reader.readAll();
    return loads.length === RANKS && loads.every((load) => load.numRunningReqs === number);
  };
  {
    using push = new PushSocket(reader.endpoint, { sendHighWaterMark: 0 });
    for (const dpRank of ALL) push.send(payloadOf(dpRank, 1));
    await until("all are read", () => isAll(1));
  }
  using stack = new DisposableStack();
  const pushes = Array.from(
    { length: 100 },
    () => stack.use(new PushSocket(reader.endpoint, { sendHighWaterMark: 0 })),
  );
  for (const dpRank of ALL) pushes[dpRank % 100]!.send(payloadOf(dpRank, 2));
  await until("all are read anew", () => isAll(2));
  assert(reader.health().every(({ state }) => state === "live"));
  using beside = new ShmLoadSnapshotReader(reader.path);
  assert.equal(beside.readAll().length, RANKS);
});
