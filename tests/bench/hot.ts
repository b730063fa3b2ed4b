// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * A process that keeps a processor busy for a while each time it is told to: it merely spins, or
 * it reads all ranks again and again.
 *
 * Usage: hot.ts spin|read SLOT-FILE, then lines with a number of milliseconds
 */

import { ShmLoadSnapshotReader } from "../../mod.ts";

const [mode, shm = ""] = Deno.args;
const reader = new ShmLoadSnapshotReader(shm);
const line = new Uint8Array(64);
console.log("{}");

for (let length; (length = Deno.stdin.readSync(line)) !== null;) {
  const end = performance.now() + Number(new TextDecoder().decode(line.subarray(0, length)));
  const { publications } = reader.stats();
  let calls = 0;
  while (performance.now() < end) {
    if (mode === "read") reader.readAll();
    calls++;
  }
  console.log(JSON.stringify({ calls, publications: reader.stats().publications - publications }));
}
Deno.exit();
