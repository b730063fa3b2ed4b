/** A receiver's life: it opens, tells where it is bound, and leaves nothing when it is closed. */

import assert from "node:assert/strict";
import { EndpointInUseError } from "../../src/errors.ts";
import { KvMetricsReceiver } from "../../src/kv_metrics/receiver.ts";
import type { KvMetricsReceiverOptions } from "../../src/kv_metrics/receiver_options.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { LOOPBACK, returnTo } from "../support/collector.ts";
import { messageOf, receiverHoldings, TestReceiver } from "../support/kv_receiver.ts";
import { matches, RawFile } from "../support/raw_libc.ts";
import { sleep } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";

// Elsewhere libzmq binds ipc endpoints by itself.
const ignore = Deno.build.os !== "linux";
const REASON = new Error("not any more");

Deno.test("a wildcard port is told, and senders reach it there", async () => {
  await using opened = await TestReceiver.open();
  assert.match(opened.endpoint, /^tcp:\/\/127\.0\.0\.1:[1-9][0-9]{3,4}$/);
  using push = new PushSocket(opened.endpoint);
  push.send(messageOf(1, 7));
  await opened.shows(1, 7);
  assert.equal(opened.receiver.latest(0), null);
});

Deno.test("an ipc endpoint is told as it is, and its files go with the receiver", async () => {
  using ipc = new TempIpc();
  {
    await using opened = await TestReceiver.open({ endpoint: ipc.endpoint });
    assert.equal(opened.endpoint, ipc.endpoint);
    using push = new PushSocket(ipc.endpoint);
    push.send(messageOf(1, 7));
    await opened.shows(1, 7);
  }
  assert.deepEqual(matches(`${ipc.path}*`), []);
});

// SGLang makes the name of the endpoint with NamedTemporaryFile(delete=False).
Deno.test(
  "the empty file by which SGLang reserves its path is taken over",
  { ignore },
  async () => {
    using ipc = new TempIpc();
    new RawFile(ipc.path, { mode: 0o600 })[Symbol.dispose]();
    {
      await using opened = await TestReceiver.open({ endpoint: ipc.endpoint });
      using push = new PushSocket(ipc.endpoint);
      push.send(messageOf(0, 3));
      await opened.shows(0, 3);
    }
    assert.deepEqual(
      matches(`${ipc.path}*`),
      [],
      "and nothing is left behind, as SGLang leaves it",
    );
  },
);

Deno.test("closing lets go of every thread and descriptor", async () => {
  const before = await receiverHoldings();
  for (let round = 0; round < 5; round++) {
    await using opened = await TestReceiver.open();
    using push = new PushSocket(opened.endpoint);
    push.send(messageOf(1, round));
    await opened.shows(1, round);
  }
  await returnTo(before);
});

Deno.test("the end of an await using scope closes, and closed tells so", async () => {
  let kept: KvMetricsReceiver;
  {
    await using receiver = await KvMetricsReceiver.open(LOOPBACK);
    kept = receiver;
  }
  assert.equal(await kept.closed, null);
});

Deno.test("an error in the scope closes as well, and comes through", async () => {
  const before = await receiverHoldings();
  await assert.rejects(async () => {
    await using _opened = await TestReceiver.open();
    throw REASON;
  }, REASON);
  await returnTo(before);
});

Deno.test("closing twice, at once or later, is fine", async () => {
  await using opened = await TestReceiver.open();
  const { receiver } = opened;
  await Promise.all([receiver.close(), receiver.close(), receiver[Symbol.asyncDispose]()]);
  await receiver.close();
  assert.equal(await receiver.closed, null);
});

Deno.test("a closed receiver refuses to tell anything but its counts", async () => {
  await using opened = await TestReceiver.open();
  const { receiver } = opened;
  using push = new PushSocket(opened.endpoint);
  push.send(messageOf(1, 7));
  await opened.shows(1, 7);
  const closing = receiver.close();
  // At once, not only when the worker has ended.
  const expected = { name: "TypeError", message: /the receiver is closed$/ };
  assert.throws(() => receiver.latest(1), expected);
  await closing;
  assert.throws(() => receiver.latest(1), expected);
  assert.throws(() => receiver.health(), expected);
  assert.throws(() => receiver[Symbol.asyncIterator](), expected);
  assert.equal(receiver.stats().accepted, 1);
});

