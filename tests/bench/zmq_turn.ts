// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Turns of our collector's loop, without its thread: drain, check and write eight messages each.
 *
 * Usage: zmq_turn.ts PATH, then "endpoint" or lines with a number of turns
 */

import { GroupWriter } from "../../src/slotfile/group_writer.ts";
import { SLOT_SIZE, VERSION } from "../../src/slotfile/layout.ts";
import { acquireLibc } from "../../src/slotfile/libc.ts";
import { ControlBlock } from "../../src/zmq/control_block.ts";
import { DrainLoop, type MessageSource } from "../../src/zmq/drain_loop.ts";
import { DrainSource } from "../../src/zmq/drain_source.ts";
import { NOTHING, PullSocket } from "../../src/zmq/socket.ts";
import { Wakeup } from "../../src/zmq/wakeup.ts";
import { TextLineStream } from "./text_lines.ts";

const RANKS = 8;

/** Hands out no more than a turn's messages, so that eight updates are written at a time. */
class Turnstile implements MessageSource {
  readonly #source: DrainSource;
  #left = 0;

  constructor(source: DrainSource) {
    this.#source = source;
  }

  get refusedPeers(): number {
    return 0;
  }

  open(): void {
    this.#left = RANKS;
  }

  wait(timeoutMs: number): void {
    this.#source.wait(timeoutMs);
  }

  receive(buffer: Uint8Array<ArrayBuffer>): number {
    return this.#left-- > 0 ? this.#source.receive(buffer) : NOTHING;
  }
}

using stack = new DisposableStack();
const lease = stack.adopt(acquireLibc("bench"), (lease) => lease.release());
const wakeup = stack.adopt(new Wakeup(), (wakeup) => wakeup.close());
const socket = new PullSocket("tcp://127.0.0.1:*", {
  maxMessageSize: SLOT_SIZE - 4,
  receiveHighWaterMark: 1_000_000,
});
const source = stack.adopt(new DrainSource(socket, wakeup.fd), (source) => source.close());
const header = { version: VERSION, dpSize: RANKS, slotSize: SLOT_SIZE };
const writer = stack.adopt(
  new GroupWriter(Deno.args[0]!, header, 1, 1000),
  (writer) => writer.close(),
);
const control = new ControlBlock(RANKS);
const turnstile = new Turnstile(source);
const loop = new DrainLoop(lease.libc, turnstile, writer, control, RANKS);
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
  const turns = Number(line);
  const { received } = control.counts();
  const begin = performance.now();
  for (let turn = 0; turn < turns; turn++) {
    turnstile.open();
    loop.run();
  }
  const ns = (performance.now() - begin) * 1e6;
  console.log(JSON.stringify({ ns, count: control.counts().received - received }));
}
