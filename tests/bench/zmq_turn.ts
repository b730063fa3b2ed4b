// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * One turn of our collector's loop, without its thread: drain, check and write what is there.
 *
 * Usage: zmq_turn.ts PATH, then "endpoint" or "turn"
 */

import { GroupWriter } from "../../src/slotfile/group_writer.ts";
import { SLOT_SIZE, VERSION } from "../../src/slotfile/layout.ts";
import { acquireLibc } from "../../src/slotfile/libc.ts";
import { ControlBlock } from "../../src/zmq/control_block.ts";
import { DrainLoop } from "../../src/zmq/drain_loop.ts";
import { DrainSource } from "../../src/zmq/drain_source.ts";
import { PullSocket } from "../../src/zmq/socket.ts";
import { Wakeup } from "../../src/zmq/wakeup.ts";
import { TextLineStream } from "./text_lines.ts";

const RANKS = 8;

using stack = new DisposableStack();
const lease = stack.adopt(acquireLibc("bench"), (lease) => lease.release());
const wakeup = stack.adopt(new Wakeup(), (wakeup) => wakeup.close());
const socket = new PullSocket("tcp://127.0.0.1:*", { maxMessageSize: SLOT_SIZE - 4 });
const source = stack.adopt(new DrainSource(socket, wakeup.fd), (source) => source.close());
const header = { version: VERSION, dpSize: RANKS, slotSize: SLOT_SIZE };
const writer = stack.adopt(
  new GroupWriter(Deno.args[0]!, header, 1, 1000),
  (writer) => writer.close(),
);
const control = new ControlBlock(RANKS);
const loop = new DrainLoop(lease.libc, source, writer, control, RANKS);
// A loop that is to stop makes one turn, and ends.
control.stop();
const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(
  new TextLineStream(),
);
console.log("{}");
for await (const line of lines) {
  if (line === "endpoint") {
    console.log(JSON.stringify({ endpoint: socket.endpoint }));
    continue;
  }
  const { received } = control.counts();
  const begin = performance.now();
  loop.run();
  const ns = (performance.now() - begin) * 1e6;
  console.log(JSON.stringify({ ns, count: control.counts().received - received }));
}
