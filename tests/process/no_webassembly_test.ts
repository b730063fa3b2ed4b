/** Readers where V8 was told to make no code, and has no WebAssembly then: slower, no more. */

import assert from "node:assert/strict";
import { Child } from "../support/child.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";
import { SlotPath } from "../support/slot_path.ts";

const READER = new URL("./fixtures/plain_reader.ts", import.meta.url).href;

Deno.test("a reader without WebAssembly reads what is published, restarts too", async () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [loadSlot({ numRunningReqs: 0 })] }));
  const permissions = ["--allow-ffi", "--allow-read"];
  await using child = Child.deno(["--v8-flags=--jitless", ...permissions, READER, file.path]);
  assert.equal(await child.line(), "undefined");
  for (let n = 1; n <= 10; n++) {
    file.patch(12, loadSlot({ numRunningReqs: n }));
    assert.deepEqual(await child.ask("read"), [n]);
  }
  const slots = [loadSlot({ numRunningReqs: 70 }), loadSlot({ dpRank: 1, numRunningReqs: 71 })];
  file.put(slotFileBytes({ slots }));
  assert.deepEqual(await child.ask("read"), [70, 71]);
  assert.equal((await child.end()).code, 0);
});
