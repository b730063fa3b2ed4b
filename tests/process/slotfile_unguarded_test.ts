/** Readers where a mapping cannot be guarded: then the lock stands before every read. */

import assert from "node:assert/strict";
import { Child } from "../support/child.ts";
import { RawFile } from "../support/raw_libc.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";
import { SlotPath } from "../support/slot_path.ts";

const READER = new URL("./fixtures/unguarded_reader.ts", import.meta.url).href;
const MDWE = await hasMdwe();
// deno-lint-ignore no-console -- the reason for tests that are left out is printed
if (!MDWE) console.log("left out: this kernel cannot forbid new executable memory");
const ignore = !MDWE;

type Answer = readonly [
  dpSize: number | null,
  counts: number[],
  same: boolean,
  misses: number,
  unchanged: number,
];

/** Whether the kernel can, asked in a process of its own: it cannot be taken back. */
async function hasMdwe(): Promise<boolean> {
  using file = new SlotPath();
  await using child = Child.deno(["--allow-ffi", "--allow-read", READER, file.path]);
  return await child.line() === "forbidden";
}

function groupOf(dpSize: number, numRunningReqs: number): Uint8Array<ArrayBuffer> {
  const slots = Array.from({ length: dpSize }, (_, dpRank) => loadSlot({ dpRank, numRunningReqs }));
  return slotFileBytes({ slots });
}

/** Restarts a group in place, as SGLang does: all of it under the lock. */
function restart(file: SlotPath, dpSize: number, numRunningReqs: number): void {
  using _lock = file.hold("exclusive");
  using raw = new RawFile(file.path);
  const bytes = groupOf(dpSize, numRunningReqs);
  raw.truncate(bytes.length);
  raw.write(0, bytes);
}

Deno.test("a reader without a guard reads what is published", { ignore }, async () => {
  using file = new SlotPath();
  file.put(groupOf(3, 0));
  await using child = Child.deno(["--allow-ffi", "--allow-read", READER, file.path]);
  await child.line();
  for (let n = 1; n <= 20; n++) {
    file.patch(12 + 16_384, loadSlot({ dpRank: 1, numRunningReqs: n }));
    // Each rank is read again after all of them were, when nothing has changed.
    assert.deepEqual(await child.ask<Answer>("read"), [3, [0, n, 0], true, 0, 3 * n]);
  }
  assert.equal((await child.end()).code, 0);
});

Deno.test("a reader without a guard survives restarts with fewer ranks", { ignore }, async () => {
  using file = new SlotPath();
  file.put(groupOf(8, 0));
  await using child = Child.deno(["--allow-ffi", "--allow-read", READER, file.path]);
  await child.line();
  for (let n = 1; n <= 50; n++) {
    const dpSize = 1 + (n * 5) % 8;
    restart(file, dpSize, n);
    const counts = new Array<number>(dpSize).fill(n);
    assert.deepEqual((await child.ask<Answer>("read")).slice(0, 4), [dpSize, counts, true, 0]);
  }
  assert.equal((await child.end()).code, 0);
});

Deno.test("a reader without a guard gives its last values while the lock is taken", {
  ignore,
}, async () => {
  using file = new SlotPath();
  file.put(groupOf(2, 5));
  await using child = Child.deno(["--allow-ffi", "--allow-read", READER, file.path]);
  await child.line();
  assert.deepEqual(await child.ask<Answer>("read"), [2, [5, 5], true, 0, 2]);
  {
    using _lock = file.hold("exclusive");
    const [dpSize, counts, same, misses] = await child.ask<Answer>("read");
    assert.deepEqual([dpSize, counts, same], [2, [5, 5], true]);
    assert(misses > 0);
  }
  file.patch(12, loadSlot({ numRunningReqs: 6 }));
  const [, counts] = await child.ask<Answer>("read");
  assert.deepEqual(counts, [6, 5]);
});
