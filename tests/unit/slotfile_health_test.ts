/** How a reader judges each rank: unreported, live or stale; corrupt slots have tests of their own. */

import assert from "node:assert/strict";
import type { LoadSnapshotInit } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { SlotPath } from "../support/slot_path.ts";
import { fixedSlot, loadSlot, slotFileBytes } from "../support/slot_bytes.ts";

/** Slack for the time that a test takes; no test depends on being fast. */
const SLOW_MS = 60_000;

function secondsAgo(seconds: number): number {
  return Date.now() / 1000 - seconds;
}

function healthOf(init: LoadSnapshotInit, staleAfterMs?: number) {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [loadSlot(init)] }));
  using reader = new ShmLoadSnapshotReader(
    file.path,
    staleAfterMs === undefined ? {} : { staleAfterMs },
  );
  const [health] = reader.health();
  assert(health !== undefined);
  return health;
}

Deno.test("an empty slot and a default snapshot are unreported, whoever wrote them", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [null, loadSlot({ dpRank: 1 }), loadSlot({ dpRank: 2 })] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  const unreported = { state: "unreported", ageMs: null };
  assert.deepEqual(reader.health(), [0, 1, 2].map((dpRank) => ({ dpRank, ...unreported })));
});

Deno.test("an idle rank that measured itself is live: its zeros mean something", () => {
  assert.equal(healthOf({ timestamp: secondsAgo(0) }).state, "live");
  assert.equal(healthOf({ maxTotalNumTokens: 1000 }).state, "live");
});

Deno.test("the age is counted from the measurement", () => {
  const { state, ageMs } = healthOf({ timestamp: secondsAgo(100), numRunningReqs: 1 });
  assert.equal(state, "stale");
  assert(ageMs !== null && ageMs >= 99_999 && ageMs < 100_000 + SLOW_MS);
});

Deno.test("the limit between live and stale can be set", () => {
  const old = { timestamp: secondsAgo(100) };
  assert.equal(healthOf(old, 3_600_000).state, "live");
  assert.equal(healthOf(old, 99_000).state, "stale");
  assert.equal(healthOf({ timestamp: secondsAgo(-0.5) }, 0).state, "live");
  assert.equal(healthOf({ timestamp: secondsAgo(1e6) }, Infinity).state, "live");
});

Deno.test("a timestamp that cannot be gives the age since the snapshot was first seen", () => {
  for (const timestamp of [secondsAgo(-3600), -5, NaN, Infinity, -Infinity, 1e300]) {
    const { state, ageMs } = healthOf({ timestamp, numRunningReqs: 1 }, SLOW_MS);
    assert.equal(state, "live", `timestamp ${timestamp}`);
    assert(ageMs !== null && ageMs >= 0 && ageMs < SLOW_MS);
  }
});

Deno.test("a clock that is a little behind does not make an age negative", () => {
  assert.equal(healthOf({ timestamp: secondsAgo(-0.9) }).ageMs, 0);
});

Deno.test("a rank turns stale while nothing is published, and live with the next publication", () => {
  using file = new SlotPath();
  const slotAt = (timestamp: number) => loadSlot({ timestamp, numRunningReqs: 1 });
  file.put(slotFileBytes({ slots: [slotAt(secondsAgo(0))] }));
  using reader = new ShmLoadSnapshotReader(file.path, { staleAfterMs: 1000 });
  assert.equal(reader.health()[0]?.state, "live");
  file.patch(12, slotAt(secondsAgo(10)));
  assert.equal(reader.health()[0]?.state, "stale");
  assert.equal(reader.read(0)?.numRunningReqs, 1, "stale values are given all the same");
  file.patch(12, slotAt(secondsAgo(0)));
  assert.equal(reader.health()[0]?.state, "live");
});

Deno.test("a rank of version 1 that is all zeros is unreported", () => {
  using file = new SlotPath();
  const slots = [fixedSlot([]), fixedSlot([{ d: secondsAgo(0) }, 1, 3])];
  file.put(slotFileBytes({ version: 1, slotSize: 320, slots }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.deepEqual(reader.health().map(({ state }) => state), ["unreported", "live"]);
});

Deno.test("the age of what a lost file said goes on", () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [loadSlot({ timestamp: secondsAgo(5), numRunningReqs: 2 })] }));
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.equal(reader.health()[0]?.state, "live");
  file.put(new Uint8Array(0));
  const [health] = reader.health();
  assert.equal(reader.fault?.reason, "unfinished");
  assert(health?.ageMs !== undefined && health.ageMs !== null && health.ageMs >= 4999);
  assert.equal(health.state, "live");
  assert.deepEqual([reader.dpSize, reader.read(0)?.numRunningReqs], [1, 2]);
});
