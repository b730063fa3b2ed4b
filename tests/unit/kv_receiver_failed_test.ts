/** What ends the receiving, and what does not. */

import assert from "node:assert/strict";
import { SlotFileError, WorkerFailedError, ZmqError } from "../../src/errors.ts";
import { ReceiveBlock } from "../../src/kv_metrics/receive_block.ts";
import { ReceiveLoop } from "../../src/kv_metrics/receive_loop.ts";
import { KvMetricsReceiver } from "../../src/kv_metrics/receiver.ts";
import { acquireLibc } from "../../src/slotfile/libc.ts";
import type { MessageSource } from "../../src/zmq/drain_loop.ts";
import { MULTIPART, NOTHING, PushSocket } from "../../src/zmq/socket.ts";
import { LOOPBACK, returnTo } from "../support/collector.ts";
import { messageOf, metricsOf, receiverHoldings, take } from "../support/kv_receiver.ts";
import { matches, must, raw, RawFile } from "../support/raw_libc.ts";
import { until } from "../support/wait.ts";

const ignore = Deno.build.os !== "linux";
const TERMS = { maxRanks: 2, tokensPerBlock: 1 };

/** What a source gives: a message, nothing, one of several parts, or an error. */
type Step = Uint8Array<ArrayBuffer> | typeof NOTHING | typeof MULTIPART | Error;

/** Runs a loop over steps, then stops it; the block tells what it came to. */
function runOver(steps: readonly Step[]): ReceiveBlock {
  const block = new ReceiveBlock({ maxRanks: TERMS.maxRanks, queueSize: 4 });
  const left = [...steps];
  const source: MessageSource = {
    refusedPeers: 3,
    wait() {
      if (left.length === 0) block.stop();
    },
    receive(buffer) {
      const step = left.shift() ?? NOTHING;
      if (step instanceof Error) throw step;
      if (typeof step === "number") return step;
      buffer.set(step.subarray(0, buffer.length));
      return step.length;
    },
  };
  const lease = acquireLibc("test");
  try {
    new ReceiveLoop(lease.libc, source, block, TERMS).run();
  } finally {
    lease.release();
  }
  return block;
}

Deno.test("a moment without messages and a message of any kind do not end the loop", () => {
  const block = runOver([
    messageOf(0, 1),
    NOTHING,
    NOTHING,
    Uint8Array.of(1),
    MULTIPART,
    new Uint8Array(20_000),
    NOTHING,
    messageOf(1, 2),
  ]);
  assert.deepEqual(block.counters.all(), {
    received: 5,
    accepted: 2,
    overtaken: 0,
    refusedPeers: 3,
  });
  const { encoding, multipart, size } = block.refusals.all();
  assert.deepEqual([encoding, multipart, size], [1, 1, 1]);
  assert.deepEqual([block.table.version(0), block.table.version(1)], [1, 1]);
});

Deno.test("a batch is shown as a whole: of each rank the newest, with one ring of the bell", () => {
  const messages = Array.from({ length: 100 }, (_, n) => messageOf(n % 2, n));
  const block = runOver(messages);
  assert.deepEqual([block.table.version(0), block.table.version(1), block.doorbell], [1, 1, 1]);
  assert.equal(block.counters.all().overtaken, 96);
});

Deno.test("a socket that is gone ends the loop with its error", () => {
  const gone = new ZmqError("zmq_recv", LOOPBACK, "ETERM", "Context was terminated");
  assert.throws(() => runOver([messageOf(0, 1), NOTHING, gone]), gone);
});

Deno.test("a descriptor that is gone ends the receiving; closed tells why, and values stay", {
  ignore,
}, async () => {
  const before = await receiverHoldings();
  const known = new Set(eventDescriptors());
  const opening = KvMetricsReceiver.open(LOOPBACK, { dpSize: 2, staleAfterMs: 50 });
  // The first one that was made has the lowest number; the worker's own ones come later.
  const wakeup = Math.min(...eventDescriptors().filter((fd) => !known.has(fd)));
  {
    await using receiver = await opening;
    using push = new PushSocket(receiver.endpoint);
    for (const number of [1, 2]) push.send(messageOf(1, number));
    await until("both are there", () => receiver.stats().accepted === 2);
    {
      // Another file in its place, one that cannot be read.
      using folder = new RawFile("/", { write: false });
      must(raw.dup2(folder.fd, wakeup), "dup2");
    }
    assert.deepEqual(await take(receiver, 3), [1, 2], "the loop takes what is left, and ends");
    const reason = await receiver.closed;
    assert(reason instanceof WorkerFailedError);
    assert.equal(reason.failure, "crashed");
    assert(reason.cause instanceof SlotFileError);
    assert.deepEqual([reason.cause.syscall, reason.cause.errno], ["read", "EISDIR"]);
    assert.deepEqual(receiver.latest(1)?.metrics, metricsOf(1, 2));
    await until("it is stale", () => receiver.health()[1]!.state === "stale");
  }
  await returnTo(before);
});

function eventDescriptors(): number[] {
  return matches("/proc/self/fd/*").flatMap((path) => {
    const link = linkOf(path);
    return link === "anon_inode:[eventfd]" ? [Number(path.split("/").at(-1))] : [];
  });
}

function linkOf(path: string): string {
  const text = new Uint8Array(256);
  const length = Number(
    raw.readlink(new TextEncoder().encode(`${path}\0`), text, BigInt(text.length)),
  );
  return new TextDecoder().decode(text.subarray(0, Math.max(0, length)));
}