Deno.test("a second receiver for an engine is refused: it would take a share of its messages", async () => {
  using ipc = new TempIpc();
  for (const endpoint of [ipc.endpoint, LOOPBACK]) {
    await using opened = await TestReceiver.open({ endpoint });
    await assert.rejects(TestReceiver.open({ endpoint: opened.endpoint }), EndpointInUseError);
    using push = new PushSocket(opened.endpoint);
    push.send(messageOf(1, 7));
    await opened.shows(1, 7);
  }
});

Deno.test("options that cannot be are refused before anything is opened", async () => {
  const before = await receiverHoldings();
  const wrong: readonly KvMetricsReceiverOptions[] = [
    { dpSize: 0 },
    { dpSize: 65_536 },
    { dpSize: 1.5 },
    { maxRanks: 0 },
    { maxRanks: NaN },
    { queueSize: -1 },
    { queueSize: 2 ** 20 + 1 },
    { staleAfterMs: -1 },
    { staleAfterMs: NaN },
    { tokensPerBlock: 0 },
    { tokensPerBlock: 0.5 },
    { receiveHighWaterMark: 0 },
  ];
  for (const options of wrong) {
    await assert.rejects(KvMetricsReceiver.open(LOOPBACK, options), RangeError);
  }
  for (const endpoint of ["tcp://127.0.0.1", "inproc://x", "ipc://", "http://127.0.0.1:80"]) {
    await assert.rejects(KvMetricsReceiver.open(endpoint), RangeError);
  }
  await assert.rejects(KvMetricsReceiver.open("tcp://0.0.0.0:*"), {
    name: "TypeError",
    message: /give curve, or bind to loopback, or say allowInsecureBind/,
  });
  await returnTo(before);
});

Deno.test("it binds beyond this machine if it is told that this is meant", async () => {
  await using opened = await TestReceiver.open({
    endpoint: "tcp://0.0.0.0:*",
    allowInsecureBind: true,
  });
  using push = new PushSocket(opened.endpoint.replace("0.0.0.0", "127.0.0.1"));
  push.send(messageOf(0, 1));
  await opened.shows(0, 1);
});

Deno.test("an aborted signal opens nothing", async () => {
  const before = await receiverHoldings();
  const signal = AbortSignal.abort(REASON);
  await assert.rejects(KvMetricsReceiver.open(LOOPBACK, { signal }), REASON);
  await returnTo(before);
});

Deno.test("a signal that aborts meanwhile lets go of what is open already", async () => {
  using ipc = new TempIpc();
  const before = await receiverHoldings();
  for (const delayMs of [0, 1, 5, 10, 20, 40]) {
    const controller = new AbortController();
    const opening = KvMetricsReceiver.open(ipc.endpoint, { signal: controller.signal });
    const outcome = opening.then((receiver) => receiver, (error: unknown) => error);
    if (delayMs > 0) await sleep(delayMs);
    controller.abort(REASON);
    const result = await outcome;
    // It may have been open by then: in that case the signal closes it.
    if (result instanceof KvMetricsReceiver) {
      assert.equal(await result.closed, null);
      await result.close();
    } else assert.equal(result, REASON);
    assert.deepEqual(matches(`${ipc.path}*`), []);
  }
  await returnTo(before);
});

Deno.test("a signal closes an open receiver, and ends its loop", async () => {
  const before = await receiverHoldings();
  const controller = new AbortController();
  {
    await using opened = await TestReceiver.open({ signal: controller.signal });
    const next = opened.receiver[Symbol.asyncIterator]().next();
    controller.abort(REASON);
    assert.throws(() => opened.receiver.health(), TypeError);
    assert.deepEqual(await next, { done: true, value: undefined });
    assert.equal(await opened.receiver.closed, null);
  }
  await returnTo(before);
});
