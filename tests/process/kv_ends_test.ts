/** Processes that come, go and stand still, with a receiver or an emitter open. */

import assert from "node:assert/strict";
import { KvMetricsEmitter } from "../../src/kv_metrics/emitter.ts";
import { Child, outputOf, runDeno } from "../support/child.ts";
import { metricsOf, TestReceiver } from "../support/kv_receiver.ts";
import { matches } from "../support/raw_libc.ts";
import { until } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";

const SCENARIOS = new URL("./fixtures/kv_scenarios.ts", import.meta.url).href;
const PERMISSIONS = ["--allow-ffi", "--allow-read"];
const NOBODY = "tcp://127.0.0.1:9";
const LOOPBACK = "tcp://127.0.0.1:*";
const ignore = Deno.build.os !== "linux";

function argsOf(name: string, endpoint: string): string[] {
  return [...PERMISSIONS, SCENARIOS, name, endpoint];
}

function stateOf({ receiver }: TestReceiver): string {
  return receiver.health()[0]!.state;
}

Deno.test("a sender that is killed leaves its last value, which turns stale; the next one is live", async () => {
  await using opened = await TestReceiver.open({ staleAfterMs: 300 });
  let last = 0;
  for (let life = 0; life < 3; life++) {
    await using sender = Child.deno(argsOf("emits", opened.endpoint));
    await until("it is heard", () => stateOf(opened) === "live" && opened.numberOf(0)! > 0);
    // It counts from 1 again: this is not the one that was killed.
    await until("it counts", () => opened.numberOf(0)! !== last && opened.numberOf(0)! > 5);
    sender.kill("SIGKILL");
    await sender.status;
    await until("it is stale", () => stateOf(opened) === "stale");
    last = opened.numberOf(0)!;
    assert(last > 5);
  }
  assert.deepEqual(opened.refused(), {});
});

Deno.test("a sender that stands still turns stale, and live again when it goes on", async () => {
  await using opened = await TestReceiver.open({ staleAfterMs: 300 });
  await using sender = Child.deno(argsOf("emits", opened.endpoint));
  await until("it is heard", () => stateOf(opened) === "live");
  sender.kill("SIGSTOP");
  await until("it is stale", () => stateOf(opened) === "stale");
  const last = opened.numberOf(0)!;
  sender.kill("SIGCONT");
  await until("it is live again", () => stateOf(opened) === "live" && opened.numberOf(0)! > last);
});

Deno.test("an emitter does not wait for a receiver that stands still", async () => {
  using ipc = new TempIpc();
  await using child = Child.deno(argsOf("waits", ipc.endpoint));
  assert.equal(await child.line(), "open");
  child.kill("SIGSTOP");
  using emitter = new KvMetricsEmitter(ipc.endpoint);
  for (let number = 1; number <= 100_000; number++) emitter.emit(metricsOf(0, number));
  assert.equal(emitter.stats().queued, 1);
  child.kill("SIGCONT");
  assert.match(await child.line(), /^\d+$/);
  assert.equal((await child.end()).code, 0);
});

Deno.test("neither an emitter nor a receiver that nobody waits for keeps its process", async () => {
  assert.equal(await outputOf(argsOf("leavesAnEmitter", NOBODY)), "queued\n");
  assert.match(await outputOf(argsOf("leavesAReceiver", LOOPBACK)), /^tcp:/);
});

Deno.test("a loop that waits for a message keeps its process, until it has come", async () => {
  using ipc = new TempIpc();
  await using child = Child.deno(argsOf("waits", ipc.endpoint));
  assert.equal(await child.line(), "open");
  using emitter = new KvMetricsEmitter(ipc.endpoint);
  emitter.emit(metricsOf(0, 7));
  assert.equal(await child.line(), "7");
  const { code, stderr } = await child.end();
  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(matches(`${ipc.path}*`), []);
});

Deno.test("a process that throws or exits with a receiver open ends, and with its own code", async () => {
  const { code, stderr } = await runDeno(argsOf("throws", LOOPBACK));
  assert.equal(code, 1);
  assert.match(stderr, /on purpose/);
  assert.equal((await runDeno(argsOf("exits", LOOPBACK))).code, 7);
});

Deno.test("what a killed receiver left at an ipc endpoint is taken over", { ignore }, async () => {
  using ipc = new TempIpc();
  using emitter = new KvMetricsEmitter(ipc.endpoint);
  for (let life = 1; life <= 3; life++) {
    {
      await using child = Child.deno(argsOf("waits", ipc.endpoint));
      assert.equal(await child.line(), "open");
      child.kill("SIGKILL");
      await child.status;
    }
    assert.equal(matches(`${ipc.path}*`).length, 2);
    await using opened = await TestReceiver.open({ endpoint: ipc.endpoint });
    await until("it is heard", () => {
      emitter.emit(metricsOf(0, life));
      return opened.numberOf(0) === life;
    });
  }
  assert.deepEqual(matches(`${ipc.path}*`), []);
});

Deno.test("without permission the error is Deno's own, and says which one", async () => {
  for (const name of ["leavesAnEmitter", "leavesAReceiver"]) {
    const errorWith = async (permission: string) =>
      (await runDeno([permission, SCENARIOS, name, LOOPBACK.replace("*", "9")])).stderr;
    assert.match(await errorWith("--allow-read"), /NotCapable: Requires ffi access/);
    assert.match(await errorWith("--allow-ffi"), /NotCapable: Requires read access/);
  }
});
