/** Programs that end, however they do, while their collector is open: they end at once. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Child, type ChildEnd, runDeno } from "../support/child.ts";
import { matches } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { TempIpc } from "../support/zmq.ts";

const SCENARIOS = new URL("./fixtures/collector_scenarios.ts", import.meta.url).href;
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const LOOPBACK = "tcp://127.0.0.1:*";
const PERMISSIONS = ["--allow-ffi", "--allow-read"];

async function endOf(scenario: string, endpoint = LOOPBACK): Promise<ChildEnd> {
  using file = new SlotPath();
  return await runDeno([...PERMISSIONS, SCENARIOS, scenario, endpoint, file.path]);
}

for (
  const [scenario, code, stderr] of [
    ["ends", 0, /^$/],
    ["ends with a poll that nobody waits for", 0, /^$/],
    ["throws", 1, /on purpose/],
    ["throws in a timer", 1, /on purpose/],
    ["rejects", 1, /on purpose/],
    ["exits", 7, /^$/],
    ["exits while it closes", 7, /^$/],
    ["closes", 0, /^$/],
    ["closes and exits", 7, /^$/],
  ] as const
) {
  Deno.test(`a program that ${scenario} ends with its own exit code`, async () => {
    using ipc = new TempIpc();
    for (const endpoint of [LOOPBACK, ipc.endpoint]) {
      const end = await endOf(scenario, endpoint);
      assert.deepEqual([end.code, end.signal], [code, null], end.stderr);
      assert.match(end.stdout, /^open (tcp|ipc):.*\n$/);
      assert.match(end.stderr, stderr);
      assert(!end.stderr.includes("worker"), end.stderr);
    }
    if (scenario === "closes") assert.deepEqual(matches(`${ipc.path}*`), []);
  });
}

Deno.test("a program that exits while its collector opens ends with its own exit code", async () => {
  for (let round = 0; round < 6; round++) {
    using file = new SlotPath();
    const path = file.beside("x".repeat(round));
    const args = [...PERMISSIONS, SCENARIOS, "exits while it opens", LOOPBACK, path];
    const end = await runDeno(args);
    assert.deepEqual([end.code, end.signal, end.stderr], [7, null, ""]);
  }
});

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  Deno.test(`${signal} ends a program with an open collector`, async () => {
    using file = new SlotPath();
    await using child = Child.deno([...PERMISSIONS, SCENARIOS, "watches", LOOPBACK, file.path]);
    await child.line();
    child.kill(signal);
    assert.equal((await child.status).signal, signal);
  });
}

for (
  const [permissions, granted, wanted] of [
    [
      "only --allow-ffi",
      ["--allow-ffi"],
      /NotCapable: Requires read access to ".*drain_worker\.ts"/,
    ],
    [
      "--allow-ffi and the repository to read",
      ["--allow-ffi", `--allow-read=${ROOT}`],
      /NotCapable: Requires read access to ".*manifest\.json"/,
    ],
    ["only --allow-read", ["--allow-read"], /NotCapable: Requires ffi access/],
    ["no permission", [], /NotCapable: Requires ffi access/],
  ] as const
) {
  Deno.test(`with ${permissions} opening fails with Deno's own error`, async () => {
    using file = new SlotPath();
    const { code, stderr } = await runDeno([...granted, SCENARIOS, "ends", LOOPBACK, file.path]);
    assert.equal(code, 1);
    assert.match(stderr, wanted);
    assert.deepEqual(file.all(), []);
  });
}

Deno.test("a collector that stood still for a while with its whole process is not silent", async () => {
  using file = new SlotPath();
  await using child = Child.deno([...PERMISSIONS, SCENARIOS, "watches", LOOPBACK, file.path]);
  await child.line();
  child.kill("SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  child.kill("SIGCONT");
  // The heartbeat is looked for each second, and three in a row have to be missed.
  for (let look = 0; look < 5; look++) {
    const { states } = await child.ask<{ states: string[] }>("look");
    assert.deepEqual(states, ["unreported", "unreported"]);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const { code, stdout, stderr } = await child.end();
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /\nclosed null\n$/);
});
