/** The examples of KvMetrics as a user runs them: what they show, and what they leave behind. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Child, type ChildEnd } from "../support/child.ts";
import { KvMetricsEmitter } from "../../src/kv_metrics/emitter.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { metricsOf } from "../support/kv_receiver.ts";
import { matches } from "../support/raw_libc.ts";
import { until } from "../support/wait.ts";
import { bytesOf, TempIpc } from "../support/zmq.ts";

const PERMISSIONS = ["--allow-ffi", "--allow-read"];
const RUN = [...PERMISSIONS, "--allow-run"];
const TITLE =
  " rank    run     of   wait       tokens        pages               usage    hit  state";

function start(example: string, permissions: readonly string[], args: readonly string[]): Child {
  const path = fileURLToPath(new URL(`../../examples/${example}`, import.meta.url));
  return Child.deno([...permissions, path, ...args]);
}

async function run(
  example: string,
  permissions: readonly string[],
  args: readonly string[],
): Promise<ChildEnd> {
  await using child = start(example, permissions, args);
  return await child.end();
}

/** Waits for a line that matches. */
async function lineOf(child: Child, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const match = pattern.exec(await child.line());
    if (match !== null) return match;
  }
}

function isThere(pid: string): boolean {
  return matches(`/proc/${pid}`).length > 0;
}

Deno.test("emitter and receiver are two processes, and their values are shown", async () => {
  const { code, stdout, stderr } = await run("kv_metrics.ts", RUN, ["--once", "--ranks", "3"]);
  assert.deepEqual([code, stderr], [0, ""]);
  const lines = stdout.split("\n");
  assert.match(lines[0]!, /^tcp:\/\/127\.0\.0\.1:\d+ {2}[1-9]\d* messages$/);
  const pids = /^Process (\d+) receives, process (\d+) emits;/.exec(lines[1]!)!;
  assert.notEqual(pids[1], pids[2]);
  assert.equal(lines[3], TITLE);
  const ranks = lines.slice(4, 7);
  for (const [rank, line] of ranks.entries()) {
    assert.match(
      line,
      new RegExp(`^ {4}${rank} +\\d+ +96 +\\d+ .*/262k .*/4\\.10k .*% +\\d+% {2}live \\d`),
    );
  }
  assert.equal(lines.length, 8);
  assert.equal(isThere(pids[2]!), false, "the emitter has ended with it");
});

Deno.test("plain output is table below table, and the values move", async () => {
  const { code, stdout, stderr } = await run(
    "kv_metrics.ts",
    RUN,
    ["--plain", "--seconds", "3", "--interval-ms", "300", "--ranks", "2"],
  );
  assert.deepEqual([code, stderr], [0, ""]);
  assert(!stdout.includes("\x1b"));
  const tables = stdout.split(TITLE).slice(1).map((table) => table.split("\n\n")[0]!);
  assert(tables.length >= 3, stdout);
  assert.notEqual(tables.at(-1), tables[0]);
});

Deno.test("the emitter ends with a receiver that is killed", async () => {
  await using child = start("kv_metrics.ts", RUN, ["--plain"]);
  const [, pid] = await lineOf(child, /process (\d+) emits/);
  assert.equal(isThere(pid!), true);
  child.kill("SIGKILL");
  await child.status;
  await until("the emitter has ended", () => !isThere(pid!));
});

Deno.test("an emitter that is killed is told, and the last values stay", async () => {
  await using child = start("kv_metrics.ts", RUN, ["--plain", "--interval-ms", "200"]);
  const [, pid] = await lineOf(child, /process (\d+) emits/);
  await lineOf(child, /^ {4}3 .* live /);
  Deno.kill(Number(pid), "SIGKILL");
  await lineOf(child, /^The emitter has ended, by SIGKILL/);
  await lineOf(child, /^ {4}3 .* live /);
  child.kill("SIGTERM");
  const { code, stderr } = await child.end();
  assert.deepEqual([code, stderr], [0, ""]);
});

