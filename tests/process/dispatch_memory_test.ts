/** A dispatch allocates nothing: what it needs was taken when the budget was made. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const FIXTURE = fileURLToPath(new URL("fixtures/dispatch_memory.ts", import.meta.url));

for (const [ranks, chunks] of [[8, 50], [512, 10]] as const) {
  Deno.test(`${chunks * 20_000} dispatches over ${ranks} ranks leave nothing on the heap`, async () => {
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--v8-flags=--expose-gc", FIXTURE, String(ranks), String(chunks)],
      stdin: "null",
    }).output();
    assert(success, new TextDecoder().decode(stderr));
    const bytes: number[] = JSON.parse(new TextDecoder().decode(stdout));
    assert.equal(bytes.length, chunks);
    // What a dispatch leaves, it leaves in each chunk: 12 bytes or more. A chunk in which the compiler
    // is at work counts something too, but not most of them do.
    const most = bytes.toSorted((a, b) => a - b)[Math.floor(bytes.length / 2)]!;
    assert(most < 1, `bytes per dispatch: ${bytes.map((value) => value.toFixed(2))}`);
  });
}
