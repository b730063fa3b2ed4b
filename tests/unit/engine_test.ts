/** The simulated engine: one trace per seed, numbers that agree, published when SGLang would. */

import assert from "node:assert/strict";
import { SimulatedEngine, type SnapshotPublisher } from "../../examples/engine.ts";
import { LIMITS, QUIET } from "../../examples/engine/limits.ts";
import {
  encodeLoadSnapshot,
  type LoadSnapshot,
  LockTimeoutError,
  ShmLoadSnapshotReader,
  SlotFileError,
} from "../../mod.ts";

interface Publication {
  readonly load: LoadSnapshot;
  readonly forced: boolean;
}

/** Keeps what one rank would publish at an interval of 1. */
class Recorder implements SnapshotPublisher {
  readonly publications: Publication[] = [];

  publish(make: () => LoadSnapshot, options?: { readonly force?: boolean }): void {
    this.publications.push({ load: make(), forced: options?.force ?? false });
  }

  get loads(): readonly LoadSnapshot[] {
    return this.publications.map(({ load }) => load);
  }
}

function recordEngine(dpSize: number, seed: number): [SimulatedEngine, readonly Recorder[]] {
  const recorders = Array.from({ length: dpSize }, () => new Recorder());
  return [new SimulatedEngine(recorders, { seed, startMs: 1_000_000 }), recorders];
}

function traceOf(seed: number, steps: readonly number[]): readonly (readonly LoadSnapshot[])[] {
  const [engine, recorders] = recordEngine(3, seed);
  for (const ms of steps) engine.step(ms);
  return recorders.map(({ loads }) => loads);
}

/** What each snapshot holds to, whatever happens. */
function assertConsistent(load: LoadSnapshot): void {
  const { queues, lora, memory } = load;
  assert.ok(queues !== null && lora !== null && memory !== null);
  for (const value of Object.values({ ...load, ...queues, ...lora, ...memory })) {
    if (typeof value === "number") assert.ok(value >= 0 && Number.isFinite(value));
  }
  assert.ok(load.numUsedTokens <= load.maxTotalNumTokens);
  assert.ok(load.numTotalTokens >= load.numUsedTokens);
  assert.equal(load.numActiveTokens, load.numTotalTokens);
  assert.equal(load.numPreallocReadyTokens, 0);
  assert.equal(
    load.tokenUsage,
    Number((load.numUsedTokens / load.maxTotalNumTokens).toFixed(4)),
  );
  assert.ok(load.numRunningReqs <= load.maxRunningRequests);
  assert.equal(load.numWaitingReqs, queues.waiting + queues.grammar);
  assert.ok(queues.retracted <= queues.waiting);
  assert.ok(queues.paused === 0 || queues.paused === load.numRunningReqs);
  assert.ok(load.numUsedTokens >= load.numRunningReqs);
  assert.equal(memory.tokenCapacity, load.maxTotalNumTokens);
  assert.ok(lora.slotsUsed <= lora.slotsTotal);
  assert.equal(lora.utilization, lora.slotsUsed / lora.slotsTotal);
  assert.ok(load.cacheHitRate < 1);
  assert.ok(load.utilization <= 1);
  assert.deepEqual(load.disaggregation?.mode, "null");
  if (load.speculative !== null) {
    const { acceptLength, acceptRate } = load.speculative;
    assert.ok(acceptLength > 0 && acceptLength <= LIMITS.draftTokens + 1);
    assert.ok(acceptRate <= 1);
  }
}

/** What never goes back from one snapshot of a rank to the next. */
function assertForward(before: LoadSnapshot, after: LoadSnapshot): void {
  assert.ok(after.timestamp >= before.timestamp);
  assert.ok(after.totalPrefillUncachedTokens >= before.totalPrefillUncachedTokens);
  assert.ok(after.totalPrefillBusyUs >= before.totalPrefillBusyUs);
  before.decodeMoments?.forEach((sum, i) => assert.ok(after.decodeMoments![i]! >= sum));
}

Deno.test("the same seed gives the same trace", () => {
  const steps = Array<number>(200).fill(50);
  assert.deepEqual(traceOf(7, steps), traceOf(7, steps));
  assert.notDeepEqual(traceOf(7, steps), traceOf(8, steps));
});

Deno.test("how the time is cut does not change the trace", () => {
  const whole = traceOf(7, [20_000]);
  assert.deepEqual(traceOf(7, Array<number>(1000).fill(20)), whole);
  assert.deepEqual(traceOf(7, [1, 0, 12_345, 7, 647, 7_000]), whole);
});

