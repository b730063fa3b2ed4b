/** On a terminal Deno asks for a permission that is missing, instead of refusing it. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ensurePeers } from "../peers/setup.ts";
import { SlotPath } from "../support/slot_path.ts";

const peers = await ensurePeers();
// A pseudo-terminal needs a language that can fork; where the peers' Python is missing, that is
// told by the tests that are about it.
const ignore = peers.state === "missing";

const at = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Runs Deno on a terminal; a prompt would be answered with no. */
async function runOnTerminal(
  ...args: readonly string[]
): Promise<{ code: number; output: string }> {
  assert.ok(peers.state === "ready");
  const { stdout } = await new Deno.Command(peers.python, {
    args: [
      ...[at("./fixtures/pseudo_terminal.py"), "80", "24", "n\n", "Allow?"],
      ...[Deno.execPath(), "run", "--quiet", "--allow-ffi", "--allow-read", ...args],
    ],
    stdin: "null",
  }).output();
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test("opening a collector asks for nothing but what it was given", { ignore }, async () => {
  using file = new SlotPath();
  const scenarios = at("./fixtures/collector_scenarios.ts");
  const args = [scenarios, "closes", "tcp://127.0.0.1:*", file.path];
  const { code, output } = await runOnTerminal(...args);
  assert.match(output, /^open tcp:\/\/127\.0\.0\.1:\d+\r\n$/);
  assert.equal(code, 0);
});

Deno.test("the example with several processes asks for nothing either", { ignore }, async () => {
  const example = at("../../examples/multi_node.ts");
  const { code, output } = await runOnTerminal("--allow-run", example, "--seconds", "1.5");
  assert.equal(code, 0, output);
  assert(!output.includes("Deno requests"), output);
  assert(output.includes("\x1b[32mlive"), output);
});
