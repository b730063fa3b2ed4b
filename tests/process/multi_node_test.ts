/** The example with several processes, as a user runs it: what it shows, and what it leaves behind. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Child, type ChildEnd } from "../support/child.ts";
import { Collector, payloadOf } from "../support/collector.ts";
import { matches } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { HANG_MS, sleep } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { peerTests } from "../peers/peer_tests.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/multi_node.ts", import.meta.url));
const HEADER = /^(\S+) -> (\S+) {2}(\d+) ranks?(?: {2}(\d+) publications\/s)?$/;
const PERMISSIONS = ["--allow-ffi", "--allow-read"];

const peerTest = await peerTests();

function start(args: readonly string[], permissions: readonly string[] = ["--allow-run"]): Child {
  return Child.deno([...PERMISSIONS, ...permissions, EXAMPLE, ...args]);
}

async function run(args: readonly string[], permissions?: readonly string[]): Promise<ChildEnd> {
  await using child = start(args, permissions);
  return await child.end();
}

/** Waits for a line that matches. */
async function lineOf(child: Child, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const match = pattern.exec(await child.line());
    if (match !== null) return match;
  }
}

/** The processes that a parent started as ranks, and that are still there. */
function ranksOf(parent: number): number[] {
  return matches("/proc/[0-9]*").filter((folder) => {
    try {
      const args = Deno.readTextFileSync(`${folder}/cmdline`).split("\0");
      return args.includes("--parent") && args.includes(String(parent));
    } catch {
      return false; // It ended meanwhile.
    }
  }).map((folder) => Number(folder.slice("/proc/".length)));
}

async function assertGone(parent: number): Promise<void> {
  const deadline = performance.now() + HANG_MS;
  while (ranksOf(parent).length > 0) {
    assert(performance.now() < deadline, `still there: ${ranksOf(parent)}`);
    await sleep(20);
  }
}

Deno.test("it shows one table of four ranks that push, and leaves nothing behind", async () => {
  await using child = start(["--once"]);
  const { code, stdout, stderr } = await child.end();
  assert.deepEqual([code, stderr], [0, ""]);
  const lines = stdout.split("\n");
  const [, endpoint, path, ranks, rate] = HEADER.exec(lines[0]!)!;
  assert.match(endpoint!, /^tcp:\/\/127\.0\.0\.1:\d+$/);
  assert.deepEqual([ranks, Number(rate) > 0], ["4", true]);
  assert.match(lines[1]!, /^Each rank is a process; .*: kill -STOP \d+$/);
  for (const [rank, line] of lines.slice(4, 8).entries()) {
    assert.match(line, new RegExp(`^ +${rank} .* live \\d\\.\\ds$`));
  }
  assert.match(lines[8]!, /^ +all +[1-9].* 4 live$/);
  assert.deepEqual(matches(`${path}*`), []);
  assert.deepEqual(ranksOf(child.pid), []);
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`${signal} ends it and its ranks in order, on ipc as well`, async () => {
    using ipc = new TempIpc();
    await using child = start(["--ranks", "2", "--endpoint", ipc.endpoint, "--interval-ms", "200"]);
    const [, endpoint, path] = await lineOf(child, HEADER);
    assert.equal(endpoint, ipc.endpoint);
    await lineOf(child, / 2 live$/);
    assert.equal(ranksOf(child.pid).length, 2);
    child.kill(signal);
    const { code, stderr } = await child.end();
    assert.deepEqual([code, stderr], [0, ""]);
    assert.deepEqual([...matches(`${path}*`), ...matches(`${ipc.path}*`)], []);
    assert.deepEqual(ranksOf(child.pid), []);
  });
}