Deno.test("with --receive-only it needs no more permission, and shows what is refused by kind", async () => {
  using ipc = new TempIpc();
  const args = ["--receive-only", "--plain", "--interval-ms", "100", "--ranks", "2"];
  await using child = start("kv_metrics.ts", PERMISSIONS, [...args, "--endpoint", ipc.endpoint]);
  await lineOf(child, /^ipc:\/\/.* {2}0 messages$/);
  using push = new PushSocket(ipc.endpoint);
  push.send(bytesOf("garbage"));
  using emitter = new KvMetricsEmitter(ipc.endpoint);
  emitter.emit(metricsOf(1, 7));
  await lineOf(child, /1 messages, 1 refused: encoding$/);
  await lineOf(child, /^ {4}0 +no report$/);
  await lineOf(child, /^ {4}1 +7 +128 +2 +512\/8\.19k +8\/128 .* 6% +50% {2}live /);
  child.kill("SIGINT");
  assert.equal((await child.end()).code, 0);
  assert.deepEqual(matches(`${ipc.path}*`), []);
});

Deno.test("without --allow-run it says which permission is missing", async () => {
  const { code, stderr } = await run("kv_metrics.ts", PERMISSIONS, ["--once"]);
  assert.equal(code, 1);
  assert.match(stderr, /run access/);
});

Deno.test("nobody to hear is exit code 1, and a wrong command line 2", async () => {
  const nobody = await run("kv_metrics.ts", PERMISSIONS, ["--receive-only", "--seconds", "0.5"]);
  assert.equal(nobody.code, 1);
  for (
    const args of [["--allow-insecure-bind"], ["--ranks", "0"], ["--endpoint", ""], [
      "--page-size",
      "x",
    ], ["--what"]]
  ) {
    const { code, stderr } = await run("kv_metrics.ts", PERMISSIONS, args);
    assert.equal(code, 2);
    assert.match(stderr, /deno run --allow-ffi --allow-read --allow-run examples\/kv_metrics\.ts/);
  }
});

Deno.test("the planner advises by itself, on a simulated engine", async () => {
  const args = ["--interval", "0.3", "--seconds", "4"];
  const { code, stdout, stderr } = await run("planner.ts", PERMISSIONS, args);
  assert.deepEqual([code, stderr], [0, ""]);
  const [first, ...advice] = stdout.trimEnd().split("\n");
  assert.match(first!, /^Watching 4 ranks at tcp:/);
  assert(advice.length >= 5, stdout);
  for (const line of advice) assert.match(line, /^\d\d:\d\d:\d\d {2}(up {2}|down|hold) {2}\S/);
});

Deno.test("the planner scales a real engine up, waits, and scales it down when it is idle", async () => {
  using ipc = new TempIpc();
  const args = ["--endpoint", ipc.endpoint, "--ranks", "1", "--interval", "0.2"];
  await using child = start("planner.ts", PERMISSIONS, args);
  await lineOf(child, / hold {2}no worker reports$/);
  using emitter = new KvMetricsEmitter(ipc.endpoint);
  const emit = (usage: number, waiting: number) =>
    emitter.emit({ ...metricsOf(0, 1), gpuCacheUsagePerc: usage, numRequestsWaiting: waiting });
  let load: readonly [number, number] = [0.95, 0];
  const timer = setInterval(() => emit(...load), 10);
  try {
    await lineOf(child, / up {4}\d+ % of the KV cache is used$/);
    await lineOf(child, / hold {2}.*, but the last change has \d s more to show its effect$/);
    load = [0.1, 0];
    await lineOf(child, / down {2}\d+ % of the KV cache is used, 0\.0 requests wait per worker$/);
  } finally {
    clearInterval(timer);
  }
  child.kill("SIGTERM");
  const { code, stderr } = await child.end();
  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(matches(`${ipc.path}*`), []);
});
