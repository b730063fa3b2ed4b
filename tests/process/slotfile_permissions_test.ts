/** What a service has to be allowed, and what it is told when it is not. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { outputOf, runDeno } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";
import { TempFolder } from "../support/temp_folder.ts";

const MOD = new URL("../../mod.ts", import.meta.url).href;
const SERVICE = new URL("./fixtures/print_loads.ts", import.meta.url).href;

/** A program that catches what a statement throws, and prints it. */
function catching(statement: string): string {
  return `import * as loadslots from ${JSON.stringify(MOD)};
    try {
      ${statement}
      console.log("done");
    } catch (error) {
      console.log(JSON.stringify([error instanceof Deno.errors.NotCapable, error.message]));
    }`;
}

Deno.test("a service that may use FFI and read files reads a live slot file", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 3, dpRank: 2 });
  writer.write(createLoadSnapshot({ dpRank: 2, numRunningReqs: 7, timestamp: Date.now() / 1000 }));
  const output = await outputOf(["--allow-ffi", "--allow-read", SERVICE, file.path]);
  assert.deepEqual(JSON.parse(output), {
    loads: [[2, 7]],
    states: ["unreported", "unreported", "live"],
  });
});

Deno.test("a service that may not use FFI is told which flag is missing", async () => {
  using file = new SlotPath();
  using folder = new TempFolder();
  const path = JSON.stringify(file.path);
  for (
    const statement of [
      `new loadslots.ShmLoadSnapshotReader(${path});`,
      `new loadslots.ShmLoadSnapshotWriter(${path}, { dpSize: 1, dpRank: 0 });`,
      `loadslots.removeSlotFile(${path});`,
    ]
  ) {
    const script = folder.put("service.ts", catching(statement));
    const [isNotCapable, message] = JSON.parse(await outputOf(["--allow-read", script]));
    assert(isNotCapable);
    assert.match(message, /--allow-ffi/);
    assert.equal(file.exists(), false);
  }
});

Deno.test("without FFI the error is not caught by itself: the service ends", async () => {
  using file = new SlotPath();
  const { code, stdout, stderr } = await runDeno(["--allow-read", SERVICE, file.path]);
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /NotCapable: Requires ffi access .*--allow-ffi/);
});

Deno.test("importing the module needs no permission and opens nothing", async () => {
  using folder = new TempFolder();
  const script = folder.put(
    "import.ts",
    catching(`console.log(Object.keys(loadslots).length > 9);`),
  );
  assert.equal(await outputOf([script]), "true\ndone\n");
  const denied = ["ffi", "read", "write", "net", "env", "sys", "run"].map((name) =>
    `--deny-${name}`
  );
  assert.equal(await outputOf([...denied, script]), "true\ndone\n");
});

Deno.test("what needs no file works without any permission", async () => {
  using folder = new TempFolder();
  const script = folder.put(
    "pure.ts",
    catching(`
      const { createLoadSnapshot, decodeLoadSnapshot, encodeLoadSnapshot, toDict } = loadslots;
      const load = createLoadSnapshot({ dpRank: 3, queues: { waiting: 2 } });
      const back = decodeLoadSnapshot(encodeLoadSnapshot(load));
      console.log(toDict(back).dp_rank, loadslots.shmPathFor("4c00ec5647f7"));`),
  );
  assert.equal(
    await outputOf([script]),
    "3 /dev/shm/sglang_loads_4c00ec5647f7_b4fb99a3.shm\ndone\n",
  );
});
