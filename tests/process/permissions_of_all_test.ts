/** The least that has to be allowed, for every name of mod.ts; and what is said where it is not. */

import assert from "node:assert/strict";
import { outputOf } from "../support/child.ts";

const ALL = new URL("./fixtures/all_of_mod.ts", import.meta.url).href;

/** Openers that need no file of libzmq's or of a worker's: FFI is enough. */
const FFI_ONLY = [
  ...["ShmLoadSnapshotWriter", "ShmLoadSnapshotReader", "DpRouter", "createLoadSnapshotWriter"],
  ...["createLoadSnapshotReader", "SlotFilePublisher", "removeSlotFile"],
];

async function run(...args: readonly string[]): Promise<unknown> {
  return JSON.parse(await outputOf(args));
}

const names = await run("--allow-read", ALL, "names") as string[];

Deno.test("FFI and reading files are enough for everything in mod.ts", async () => {
  assert.deepEqual(await run("--allow-ffi", "--allow-read", ALL), { unused: [] });
});

Deno.test("nothing that would be allowed besides is asked for", async () => {
  const denied = ["write", "net", "env", "sys", "run", "import"].map((what) => `--deny-${what}`);
  const args = ["--allow-ffi", "--allow-read", ...denied, ALL];
  assert.deepEqual(await run(...args), { unused: [] });
});

for (const name of names) {
  Deno.test(`without FFI, ${name} tells that flag`, async () => {
    const [isNotCapable, message] = await run("--allow-read", ALL, name) as [boolean, string];
    assert(isNotCapable, message);
    assert.match(message, /--allow-ffi/);
  });

  const isEnough = FFI_ONLY.includes(name);
  const what = isEnough ? "works, or finds no file" : "tells the flag";
  Deno.test(`with FFI and no reading of files, ${name} ${what}`, async () => {
    const result = await run("--allow-ffi", ALL, name) as [boolean, string] | null;
    if (isEnough) {
      // Nobody has published there: a router finds no rank. That is not about permissions.
      if (result !== null) assert.equal(result[0], false, result[1]);
      return;
    }
    assert(result !== null && result[0], result?.[1]);
    assert.match(result[1], /--allow-read/);
  });
}