Deno.test("ranks differ, and a rank is the same whoever runs the others", () => {
  const [engine, all] = recordEngine(3, 7);
  engine.step(10_000);
  const last = new Recorder();
  new SimulatedEngine([last], { seed: 7, firstDpRank: 2, startMs: 1_000_000 }).step(10_000);

  assert.deepEqual(last.loads, all[2]!.loads);
  assert.ok(last.loads.every(({ dpRank }) => dpRank === 2));
  assert.notEqual(all[0]!.loads.length, all[1]!.loads.length);
});

Deno.test("the numbers agree over 20,000 steps, in and between publications", () => {
  const [engine, recorders] = recordEngine(4, 3);
  const last: LoadSnapshot[] = [];
  for (let step = 0; step < 20_000; step++) {
    engine.step(20);
    for (const [rank, scheduler] of engine.schedulers.entries()) {
      const load = scheduler.measure();
      assertConsistent(load);
      if (last[rank] !== undefined) assertForward(last[rank], load);
      last[rank] = load;
    }
  }
  for (const { loads } of recorders) loads.forEach(assertConsistent);
});

Deno.test("everything happens that a table or a router has to cope with", () => {
  const [engine, recorders] = recordEngine(8, 1);
  engine.step(400_000);
  const loads = recorders.flatMap(({ loads }) => loads);
  const happens = (what: (load: LoadSnapshot) => boolean): void => assert.ok(loads.some(what));

  happens((load) => load.numRunningReqs === 0 && load.numWaitingReqs === 0);
  happens((load) => load.tokenUsage > 0.98);
  happens((load) => load.numWaitingReqs > 50);
  happens((load) => load.queues!.grammar > 0);
  happens((load) => load.queues!.retracted > 0);
  happens((load) => load.queues!.paused > 0);
  happens((load) => load.lora!.slotsUsed === load.lora!.slotsTotal);
  happens((load) => load.cacheHitRate > 0.5);
  happens((load) => load.genThroughput > 2_000);
  happens((load) => load.numWaitingUncachedTokens > LIMITS.chunkTokens);
});

Deno.test("what is served adds up: answers come out, and queues do not grow without end", () => {
  const [engine, recorders] = recordEngine(8, 5);
  engine.step(400_000);
  for (const { loads } of recorders) {
    const [steps, , stepUs, , , tokens] = loads.at(-1)!.decodeMoments!;
    assert.ok(steps! > 1_000 && tokens! > steps!);
    const meanStepMs = stepUs! / steps! / 1000;
    assert.ok(meanStepMs > 8 && meanStepMs < 60, `decode steps take ${meanStepMs} ms`);
    assert.ok(Math.min(...loads.slice(-20_000).map((load) => load.numWaitingReqs)) < 200);
  }
});

Deno.test("a prefill batch and idleness are published at once, decode steps are not forced", () => {
  const [engine, recorders] = recordEngine(4, 2);
  engine.step(120_000);
  for (const { publications } of recorders) {
    for (const [index, { load, forced }] of publications.entries()) {
      const before = publications[index - 1]?.load;
      const prefilled = before !== undefined &&
        load.totalPrefillUncachedTokens > before.totalPrefillUncachedTokens;
      const decoded = (load.decodeMoments?.[0] ?? 0) > (before?.decodeMoments?.[0] ?? 0);
      if (prefilled) assert.ok(forced);
      if (decoded) assert.ok(!forced);
    }
  }
});

Deno.test("an idle or stalled rank publishes at a bounded rate, and never falls silent", () => {
  const [engine, recorders] = recordEngine(8, 1);
  engine.step(400_000);
  const seen = { idle: 0, stalled: 0 };
  for (const { publications } of recorders) {
    let restedBefore = false;
    for (const [index, { load, forced }] of publications.entries()) {
      const before = publications[index - 1]?.load;
      if (before === undefined) continue;
      const betweenMs = (load.timestamp - before.timestamp) * 1000;
      assert.ok(betweenMs <= 3_000, `${betweenMs} ms of silence`);

      const rests = forced && isSameWork(before, load);
      const kind = isIdle(load) ? "idle" : "stalled";
      if (rests) seen[kind]++;
      if (rests && restedBefore && isIdle(load) === isIdle(before)) {
        const least = kind === "idle" ? QUIET.idleMs : QUIET.stalledMs;
        assert.ok(betweenMs > least - 0.01, `${kind} for ${betweenMs} ms`);
      }
      restedBefore = rests;
    }
  }
  assert.ok(seen.idle > 100 && seen.stalled > 100);
});

