/**
 * A process that reads engines' load in every way, and checks whatever it is told, until its input
 * ends: `OBSERVER_ORDER`.
 */

import { type LoadReader, ShmLoadSnapshotReader, ZmqShmLoadSnapshotReader } from "../../../mod.ts";
import { DeadlineCheck } from "./deadline_check.ts";
import { heard, say, Tally } from "./lines.ts";
import type { Broken, ObserverOrder, ObserverReport, ObserverTold, SourceOrder } from "./orders.ts";
import { SourceCheck } from "./source_check.ts";

const REPORT_MS = 500;
/** Every so many rounds one is a burst: reads without a pause. */
const BURST_EVERY = 100;
const BURST_MS = 8;
/** Every so many rounds health is asked for. */
const HEALTH_EVERY = 5;
const CONSUMER_MS = 80;

const order: ObserverOrder = JSON.parse(Deno.args[0] ?? "{}");
const states = new Tally();
const faults = new Tally();
const deadline = new DeadlineCheck();
let followedMs: number[] = [];
let reads = 0;
let updates = 0;
let round = 0;
let isOver = false;

function broken(source: SourceOrder, invariant: string, detail: string): void {
  say({ kind: "broken", invariant, detail: `${source.name}: ${detail}` } satisfies Broken);
}

interface Source {
  readonly order: SourceOrder;
  readonly reader: LoadReader & (ShmLoadSnapshotReader | ZmqShmLoadSnapshotReader);
  readonly check: SourceCheck;
}

async function open(source: SourceOrder): Promise<Source> {
  const { path, dpSize, endpoint } = source;
  const reader = endpoint === undefined
    ? new ShmLoadSnapshotReader(path, dpSize === undefined ? {} : { dpSize })
    : await ZmqShmLoadSnapshotReader.open(endpoint, path, { dpSize: dpSize! });
  const check = new SourceCheck(source, reader, states, {
    broken: (invariant, detail) => broken(source, invariant, detail),
    followed: (ms) => followedMs.push(ms),
  });
  return { order: source, reader, check };
}

function lockMissesOf(reader: Source["reader"]): number {
  const stats = reader.stats();
  return "slotFile" in stats ? stats.slotFile.lockMisses : stats.lockMisses;
}

/** One look at everything. */
function look({ reader, check }: Source): void {
  const misses = lockMissesOf(reader);
  const before = performance.now();
  const loads = reader.readAll();
  const took = performance.now() - before;
  deadline.took(took, lockMissesOf(reader) !== misses);
  reads++;
  check.take(loads);
}

/** Reads, and now and then without a pause. */
function lookAtAll(sources: readonly Source[], hotMs = 0): void {
  round++;
  deadline.begin();
  const end = performance.now() + (round % BURST_EVERY === 0 ? BURST_MS : hotMs);
  do for (const source of sources) look(source); while (performance.now() < end);
  if (round % HEALTH_EVERY !== 0) return;
  for (const { order, reader, check } of sources) {
    check.judgeHealth();
    if (!(reader instanceof ShmLoadSnapshotReader)) continue;
    if (reader.fault !== null) faults.add(reader.fault.reason);
    else if (reader.dpSize === null) broken(order, "fault", "no file, and no fault told");
  }
}

/** Takes what is new, and is slow at it. */
async function consume({ order, reader }: Source): Promise<void> {
  const check = new SourceCheck(order, reader, new Tally(), {
    broken: (invariant, detail) => broken(order, invariant, `watch: ${detail}`),
    followed: () => {},
  });
  for await (const { dpRank, snapshot, ageMs } of reader.watch()) {
    updates++;
    check.takeOne(dpRank, snapshot);
    if (ageMs !== null && !(ageMs >= 0)) broken(order, "age", `watch: an age of ${ageMs}`);
    await new Promise((resolve) => setTimeout(resolve, CONSUMER_MS));
  }
  if (!isOver) broken(order, "watch", "the watching ended by itself");
}

function report(sources: readonly Source[]): void {
  const stats = sources.map(({ reader }) => {
    const all = reader.stats();
    return "slotFile" in all ? all.slotFile : all;
  });
  const sum = (name: "lockMisses" | "attaches") =>
    stats.reduce((total, each) => total + each[name], 0);
  say(
    {
      kind: "observer",
      reads,
      publications: sources.reduce((total, { check }) => total + check.seen, 0),
      late: sources.reduce((total, { check }) => total + check.late, 0),
      states: states.counts,
      updates,
      lockMisses: sum("lockMisses"),
      attaches: sum("attaches"),
      faults: faults.counts,
      deadline: deadline.report(),
      followedMs,
      reached: Object.assign({}, ...sources.map(({ check }) => check.reached())),
    } satisfies ObserverReport,
  );
  followedMs = [];
}

const sources: Source[] = [];
for (const source of order.sources) sources.push(await open(source));
say({
  kind: "up",
  endpoints: sources.flatMap(({ reader }) => "endpoint" in reader ? [reader.endpoint] : []),
});
const consuming = sources.map(consume);
const looking = setInterval(() => lookAtAll(sources), order.intervalMs);
const reporting = setInterval(() => report(sources), REPORT_MS);
for await (const { blockMs = 0, hotMs = 0 } of heard<ObserverTold>()) {
  if (blockMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);
  const end = performance.now() + hotMs;
  while (performance.now() < end) lookAtAll(sources, BURST_MS);
}
isOver = true;
clearInterval(looking);
clearInterval(reporting);
report(sources);
for (const { reader } of sources) await reader.close();
await Promise.all(consuming);
