/** A KvMetrics receiver's worker: wires the socket, the shared block and the loop together. */

import { parentPort, workerData } from "node:worker_threads";
import { MAX_MESSAGE_BYTES, ReceiveLoop } from "../src/kv_metrics/receive_loop.ts";
import { ReceiveBlock } from "../src/kv_metrics/receive_block.ts";
import type {
  ReceiveWorkerData,
  ReceiveWorkerReady,
} from "../src/kv_metrics/receive_worker_data.ts";
import { acquireLibc } from "../src/slotfile/libc.ts";
import { DrainSource } from "../src/zmq/drain_source.ts";
import { packError } from "../src/zmq/error_transfer.ts";
import { PullSocket } from "../src/zmq/socket.ts";
import type { WorkerMessage } from "../src/zmq/worker_handle.ts";

function say(message: WorkerMessage<ReceiveWorkerReady>): void {
  parentPort!.postMessage(message);
}

function main(data: ReceiveWorkerData): void {
  using stack = new DisposableStack();
  const block = new ReceiveBlock(data, data.block);
  const lease = stack.adopt(acquireLibc(data.endpoint), (lease) => lease.release());
  const socket = new PullSocket(data.endpoint, {
    maxMessageSize: MAX_MESSAGE_BYTES,
    receiveHighWaterMark: data.receiveHighWaterMark,
    curve: data.curve ?? undefined,
    allowInsecureBind: data.allowInsecureBind,
    libzmqPath: data.libzmqPath ?? undefined,
  });
  const source = stack.adopt(new DrainSource(socket, data.wakeupFd), (source) => source.close());
  say({ type: "ready", ready: { endpoint: socket.endpoint } });
  new ReceiveLoop(lease.libc, source, block, data).run();
}

try {
  main(workerData);
  say({ type: "closed" });
} catch (error) {
  say({ type: "failed", error: packError(error) });
}
