/** A worker as the main isolate holds it: starting, failing in each way there is, and stopping. */

import assert from "node:assert/strict";
import { SlotFileError, WorkerFailedError } from "../../src/errors.ts";
import { ControlBlock } from "../../src/zmq/control_block.ts";
import { Wakeup } from "../../src/zmq/wakeup.ts";
import { WorkerHandle } from "../../src/zmq/worker_handle.ts";
import { holdings, returnTo } from "../support/collector.ts";
import type { Script, ScriptedWorkerData } from "../support/scripted_worker.ts";

const MODULE = new URL("../support/scripted_worker.ts", import.meta.url);

interface Started {
  readonly handle: WorkerHandle<string>;
  readonly wakeup: Wakeup;
  /** Lets the worker go on to do what it is to do. */
  release(): void;
}

async function start(script: Script, module: URL = MODULE): Promise<Started> {
  const control = new ControlBlock(1);
  const wakeup = new Wakeup();
  const release = new Int32Array(new SharedArrayBuffer(4));
  const data: ScriptedWorkerData = { script, control: control.buffer, release: release.buffer };
  const handle = await WorkerHandle.start<string>(module, data, control, wakeup);
  return {
    handle,
    wakeup,
    release() {
      Atomics.store(release, 0, 1);
      Atomics.notify(release, 0);
    },
  };
}

Deno.test("a worker that was asked to stop has ended without a failure", async () => {
  const before = await holdings();
  const { handle, release } = await start("works");
  release();
  assert.equal(handle.ready, "works");
  await Promise.all([handle.stop(), handle.stop()]);
  assert.equal(await handle.closed, null);
  await returnTo(before);
});

for (
  const [script, message] of [
    ["throws before it is ready", /on purpose/],
    ["exits before it is ready", /^Cannot start worker: it exited$/],
    ["refuses", /^on purpose$/],
  ] as const
) {
  Deno.test(`a worker that ${script} is not started, and nothing is left`, async () => {
    const before = await holdings();
    await assert.rejects(start(script), (error) => {
      assert(error instanceof Error);
      assert.match(error.message, message);
      if (script === "refuses") {
        assert(error instanceof SlotFileError);
        assert.deepEqual([error.reason, error.path, error.syscall], ["magic", "/dev/shm/x", null]);
      }
      return true;
    });
    await returnTo(before);
  });
}

Deno.test("a worker whose module is not there is not started", async () => {
  const before = await holdings();
  await assert.rejects(start("works", new URL("./nowhere.ts", MODULE)));
  await returnTo(before);
});

for (
  const [script, failure, message] of [
    ["throws", "crashed", "Cannot receive any more: on purpose"],
    ["rejects", "crashed", "Cannot receive any more: on purpose"],
    ["fails", "crashed", "Cannot receive any more: on purpose"],
    ["exits", "exited", "Cannot receive any more: the worker has ended"],
  ] as const
) {
  Deno.test(`a worker that ${script} later is told as one that ${failure}`, async () => {
    const before = await holdings();
    const { handle, release } = await start(script);
    release();
    const reason = await handle.hold(handle.closed);
    assert(reason instanceof WorkerFailedError);
    assert.deepEqual([reason.failure, reason.message], [failure, message]);
    if (script === "fails") {
      assert(reason.cause instanceof SlotFileError);
      assert.deepEqual([reason.cause.reason, reason.cause.errno], ["no-space", "ENOSPC"]);
    } else if (failure === "crashed") {
      assert(reason.cause instanceof Error);
      assert.match(reason.cause.message, /on purpose/);
    }
    await handle.stop();
    assert.equal(await handle.closed, reason, "the first reason stays");
    await returnTo(before);
  });
}

Deno.test("a worker that shows no sign of life is told as silent, and may still be stopped", async () => {
  const before = await holdings();
  const { handle, release } = await start("stands still");
  const reason = await handle.hold(handle.closed);
  assert(reason instanceof WorkerFailedError);
  assert.equal(reason.failure, "silent");
  release();
  await handle.stop();
  await returnTo(before);
});

Deno.test("a worker that does not stop is left alone after a while", async () => {
  const before = await holdings();
  const { handle, wakeup, release } = await start("stands still");
  try {
    await handle.stop();
    const reason = await handle.closed;
    assert(reason instanceof WorkerFailedError);
    assert.equal(reason.failure, "silent");
  } finally {
    release();
    // It keeps its descriptor, which the worker may wait for.
    wakeup.close();
  }
  await returnTo(before);
});
