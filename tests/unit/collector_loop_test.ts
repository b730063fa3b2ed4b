/** The collector's loop by itself, with messages that come at moments of the test's choosing. */

import assert from "node:assert/strict";
import { GroupWriter } from "../../src/slotfile/group_writer.ts";
import { VERSION } from "../../src/slotfile/layout.ts";
import { acquireLibc } from "../../src/slotfile/libc.ts";
import { ControlBlock, type DrainCounts } from "../../src/zmq/control_block.ts";
import { DrainLoop, type MessageSource } from "../../src/zmq/drain_loop.ts";
import { MULTIPART, NOTHING } from "../../src/zmq/socket.ts";
import { payloadOf } from "../support/collector.ts";
import { SlotPath } from "../support/slot_path.ts";

const HEADER = { version: VERSION, dpSize: 2, slotSize: 16_384 };

/** A message, one of several parts, or `null` for none now; it may look at what has been done. */
type Next = (call: number, counts: () => DrainCounts) => Uint8Array | typeof MULTIPART | null;

/** Runs the loop over a source until that says stop; tells what was counted. */
function drain(next: Next, stopAt: number): DrainCounts {
  using file = new SlotPath();
  const lease = acquireLibc(file.path);
  const writer = new GroupWriter(file.path, HEADER, 1, 1000);
  const control = new ControlBlock(HEADER.dpSize);
  let calls = 0;
  const source: MessageSource = {
    refusedPeers: 0,
    wait: () => {},
    receive(buffer) {
      if (calls >= stopAt) {
        control.stop();
        return NOTHING;
      }
      const message = next(calls++, () => control.counts());
      if (message === null) return NOTHING;
      if (message === MULTIPART) return MULTIPART;
      buffer.set(message.subarray(0, buffer.length));
      return message.length;
    },
  };
  try {
    new DrainLoop(lease.libc, source, writer, control, HEADER.dpSize).run();
    return control.counts();
  } finally {
    writer.close();
    lease.release();
  }
}

function spin(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

Deno.test("a flood that costs time does not hold up what came before it", () => {
  const good = payloadOf(1, 7);
  const garbage = Uint8Array.of(0);
  // Published after so many further messages at most, each of which takes its time.
  const slow = 100;
  drain((call, counts) => {
    if (call === 0) return good;
    if (call === slow) assert.equal(counts().published, 1);
    spin(0.2);
    return garbage;
  }, slow + 1);
});

Deno.test("a flood that costs no time is published in batches, one lock for many messages", () => {
  const payloads = [payloadOf(0, 1), payloadOf(1, 2)];
  const { received, published, superseded, batches } = drain((call) => payloads[call % 2]!, 20_000);
  assert.deepEqual([received, published + superseded], [20_000, 20_000]);
  assert(batches < 5_000 && published <= batches * 2, `${published} in ${batches} batches`);
});

Deno.test("what has arrived when the loop is told to stop is published", () => {
  const { received, published } = drain(() => payloadOf(0, 1), 1);
  assert.deepEqual([received, published], [1, 1]);
});

Deno.test("a size beyond the slot is refused although the source cut the message", () => {
  const messages = [new Uint8Array(16_381), MULTIPART, null, payloadOf(0, 1)] as const;
  const counts = drain((call) => messages[call]!, messages.length);
  const { received, refusedSize, refusedMultipart, published } = counts;
  assert.deepEqual([received, refusedSize, refusedMultipart, published], [3, 1, 1, 1]);
});
