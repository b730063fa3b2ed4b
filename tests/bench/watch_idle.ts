// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * What it costs to watch a slot file in which nothing changes, beside the same time without a watch:
 * `deno run --allow-ffi --allow-read tests/bench/watch_idle.ts`.
 */

import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { ShmLoadSnapshotReader, ShmLoadSnapshotWriter } from "../../mod.ts";
import { removeSlotFile } from "../../src/slotfile/created_file.ts";

const SECONDS = 10;
const RANKS = 8;

/** Runs for a while; tells the share of one core that this took, in percent. */
async function shareOf(work: (signal: AbortSignal) => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work(AbortSignal.timeout(SECONDS * 1000));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e4 / SECONDS;
}

async function watch(path: string, watchLatencyMs: number, signal: AbortSignal): Promise<number> {
  using reader = new ShmLoadSnapshotReader(path, { watchLatencyMs });
  for await (const _ of reader.watch({ signal }));
  return reader.stats().reads / SECONDS;
}

async function main(): Promise<void> {
  const path = `/dev/shm/loadslots_watch_idle_${crypto.randomUUID()}.shm`;
  using _writer = new ShmLoadSnapshotWriter(path, { dpSize: RANKS, dpRank: 0 });
  try {
    const nothing = await shareOf(() => delay(SECONDS * 1000));
    console.log(`no watch: ${nothing.toFixed(2)} % of one core`);
    for (const latencyMs of [5, 20, 50]) {
      let looks = 0;
      const share = await shareOf(async (signal) => {
        looks = await watch(path, latencyMs, signal);
      });
      console.log(
        `watchLatencyMs ${latencyMs}: ${share.toFixed(2)} %, ${looks.toFixed(0)} looks a second`,
      );
    }
  } finally {
    removeSlotFile(path);
  }
}

if (import.meta.main) await main();
