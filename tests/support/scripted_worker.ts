/** A worker that fails as it is told to, for tests of the handle that the main isolate has on it. */

import process from "node:process";
import { parentPort, workerData } from "node:worker_threads";
import { SlotFileError } from "../../src/errors.ts";
import { ControlBlock } from "../../src/zmq/control_block.ts";
import { packError } from "../../src/zmq/error_transfer.ts";
import type { WorkerMessage } from "../../src/zmq/worker_handle.ts";

/** What the worker does; all but the first three get ready first. */
export type Script =
  | "throws before it is ready"
  | "exits before it is ready"
  | "refuses"
  | "throws"
  | "rejects"
  | "exits"
  | "fails"
  | "stands still"
  | "works";

/** What it is given. */
export interface ScriptedWorkerData {
  readonly script: Script;
  readonly control: SharedArrayBuffer;
  /** One word: a worker that got ready waits until it is 1, without a sign of life. */
  readonly release: SharedArrayBuffer;
}

const data: ScriptedWorkerData = workerData;
const control = new ControlBlock(1, data.control);

function say(message: WorkerMessage<string>): void {
  parentPort!.postMessage(message);
}

function work(): void {
  while (!control.isStopping) {
    control.beat();
    Atomics.wait(new Int32Array(data.release), 0, 1, 10);
  }
  say({ type: "closed" });
}

function afterReady(): void {
  switch (data.script) {
    case "throws":
      throw new TypeError("on purpose");
    case "rejects":
      void Promise.reject(new TypeError("on purpose"));
      return;
    case "exits":
      return process.exit(3);
    case "fails":
      return say({
        type: "failed",
        error: packError(
          new SlotFileError("no-space", "/dev/shm/x", "on purpose", { errno: "ENOSPC" }),
        ),
      });
    case "stands still":
      return say({ type: "closed" });
    default:
      return work();
  }
}

switch (data.script) {
  case "throws before it is ready":
    throw new TypeError("on purpose");
  case "exits before it is ready":
    process.exit(3);
    break;
  case "refuses":
    say({
      type: "failed",
      error: packError(new SlotFileError("magic", "/dev/shm/x", "on purpose")),
    });
    break;
  default:
    say({ type: "ready", ready: data.script });
    Atomics.wait(new Int32Array(data.release), 0, 0);
    afterReady();
}
