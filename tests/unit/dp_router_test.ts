/** A router over a reader: when it reads, whom it leaves out, and what it follows. */

import assert from "node:assert/strict";
import { DpRouter } from "../../src/balance/dp_router.ts";
import { NoRankAvailableError } from "../../src/errors.ts";
import type { LoadReader, LoadUpdate, WatchOptions } from "../../src/load_reader.ts";
import type { RankHealth } from "../../src/slotfile/rank_health.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { SlotPath } from "../support/slot_path.ts";
import { until } from "../support/wait.ts";

/** A reader whose loads the test sets; it counts how often it is read. */
class ScriptedReader implements LoadReader {
  loads: (LoadSnapshot | null)[] = [];
  reads = 0;
  isClosed = false;
  dpSize: number | null = null;
  readonly #updates: LoadUpdate[] = [];
  #wake: (() => void) | null = null;
  failWith: Error | null = null;

  report(...running: readonly number[]): void {
    this.dpSize = running.length;
    this.loads = running.map((numRunningReqs, dpRank) =>
      createLoadSnapshot({ timestamp: Date.now() / 1000, dpRank, numRunningReqs })
    );
  }

  /** Has watchers find a rank's newest. */
  tell(dpRank: number, ageMs: number | null = 0): void {
    this.#updates.push({ dpRank, snapshot: this.loads[dpRank]!, ageMs });
    this.wake();
  }

  wake(): void {
    this.#wake?.();
  }

  read(dpRank: number): LoadSnapshot | null {
    return this.loads[dpRank] ?? null;
  }

  readAll(): LoadSnapshot[] {
    if (this.isClosed) throw new TypeError("Cannot read: the reader is closed");
    this.reads++;
    return this.loads.filter((load) => load !== null);
  }

  health(): readonly RankHealth[] {
    return this.loads.map((load, dpRank) => ({
      dpRank,
      state: load === null ? "unreported" : "live",
      ageMs: load === null ? null : 0,
    }));
  }

