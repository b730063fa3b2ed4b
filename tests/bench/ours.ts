// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Our side of one case, in a process of its own: JavaScript that has run other cases before is
 * compiled for those as well, and slower.
 *
 * Usage: ours.ts CASE SLOT-FILE PUBLICATIONS RANKS ROUND-MS WARM-UP-MS
 */

import { CASES } from "./ours_cases.ts";
import { warmUp } from "./timing.ts";

const [name = "", shm = "", publications = "", ranks, roundMs, warmMs] = Deno.args;
const { timed, check } = CASES[name]!({
  shm,
  publications: publications === "-" ? new Uint8Array(0) : Deno.readFileSync(publications),
  ranks: Number(ranks),
});
const calls = warmUp(timed, Number(roundMs), Number(warmMs));
check();
console.log(JSON.stringify({ calls }));

// Blocking reads: nothing else goes on in this process, not even an event loop.
while ((Deno.stdin.readSync(new Uint8Array(64)) ?? 0) > 0) {
  const ns = timed(calls) / calls;
  check();
  console.log(JSON.stringify({ ns }));
}
Deno.exit();