/** Whether no batch ran between two publications. */
function isSameWork(a: LoadSnapshot, b: LoadSnapshot): boolean {
  return a.totalPrefillUncachedTokens === b.totalPrefillUncachedTokens &&
    a.decodeMoments?.[0] === b.decodeMoments?.[0];
}

function isIdle(load: LoadSnapshot): boolean {
  return load.numRunningReqs + load.numWaitingReqs === 0;
}

Deno.test("a lock that somebody else holds does not stop the engine", () => {
  const publisher: SnapshotPublisher = {
    publish() {
      throw new LockTimeoutError("/dev/shm/held", 50);
    },
  };
  const engine = new SimulatedEngine([publisher]);
  engine.step(1_000);
  assert.ok(engine.missedPublications > 0);
});

Deno.test("any other failure to publish does", () => {
  const publisher: SnapshotPublisher = {
    publish() {
      throw new RangeError("too large");
    },
  };
  assert.throws(() => new SimulatedEngine([publisher]).step(1_000), RangeError);
});

Deno.test("a reader sees in the slot file what the engine measures", () => {
  const path = uniquePath();
  using engine = SimulatedEngine.publishingTo(path, { dpSize: 3, publishInterval: 1 });
  using reader = new ShmLoadSnapshotReader(path, { dpSize: 3 });
  assert.ok(reader.health().every(({ state }) => state === "unreported"));

  const [twin, recorders] = recordEngine(3, 1);
  for (let step = 0; step < 100; step++) {
    engine.step(100);
    twin.step(100);
    for (const [dpRank, { loads }] of recorders.entries()) {
      const { timestamp: _1, ...expected } = loads.at(-1)!;
      const { timestamp: _2, ...seen } = reader.read(dpRank)!;
      assert.deepEqual(seen, expected);
    }
  }
});

Deno.test("decode steps are published at the writer's interval", () => {
  const path = uniquePath();
  using engine = SimulatedEngine.publishingTo(path, { dpSize: 1, publishInterval: 15 });
  using reader = new ShmLoadSnapshotReader(path);
  let before = reader.read(0)!;
  let unforced = 0;
  for (let ms = 0; ms < 60_000; ms++) {
    engine.step(1);
    const load = reader.read(0)!;
    if (load === before) continue;
    const steps = (load.decodeMoments?.[0] ?? 0) - (before.decodeMoments?.[0] ?? 0);
    assert.ok(steps <= 15);
    if (steps === 15) unforced++;
    before = load;
  }
  assert.ok(unforced > 10);
});

Deno.test("snapshots of the engine fit a slot with ease", () => {
  const [engine] = recordEngine(1, 1);
  engine.step(60_000);
  assert.ok(encodeLoadSnapshot(engine.schedulers[0]!.measure()).length < 1024);
});

Deno.test("closing removes the slot file, and twice is fine", () => {
  const path = uniquePath();
  const engine = SimulatedEngine.publishingTo(path, { dpSize: 2 });
  engine.close();
  engine.close();
  using reader = new ShmLoadSnapshotReader(path);
  assert.equal(reader.fault?.reason, "absent");
});

Deno.test("a path that cannot be a slot file's is refused as the writer refuses it", () => {
  assert.throws(
    () => SimulatedEngine.publishingTo("/dev/shm", { dpSize: 2 }),
    (error) => error instanceof SlotFileError && error.reason === "not-regular",
  );
});

Deno.test("run keeps pace with the clock and ends with its signal", async () => {
  const recorder = new Recorder();
  const engine = new SimulatedEngine([recorder]);
  const startedMs = Date.now();
  await engine.run({ signal: AbortSignal.timeout(300) });
  const tookMs = Date.now() - startedMs;

  assert.ok(engine.clockMs > 0 && engine.clockMs <= tookMs + 10);
  for (const { timestamp } of recorder.loads) {
    assert.ok(timestamp * 1000 >= startedMs - 10 && timestamp * 1000 <= Date.now() + 10);
  }
});

Deno.test("run with an aborted signal does nothing", async () => {
  const recorder = new Recorder();
  const engine = new SimulatedEngine([recorder]);
  await engine.run({ signal: AbortSignal.abort() });
  assert.equal(recorder.publications.length, 0);
});

function uniquePath(): string {
  return `/dev/shm/loadslots_engine_${crypto.randomUUID()}.shm`;
}
