// deno-lint-ignore-file no-console -- the figures are printed
/**
 * What takes long: floods of a hostile process, a writer that says nothing for a minute, and a
 * scheduler of KvMetrics that is gone for it. The minute passes while the floods run.
 */

import assert from "node:assert/strict";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Child } from "../support/child.ts";
import { Collector, loadOf } from "../support/collector.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep } from "../support/wait.ts";
import type { Measured } from "./fixtures/measuring_collector.ts";
import { GoneScheduler } from "./gone_scheduler.ts";
import { PythonPeer } from "./peer.ts";
import { ensurePeers } from "./setup.ts";

const SILENCE_MS = 60_000;
const SECONDS = 10;
const RANKS = 8;
const EVERY_MS = 5;
const PERMISSIONS = ["--allow-ffi", "--allow-read"];

const at = (name: string) => new URL(`./fixtures/${name}`, import.meta.url).href;

/** Seven ranks that push in turns, beside what the hostile one does. */
async function pushSteadily(writers: readonly ZmqLoadSnapshotWriter[], ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    for (const writer of writers) {
      const timestamp = (performance.timeOrigin + performance.now()) / 1000;
      writer.write(createLoadSnapshot({ dpRank: writer.dpRank, timestamp, numRunningReqs: 1 }));
    }
    await sleep(EVERY_MS);
  }
}

function quantiles({ latenciesMs }: Measured): string {
  const q = (share: number) =>
    latenciesMs[Math.floor((latenciesMs.length - 1) * share)]!.toFixed(1);
  return `p50 ${q(0.5)} ms, p99 ${q(0.99)} ms, max ${q(1)} ms`;
}

/** Lets a hostile process flood a collector for some seconds; tells what came of it. */
async function flood(kind: string): Promise<void> {
  using file = new SlotPath();
  await using collector = Child.deno([
    ...[...PERMISSIONS, at("measuring_collector.ts")],
    ...[file.path, String(RANKS)],
  ]);
  const endpoint = await collector.line();
  await using stack = new AsyncDisposableStack();
  const writers = Array.from(
    { length: RANKS - 1 },
    (_, n) => stack.use(new ZmqLoadSnapshotWriter(endpoint, { dpSize: RANKS, dpRank: n + 1 })),
  );
  await pushSteadily(writers, 1000);
  const quiet = await collector.ask<Measured>("look");

  const hostile = stack.use(Child.deno([...PERMISSIONS, at("flood.ts"), endpoint, kind]));
  const rounds: Measured[] = [];
  for (let second = 0; second < SECONDS; second++) {
    await pushSteadily(writers, 1000);
    rounds.push(await collector.ask<Measured>("look"));
  }
  const { stdout } = await hostile.end();
  await pushSteadily(writers, 500);
  const after = await collector.ask<Measured>("look");
  assert.equal((await collector.end()).code, 0);

  const all = rounds.flatMap((round) => round.latenciesMs).sort((a, b) => a - b);
  const { received } = rounds.at(-1)!.stats;
  const rss = [rounds[2]!, rounds.at(-1)!].map((it) => Math.round(it.residentBytes / 1e6));
  console.log(
    `${kind}: ${Number(stdout)} sent in ${SECONDS} s, ${received} received; the other ranks: ` +
      `${quantiles({ ...quiet, latenciesMs: all })} (quiet: ${quantiles(quiet)}); ` +
      `resident ${rss[0]} -> ${rss[1]} MB`,
  );
  assert(received > 10_000 * SECONDS / 10, "that was no flood");
  for (const { seen } of [...rounds, after]) {
    for (const count of seen.slice(1)) assert(count > 0, `a rank was not heard: ${seen}`);
  }
  assert(rounds.at(-1)!.residentBytes < rounds[2]!.residentBytes + 64_000_000, "memory grew");
  const { published, superseded, ...counts } = after.stats;
  const refused = counts.refusedSize + counts.refusedSchema + counts.refusedRank;
  assert.equal(refused > 0, kind !== "snapshots");
  assert(published + superseded + refused <= counts.received);
}

/** Messages of 100 MB, one after the other: none may be held. */
async function pushHuge(): Promise<void> {
  using file = new SlotPath();
  await using collector = Child.deno([
    ...[...PERMISSIONS, at("measuring_collector.ts")],
    ...[file.path, String(RANKS)],
  ]);
  const endpoint = await collector.line();
  using writer = new ZmqLoadSnapshotWriter(endpoint, { dpSize: RANKS, dpRank: 1 });
  await pushSteadily([writer], 500);
  const before = await collector.ask<Measured>("look");
  const huge = new Uint8Array(100_000_000);
  let most = 0;
  for (let round = 0; round < 8; round++) {
    using push = new PushSocket(endpoint);
    push.send(huge);
    await pushSteadily([writer], 250);
    const now = await collector.ask<Measured>("look");
    most = Math.max(most, now.residentBytes);
    assert(now.seen[1]! > 0);
    assert.equal(now.seen[0], 0);
  }
  const grown = Math.round((most - before.residentBytes) / 1e6);
  console.log(`8 messages of 100 MB: resident ${grown >= 0 ? "+" : ""}${grown} MB at most`);
  assert(grown < 50, "a message of 100 MB was held");
}

Deno.test("hostile peers harm nobody, and a minute of silence ends with the next message", async (t) => {
  await using collector = await Collector.open();
  using ours = new ZmqLoadSnapshotWriter(collector.reader.endpoint, { dpSize: 2, dpRank: 0 });
  await using peer = await silentPeer();
  const theirs = await peer?.openZmqWriter(collector.reader.endpoint, { dpSize: 2, dpRank: 1 });
  const ranks = theirs === undefined ? [0] : [0, 1];
  const writeAll = async (number: number) => {
    ours.write(loadOf(0, number));
    await theirs?.write(loadOf(1, number));
    for (const rank of ranks) await collector.shows(rank, number);
  };
  await writeAll(1);
  await using scheduler = await GoneScheduler.start(peer !== null);
  const silentUntil = performance.now() + SILENCE_MS;
  const { received } = collector.reader.stats();

  for (const kind of ["snapshots", "garbage", "mixed"]) {
    await t.step(
      `a flood of ${kind} leaves memory flat and the other ranks fresh`,
      () => flood(kind),
    );
  }
  await t.step("messages of 100 MB are refused before they are held", pushHuge);
  await t.step("after a minute of silence the next message is heard", async () => {
    await sleep(Math.max(0, silentUntil - performance.now()));
    assert.equal(collector.reader.stats().received, received);
    assert(
      collector.reader.health().slice(0, ranks.length).every(({ state }) => state === "stale"),
    );
    await writeAll(2);
    assert(collector.reader.health().slice(0, ranks.length).every(({ state }) => state === "live"));
  });
  await t.step("a scheduler of KvMetrics that was gone for a minute is live again", async () => {
    await scheduler.comesBack();
  });
});

/** SGLang's writer beside ours, where there is one. */
async function silentPeer(): Promise<PythonPeer | null> {
  const peers = await ensurePeers();
  if (peers.state === "ready") return await PythonPeer.start();
  console.log(`the silent writer is ours only: ${peers.reason}`);
  return null;
}
