// deno-lint-ignore-file no-console -- the figures are printed
/** Many lives of a collector in one process: nothing is lost, and nothing piles up. */

import assert from "node:assert/strict";
import { Child } from "../support/child.ts";

const ROUNDS = 200;
const SETTLED = 20;
const FIXTURE = new URL("./fixtures/collector_rounds.ts", import.meta.url).href;

interface Round {
  readonly received: number;
  readonly published: number;
  readonly superseded: number;
  readonly refusedRank: number;
  readonly descriptors: number;
  readonly threads: number;
  readonly rss: number;
}

/** What is held at most, over some rounds: a thread that ended is gone only a moment later. */
function most(rounds: readonly Round[], what: "descriptors" | "threads" | "rss"): number {
  return Math.max(...rounds.map((round) => round[what]));
}

Deno.test("200 rounds of open, 1,000 messages and close lose nothing and keep nothing", async () => {
  const begin = performance.now();
  await using child = Child.deno(["--allow-ffi", "--allow-read", FIXTURE, String(ROUNDS)]);
  const rounds: Round[] = [];
  for (let n = 0; n < ROUNDS; n++) rounds.push(JSON.parse(await child.line()));
  const { code, signal, stderr } = await child.end();
  assert.deepEqual([code, signal, stderr], [0, null, ""]);
  const seconds = (performance.now() - begin) / 1000;

  for (const { received, published, superseded, refusedRank } of rounds) {
    assert.equal(received, 1000);
    assert.equal(refusedRank, 100);
    assert.equal(published + superseded, 900);
  }
  const early = rounds.slice(SETTLED, SETTLED * 2);
  const late = rounds.slice(-SETTLED);
  const total = rounds.reduce((sum, { superseded }) => sum + superseded, 0);
  console.log(
    `${ROUNDS} rounds in ${seconds.toFixed(1)} s, ${total} of ${ROUNDS * 1000} superseded; ` +
      (["descriptors", "threads", "rss"] as const)
        .map((what) => `${what} ${most(early, what)} -> ${most(late, what)}`).join(", "),
  );
  // One worker more or less may be on its way out.
  assert(most(late, "descriptors") <= most(early, "descriptors") + 8);
  assert(most(late, "threads") <= most(early, "threads") + 2);
  // Of memory, what is left when the collector has been: its highest point is a matter of when it
  // comes, and swings by 50 MB on a busy machine; what is kept raises the lowest.
  const kept = (some: readonly Round[]) => Math.min(...some.map(({ rss }) => rss));
  assert(kept(rounds.slice(-3 * SETTLED)) <= kept(early) + 50_000_000);
});