Deno.test("a rank's process that is killed is told, and the others go on", async () => {
  await using child = start(["--ranks", "2", "--interval-ms", "200", "--plain"]);
  const [, pid] = await lineOf(child, /kill -STOP (\d+)$/);
  await lineOf(child, / 2 live$/);
  Deno.kill(Number(pid), "SIGKILL");
  await lineOf(child, /^Rank 1's process has ended, by SIGKILL$/);
  await lineOf(child, /^ +0 .* live 0\.\ds$/);
  child.kill("SIGINT");
  assert.equal((await child.end()).code, 0);
});

Deno.test("ranks whose collector was killed end by themselves", async () => {
  // A killed process removes nothing: the path is the test's own, and goes with it, at the very end.
  using file = new SlotPath();
  await using child = start(["--ranks", "2", "--interval-ms", "200", "--path", file.path]);
  await lineOf(child, / 2 live$/);
  child.kill("SIGKILL");
  await child.status;
  await assertGone(child.pid);
});

Deno.test("to only collect needs no permission to run, and the slot file that was named stays", async () => {
  using file = new SlotPath();
  const args = ["--collect-only", "--ranks", "2", "--path", file.path, "--interval-ms", "200"];
  await using child = start([...args, "--plain"], []);
  const [, endpoint, path] = await lineOf(child, HEADER);
  assert.equal(path, file.path);
  await lineOf(child, /^Nobody has pushed to tcp:.* yet$/);
  using push = new PushSocket(endpoint!);
  push.send(payloadOf(1, 12));
  await lineOf(child, /^ +1 +12 .* live \d\.\ds$/);
  push.send(payloadOf(7, 1));
  push.send(new Uint8Array(3));
  await lineOf(child, /^Messages were refused: 1 no load snapshot, 1 of a rank that is not in the/);
  child.kill("SIGINT");
  const { code, stderr } = await child.end();
  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(file.all(), [file.path]);
});

peerTest("SGLang's ranks are shown", async (peer) => {
  using file = new SlotPath();
  const args = ["--collect-only", "--ranks", "2", "--interval-ms", "200", "--path", file.path];
  await using child = start(args, []);
  const [, endpoint] = await lineOf(child, HEADER);
  const writer = await peer.openZmqWriter(endpoint!, { dpSize: 2, dpRank: 0 });
  await writer.write({ dp_rank: 0, timestamp: 1, num_running_reqs: 34 });
  await lineOf(child, /^ +0 +34 .* live \d\.\ds$/);
  await writer.close();
});

Deno.test("a collector that nobody pushed to ends with exit code 1", async () => {
  const { code, stdout } = await run(["--collect-only", "--seconds", "0.3", "--plain"], []);
  assert.equal(code, 1);
  assert.match(stdout, /\nNobody has pushed to tcp:\/\/127\.0\.0\.1:\d+ yet\n/);
});

Deno.test("what cannot be bound is told in one line, and no rank is started", async () => {
  await using collector = await Collector.open();
  using absent = new SlotPath();
  for (
    const [endpoint, says] of [
      [collector.reader.endpoint, /^Cannot bind tcp:.*: another socket is bound to it\n$/],
      ["tcp://*:*", /^Cannot bind tcp:\/\/\*:\*: other machines reach it, .*allowInsecureBind\n$/],
      ["udp://127.0.0.1:1", /^Cannot bind .*: not an endpoint of tcp:\/\/ or ipc:\/\/\n$/],
    ] as const
  ) {
    const end = await run(["--endpoint", endpoint, "--path", absent.path]);
    assert.deepEqual([end.code, end.stdout], [1, ""]);
    assert.match(end.stderr, says);
    assert.deepEqual(absent.all(), []);
  }
});

Deno.test("without the permission to start processes it says so", async () => {
  const { code, stdout, stderr } = await run([], []);
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /^Requires run access to .* --allow-run/);
});

for (
  const [what, flags, says] of [
    ["an unknown flag", ["--bogus"], "Unknown option '--bogus'"],
    ["no rank", ["--ranks", "0"], "--ranks takes a whole number from 1 to 64"],
    ["too many processes", ["--ranks", "65"], "--ranks takes a whole number from 1 to 64"],
    ["too many ranks", ["--collect-only", "--ranks", "513"], "from 1 to 512"],
    ["an empty endpoint", ["--endpoint="], "The endpoint is empty"],
  ] as const
) {
  Deno.test(`${what} is answered with the usage and exit code 2`, async () => {
    const { code, stdout, stderr } = await run(flags);
    assert.deepEqual([code, stdout], [2, ""]);
    assert(stderr.includes(says) && stderr.includes("examples/multi_node.ts [flags]"), stderr);
  });
}
