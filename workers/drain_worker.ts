/** The collector's worker: wires the socket, the slot file and the loop together. */

import { parentPort, workerData } from "node:worker_threads";
import { GroupWriter } from "../src/slotfile/group_writer.ts";
import { LENGTH_SIZE, VERSION } from "../src/slotfile/layout.ts";
import { acquireLibc } from "../src/slotfile/libc.ts";
import { ControlBlock } from "../src/zmq/control_block.ts";
import { DrainLoop } from "../src/zmq/drain_loop.ts";
import { DrainSource } from "../src/zmq/drain_source.ts";
import type { DrainWorkerData, DrainWorkerReady } from "../src/zmq/drain_worker_data.ts";
import { packError } from "../src/zmq/error_transfer.ts";
import { PullSocket } from "../src/zmq/socket.ts";
import type { WorkerMessage } from "../src/zmq/worker_handle.ts";

// What the lock of the slot file may cost: once when the worker starts, and in each batch.
const OPEN_PATIENCE_MS = 1000;
const PATIENCE_MS = 1;

function say(message: WorkerMessage<DrainWorkerReady>): void {
  parentPort!.postMessage(message);
}

function main(data: DrainWorkerData): void {
  const { dpSize, slotSize, shmPath } = data;
  using stack = new DisposableStack();
  const control = new ControlBlock(dpSize, data.control);
  const lease = stack.adopt(acquireLibc(shmPath), (lease) => lease.release());
  // The endpoint first: who does not get it must not touch a file that another collector fills.
  const socket = new PullSocket(data.endpoint, {
    maxMessageSize: slotSize - LENGTH_SIZE,
    receiveHighWaterMark: data.receiveHighWaterMark,
    curve: data.curve ?? undefined,
    allowInsecureBind: data.allowInsecureBind,
    libzmqPath: data.libzmqPath ?? undefined,
  });
  const source = stack.adopt(new DrainSource(socket, data.wakeupFd), (source) => source.close());
  const header = { version: VERSION, dpSize, slotSize };
  const writer = stack.adopt(
    new GroupWriter(shmPath, header, PATIENCE_MS, OPEN_PATIENCE_MS),
    (writer) => writer.close(),
  );
  say({ type: "ready", ready: { endpoint: socket.endpoint } });
  new DrainLoop(lease.libc, source, writer, control, dpSize).run();
}

try {
  main(workerData);
  say({ type: "closed" });
} catch (error) {
  say({ type: "failed", error: packError(error) });
}
