// deno-lint-ignore-file no-console -- the figures are printed
/** Many lives of a receiver in the middle of a flood: each ends at once, and nothing piles up. */

import assert from "node:assert/strict";
import { Child } from "../support/child.ts";
import { matches } from "../support/raw_libc.ts";
import { TempIpc } from "../support/zmq.ts";
import type { KvRound } from "./fixtures/kv_rounds.ts";

const ROUNDS = 100;
const SETTLED = 20;
const PERMISSIONS = ["--allow-ffi", "--allow-read"];
const fixture = (name: string) => new URL(`./fixtures/${name}`, import.meta.url).href;

function most(rounds: readonly KvRound[], what: "descriptors" | "threads" | "rss"): number {
  return Math.max(...rounds.map((round) => round[what]));
}

Deno.test("a receiver that is stopped under load, 100 times, ends at once and leaves nothing", async () => {
  using ipc = new TempIpc();
  await using _flood = Child.deno([...PERMISSIONS, fixture("kv_flood.ts"), ipc.endpoint, "good"]);
  await using child = Child.deno(
    [...PERMISSIONS, fixture("kv_rounds.ts"), ipc.endpoint, String(ROUNDS)],
  );
  const rounds: KvRound[] = [];
  for (let n = 0; n < ROUNDS; n++) rounds.push(JSON.parse(await child.line()));
  const { code, signal, stderr } = await child.end();
  assert.deepEqual([code, signal, stderr], [0, null, ""]);

  for (const { accepted, iterated } of rounds) {
    assert(accepted >= 1000 && iterated > 0, `${accepted} accepted, ${iterated} iterated`);
  }
  const stops = rounds.map(({ stopMs }) => stopMs).sort((a, b) => a - b);
  const early = rounds.slice(SETTLED, SETTLED * 2);
  const late = rounds.slice(-SETTLED);
  console.log(
    `${ROUNDS} stops under load: median ${stops[ROUNDS / 2]!.toFixed(1)} ms, ` +
      `longest ${stops.at(-1)!.toFixed(1)} ms; ` +
      (["descriptors", "threads", "rss"] as const)
        .map((what) => `${what} ${most(early, what)} -> ${most(late, what)}`).join(", "),
  );
  // Half of them: a busy machine may hold up any one.
  assert(stops[ROUNDS / 2]! < 200, `${stops[ROUNDS / 2]}`);
  // One worker more or less may be on its way out.
  assert(most(late, "descriptors") <= most(early, "descriptors") + 8);
  assert(most(late, "threads") <= most(early, "threads") + 2);
  // Of memory, what is left when the collector has been: its highest point is a matter of when it
  // comes, and swings by 50 MB on a busy machine; what is kept raises the lowest.
  const kept = (some: readonly KvRound[]) => Math.min(...some.map(({ rss }) => rss));
  assert(kept(rounds.slice(-3 * SETTLED)) <= kept(early) + 50_000_000);
  assert.deepEqual(matches(`${ipc.path}*`), []);
});