  async *watch({ signal }: WatchOptions = {}): AsyncGenerator<LoadUpdate, undefined> {
    signal?.addEventListener("abort", () => this.wake(), { once: true });
    for (;;) {
      if (this.failWith !== null) throw this.failWith;
      if (signal?.aborted) return;
      const update = this.#updates.shift();
      if (update !== undefined) yield update;
      else await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }
}

Deno.test("loads are read before a dispatch, and not again at once", () => {
  const reader = new ScriptedReader();
  reader.report(9, 0);
  using router = new DpRouter(reader, { refreshMs: 60_000 });
  for (let n = 0; n < 5; n++) assert.equal(router.dispatch({ estimatedTokens: 1 }).dpRank, 1);
  assert.equal(reader.reads, 1);
  using eager = new DpRouter(reader, { refreshMs: 0 });
  for (let n = 0; n < 5; n++) eager.dispatch();
  assert.equal(reader.reads, 6);
});

Deno.test("a request counts on its rank until its scope ends", () => {
  const reader = new ScriptedReader();
  reader.report(0, 0);
  using router = new DpRouter(reader);
  {
    using request = router.dispatch();
    assert.equal(request.ticket, 1);
    assert.equal(router.stats()!.outstanding, 1);
  }
  assert.equal(router.stats()!.outstanding, 0);
  const request = router.dispatch();
  request.complete();
  request.complete();
  assert.deepEqual(router.stats()!.completed, 2);
  assert.equal(router.explain()!.dpRank, request.dpRank);
});

Deno.test("without a group there is no rank; with one there is, of whatever size it comes to have", () => {
  const reader = new ScriptedReader();
  using router = new DpRouter(reader, { refreshMs: 0 });
  assert.throws(() => router.dispatch(), (error) => {
    assert(error instanceof NoRankAvailableError);
    assert.deepEqual(error.faults, []);
    return true;
  });
  assert.equal(router.stats(), null);
  assert.equal(router.explain(), null);
  reader.report(3);
  assert.equal(router.dpSize, 1);
  const before = router.dispatch();
  assert.equal(before.dpRank, 0);
  reader.report(9, 9, 9, 0);
  assert.equal(router.dispatch().dpRank, 3);
  // What was sent to the group before is not one of this one's.
  before.complete();
  assert.equal(router.stats()!.outstanding, 1);
});

Deno.test("a rank stays drained when the group restarts, until it is taken in again", () => {
  const reader = new ScriptedReader();
  using router = new DpRouter(reader, { refreshMs: 0 });
  router.drain(1);
  reader.report(9, 0, 9);
  assert.notEqual(router.dispatch().dpRank, 1);
  reader.report(9, 0);
  assert.equal(router.dispatch().dpRank, 0);
  router.undrain(1);
  router.undrain(1);
  assert.equal(router.dispatch().dpRank, 1);
  for (const rank of [-1, 0.5, NaN]) assert.throws(() => router.drain(rank), RangeError);
});

Deno.test("SGLang's methods can be asked for", () => {
  const reader = new ScriptedReader();
  reader.report(5, 5, 5);
  using router = new DpRouter(reader, { method: "round_robin" });
  assert.deepEqual([1, 2, 3, 4].map(() => router.dispatch().dpRank), [0, 1, 2, 0]);
});

Deno.test("a watching router knows what is new without reading", async () => {
  const reader = new ScriptedReader();
  reader.report(0, 0);
  using router = new DpRouter(reader, { refresh: "watch", refreshMs: 0 });
  reader.tell(0);
  reader.tell(1);
  await until("both are known", () => router.stats()?.reports === 2);
  const { reads } = reader;
  reader.report(9, 0);
  reader.tell(0);
  await until("the change is known", () => router.stats()?.reports === 3);
  for (let n = 0; n < 3; n++) assert.equal(router.dispatch({ estimatedTokens: 1 }).dpRank, 1);
  assert.equal(reader.reads, reads);
});

Deno.test("when watching fails, loads are read before each dispatch", async () => {
  const reader = new ScriptedReader();
  reader.report(0, 0);
  using router = new DpRouter(reader, { refresh: "watch", refreshMs: 0 });
  reader.tell(0);
  await until("one is known", () => router.stats()?.reports === 1);
  reader.failWith = new Error("the watch broke");
  reader.wake();
  await until("it reads", () => {
    router.dispatch();
    return reader.reads > 0;
  });
});

Deno.test("a closed router gives no ranks, its reader stays open, and closing twice is fine", () => {
  const reader = new ScriptedReader();
  reader.report(0);
  const router = new DpRouter(reader);
  router.dispatch();
  router.close();
  router.close();
  assert.throws(() => router.dispatch(), /Cannot dispatch: the router is closed/);
  assert.equal(reader.readAll().length, 1);
});

Deno.test("a closed reader is told", () => {
  const reader = new ScriptedReader();
  reader.report(0);
  using router = new DpRouter(reader, { refreshMs: 0 });
  reader.isClosed = true;
  assert.throws(() => router.dispatch(), /the reader is closed/);
});

Deno.test("options that cannot be are told at once, known group or not", () => {
  const reader = new ScriptedReader();
  assert.throws(() => new DpRouter(reader, { refreshMs: -1 }), RangeError);
  assert.throws(() => new DpRouter(reader, { ledgerSize: 0 }), RangeError);
  assert.throws(() => new DpRouter(reader, { rampMs: NaN }), RangeError);
  reader.report(0, 0);
  assert.throws(() => new DpRouter(reader, { weights: [1] }), RangeError);
});

Deno.test("over a slot file: the least loaded live rank, by reading and by watching", async () => {
  for (const refresh of ["dispatch", "watch"] as const) {
    using file = new SlotPath();
    const writers = [0, 1, 2].map((dpRank) =>
      new ShmLoadSnapshotWriter(file.path, { dpSize: 3, dpRank })
    );
    try {
      const write = (dpRank: number, numRunningReqs: number) =>
        writers[dpRank]!.write(
          createLoadSnapshot({ timestamp: Date.now() / 1000, dpRank, numRunningReqs }),
        );
      write(0, 9);
      write(1, 3);
      using reader = new ShmLoadSnapshotReader(file.path);
      using router = new DpRouter(reader, { refresh, refreshMs: 0 });
      const choose = () => router.dispatch({ estimatedTokens: 1 }).dpRank;
      const standing = () => router.explain()!.ranks[2]!.standing;
      await until("the less loaded is chosen", () => choose() === 1);
      // The third never told its load, which is not zero.
      assert.equal(standing(), "unreported");
      write(2, 0);
      await until("the third takes part", () => choose() >= 0 && standing() === "candidate");
    } finally {
      for (const writer of writers) writer.close();
    }
  }
});

Deno.test("weights outlive a group that starts anew with more or fewer ranks", () => {
  const reader = new ScriptedReader();
  reader.report(0, 0);
  using router = new DpRouter(reader, { refreshMs: 0, weights: [1, 2] });
  router.dispatch();
  for (const running of [[0, 0, 0], [0], [0, 0]]) {
    reader.report(...running);
    const { dpRank } = router.dispatch();
    assert(dpRank < running.length, `${dpRank}`);
  }
  assert.throws(() => new DpRouter(reader, { weights: [1] }), RangeError);
});

Deno.test("after a dispatch that found no rank there is nothing to explain", () => {
  const reader = new ScriptedReader();
  reader.report(0, 0);
  using router = new DpRouter(reader, { refreshMs: 0 });
  const { dpRank } = router.dispatch();
  assert.equal(router.explain()?.dpRank, dpRank);
  reader.loads = [null, null];
  for (const rank of [0, 1]) router.drain(rank);
  assert.throws(() => router.dispatch(), NoRankAvailableError);
  assert.equal(router.explain(), null);
});
