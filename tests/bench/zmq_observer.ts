// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Looks at a slot file without pause, and tells how old each snapshot was when it was first seen.
 *
 * Usage: zmq_observer.ts PATH, then lines with a number of seconds
 */

import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { TextLineStream } from "./text_lines.ts";

const RANKS = 8;

/** The wall clock, finer than Date.now(). */
const nowMs = () => performance.timeOrigin + performance.now();

function observe(reader: ShmLoadSnapshotReader, seconds: number): number[] {
  const seen = new Array<number>(RANKS).fill(0);
  const ages: number[] = [];
  const beginMs = nowMs();
  for (let now = beginMs; now < beginMs + seconds * 1000; now = nowMs()) {
    for (const { dpRank, timestamp } of reader.readAll()) {
      if (timestamp === seen[dpRank] || timestamp * 1000 < beginMs) continue;
      seen[dpRank] = timestamp;
      ages.push((nowMs() - timestamp * 1000) * 1e6);
    }
  }
  return ages.sort((a, b) => a - b);
}

using reader = new ShmLoadSnapshotReader(Deno.args[0]!);
const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(
  new TextLineStream(),
);
console.log("{}");
for await (const line of lines) {
  const ages = observe(reader, Number(line));
  const at = (share: number) => ages[Math.floor(ages.length * share)] ?? 0;
  const quantiles = { p50: at(0.5), p99: at(0.99), p999: at(0.999) };
  console.log(JSON.stringify({ count: ages.length, ...quantiles }));
}
