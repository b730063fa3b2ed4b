/** `watch` on a slot file: what it gives, to whom, and when it ends. */

import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { LoadUpdate } from "../../src/load_reader.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { removeSlotFile } from "../../src/slotfile/created_file.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { SlotPath } from "../support/slot_path.ts";

type Updates = AsyncIterableIterator<LoadUpdate, undefined>;

const TWO = { dpSize: 2 } as const;

function numbered(dpRank: number, number: number) {
  return createLoadSnapshot({ dpRank, timestamp: Date.now() / 1000, numRunningReqs: number });
}

/** Takes the next update, as rank and number. */
async function next(updates: Updates): Promise<[number, number]> {
  const { value } = await updates.next();
  assert(value !== undefined, "the watch has ended");
  return [value.dpRank, value.snapshot.numRunningReqs];
}

Deno.test("a watcher gets what each rank says, then each change", async () => {
  using file = new SlotPath();
  using zero = new ShmLoadSnapshotWriter(file.path, { ...TWO, dpRank: 0 });
  using one = new ShmLoadSnapshotWriter(file.path, { ...TWO, dpRank: 1 });
  zero.write(numbered(0, 1));
  one.write(numbered(1, 2));
  using reader = new ShmLoadSnapshotReader(file.path);
  const updates = reader.watch();
  assert.deepEqual([await next(updates), await next(updates)], [[0, 1], [1, 2]]);
  for (let number = 3; number < 20; number++) {
    const waiting = next(updates);
    one.write(numbered(1, number));
    assert.deepEqual(await waiting, [1, number]);
  }
  await updates.return!();
});

Deno.test("an update brings the reader's own snapshot, and its age", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { ...TWO, dpRank: 1 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const updates = reader.watch();
  const blank = (await updates.next()).value!;
  assert.deepEqual([blank.dpRank, blank.ageMs], [1, null]);
  writer.write(createLoadSnapshot({ dpRank: 1, timestamp: Date.now() / 1000 - 5 }));
  const { snapshot, ageMs } = (await updates.next()).value!;
  assert.equal(snapshot, reader.read(1));
  assert(ageMs !== null && ageMs >= 5000 && ageMs < 65_000, `${ageMs}`);
  await updates.return!();
});

Deno.test("a slow watcher gets the newest of each rank, and none of those between", async () => {
  using file = new SlotPath();
  using zero = new ShmLoadSnapshotWriter(file.path, { ...TWO, dpRank: 0 });
  using one = new ShmLoadSnapshotWriter(file.path, { ...TWO, dpRank: 1 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const updates = reader.watch();
  await next(updates);
  await next(updates);
  for (let number = 1; number <= 100; number++) {
    zero.write(numbered(0, number));
    one.write(numbered(1, number));
    await delay(number % 50 === 0 ? 3 : 0);
  }
  const got = [await next(updates), await next(updates)].sort();
  assert.deepEqual(got, [[0, 100], [1, 100]]);
  await updates.return!();
});

Deno.test("a rank that changes all the time does not hide the others", async () => {
  using file = new SlotPath();
  using zero = new ShmLoadSnapshotWriter(file.path, { ...TWO, dpRank: 0 });
  using one = new ShmLoadSnapshotWriter(file.path, { ...TWO, dpRank: 1 });
  using reader = new ShmLoadSnapshotReader(file.path);
  one.write(numbered(1, 7));
  let number = 0;
  for await (const { dpRank, snapshot } of reader.watch()) {
    zero.write(numbered(0, ++number));
    if (dpRank === 1) {
      assert.equal(snapshot.numRunningReqs, 7);
      break;
    }
    assert(number < 1000, "rank 1 was never given");
  }
});

Deno.test("a loop that always finds something new leaves time for timers", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const signal = AbortSignal.timeout(100);
  let number = 0;
  for await (const _ of reader.watch({ signal })) {
    // As slow a consumer as it takes for each look to find the next change.
    const end = performance.now() + 1.1;
    while (performance.now() < end);
    writer.write(numbered(0, ++number));
    assert(number < 20_000, "the timer was never heard");
  }
  assert(signal.aborted);
});

Deno.test("several watchers each get the same changes", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const watchers = Array.from({ length: 20 }, () => reader.watch());
  await Promise.all(watchers.map(next));
  for (let number = 1; number <= 20; number++) {
    const waiting = watchers.map(next);
    writer.write(numbered(0, number));
    const got = await Promise.all(waiting);
    assert.deepEqual(got, watchers.map(() => [0, number]));
  }
  await Promise.all(watchers.map((watcher) => watcher.return!()));
});

Deno.test("a watch waits for a file that is not there yet, and follows a replaced one", async () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path);
  const updates = reader.watch();
  const first = updates.next();
  using before = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  assert.equal((await first).value?.snapshot.numRunningReqs, 0);
  before.write(numbered(0, 1));
  assert.deepEqual(await next(updates), [0, 1]);
  before.close();
  removeSlotFile(file.path);
  using after = new ShmLoadSnapshotWriter(file.path, { ...TWO, dpRank: 1 });
  after.write(numbered(1, 2));
  assert.deepEqual(await next(updates), [1, 2]);
  await updates.return!();
});

Deno.test("a watch ends with its reader, also while it waits", async () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path);
  const [waiting, idle] = [reader.watch(), reader.watch()];
  const next = [waiting.next(), waiting.next()];
  await delay(10);
  reader.close();
  for (const result of [...await Promise.all(next), await waiting.next(), await idle.next()]) {
    assert.deepEqual(result, { done: true, value: undefined });
  }
  assert.throws(() => reader.watch(), {
    name: "TypeError",
    message: "Cannot watch load: the reader is closed",
  });
});

Deno.test("an aborted signal ends its watch, and no other", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const abort = new AbortController();
  const [ended, other] = [reader.watch({ signal: abort.signal }), reader.watch()];
  await Promise.all([next(ended), next(other)]);
  const [last, going] = [ended.next(), next(other)];
  abort.abort();
  assert.deepEqual(await last, { done: true, value: undefined });
  writer.write(numbered(0, 1));
  assert.deepEqual(await going, [0, 1]);
  await other.return!();
  const never = reader.watch({ signal: abort.signal });
  assert.deepEqual(await never.next(), { done: true, value: undefined });
});

Deno.test("calls that wait at once are answered one after the other", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const updates = reader.watch();
  const waiting = [next(updates), next(updates)];
  assert.deepEqual(await waiting[0], [0, 0]);
  writer.write(numbered(0, 1));
  assert.deepEqual(await waiting[1], [0, 1]);
  await updates.return!();
});

Deno.test("nobody looks while no watcher waits", async () => {
  using file = new SlotPath();
  using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const updates = reader.watch();
  await updates.next();
  const { reads } = reader.stats();
  await delay(50);
  assert.equal(reader.stats().reads, reads);
  const waiting = updates.next();
  await delay(50);
  const looks = reader.stats().reads - reads;
  assert(looks >= 1 && looks < 50, `${looks} looks`);
  await updates.return!();
  await waiting;
  const after = reader.stats().reads;
  await delay(30);
  assert.equal(reader.stats().reads, after);
});

Deno.test("a latency of less than a millisecond is refused", () => {
  for (const watchLatencyMs of [0, -1, 0.5, NaN]) {
    assert.throws(() => new ShmLoadSnapshotReader("/dev/shm/none", { watchLatencyMs }), RangeError);
  }
});
