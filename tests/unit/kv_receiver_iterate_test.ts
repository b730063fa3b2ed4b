/** Every message of a receiver, for the one loop that takes them. */

import assert from "node:assert/strict";
import { type MessageFeed, MessageIterator } from "../../src/kv_metrics/message_iterator.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { messageOf, metricsOf, receivedOf, take, TestReceiver } from "../support/kv_receiver.ts";
import { sleep } from "../support/wait.ts";

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, n) => from + n);
}

Deno.test("a loop gets each message in the order of arrival, of all ranks", async () => {
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  for (const number of numbers(1, 200)) push.send(messageOf(number % 2, number));
  let expected = 0;
  for await (const { metrics, sequence, ageMs } of opened.receiver) {
    expected++;
    assert.deepEqual([metrics, sequence], [metricsOf(expected % 2, expected), expected]);
    assert(ageMs >= 0);
    if (expected === 200) break;
  }
  assert.deepEqual([opened.receiver.stats().overtaken, opened.numberOf(0)], [0, 200]);
});

Deno.test("a loop that starts late gets the newest that the queue holds, and is told of the gap", async () => {
  await using opened = await TestReceiver.open({ queueSize: 10 });
  using push = new PushSocket(opened.endpoint);
  for (const number of numbers(1, 100)) push.send(messageOf(0, number));
  await opened.counts("accepted", 100);
  assert.equal(opened.receiver.stats().overtaken, 90);
  let sequence = 90;
  for await (const message of opened.receiver) {
    assert.equal(message.sequence, ++sequence);
    if (sequence === 100) break;
  }
  // What it has taken makes room again.
  push.send(messageOf(0, 101));
  assert.deepEqual(await take(opened.receiver, 1), [101]);
  assert.equal(opened.receiver.stats().overtaken, 90);
});

Deno.test("a queue of any size holds as many messages as it says", async () => {
  for (const queueSize of [1, 2, 3, 7, 8]) {
    await using opened = await TestReceiver.open({ queueSize });
    using push = new PushSocket(opened.endpoint);
    for (const number of numbers(1, 20)) push.send(messageOf(0, number));
    await opened.counts("accepted", 20);
    assert.deepEqual(await take(opened.receiver, queueSize), numbers(21 - queueSize, 20));
    assert.equal(opened.receiver.stats().overtaken, 20 - queueSize);
  }
});

Deno.test("without a queue the newest is shown, and a loop gets nothing", async () => {
  await using opened = await TestReceiver.open({ queueSize: 0 });
  using push = new PushSocket(opened.endpoint);
  const next = opened.receiver[Symbol.asyncIterator]().next();
  push.send(messageOf(0, 1));
  await opened.shows(0, 1);
  await opened.receiver.close();
  assert.deepEqual(await next, { done: true, value: undefined });
});

Deno.test("there is one loop at a time, and after it another one", async () => {
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  for (const number of numbers(1, 4)) push.send(messageOf(0, number));
  const first = opened.receiver[Symbol.asyncIterator]();
  assert.equal((await first.next()).value?.metrics.requestActiveSlots, 1);
  assert.throws(() => opened.receiver[Symbol.asyncIterator](), {
    name: "TypeError",
    message: "Cannot iterate: another loop takes the messages",
  });
  await first.return?.();
  assert.deepEqual(await first.next(), { done: true, value: undefined });
  assert.deepEqual(await take(opened.receiver, 2), [2, 3]);
  const second = opened.receiver[Symbol.asyncIterator]();
  // The first one has nothing to give back any more.
  await first.return?.();
  assert.throws(() => opened.receiver[Symbol.asyncIterator](), TypeError);
  assert.equal((await second.next()).value?.metrics.requestActiveSlots, 4);
});

Deno.test("closing ends a loop at once, whether it waits or still has messages", async () => {
  for (const count of [0, 100]) {
    await using opened = await TestReceiver.open();
    using push = new PushSocket(opened.endpoint);
    for (const number of numbers(1, count)) push.send(messageOf(0, number));
    await opened.counts("accepted", count);
    let seen = 0;
    const loop = (async () => {
      for await (const _ of opened.receiver) if (++seen === 10) await opened.receiver.close();
    })();
    if (count === 0) await opened.receiver.close();
    await loop;
    assert.equal(seen, Math.min(count, 10));
  }
});

Deno.test("leaving a loop that waits does not take a message with it", async () => {
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  const left = opened.receiver[Symbol.asyncIterator]();
  const pending = left.next();
  await left.return?.();
  assert.deepEqual(await pending, { done: true, value: undefined });
  push.send(messageOf(0, 1));
  assert.deepEqual(await take(opened.receiver, 1), [1]);
});

Deno.test("several calls of next at once are answered in order", async () => {
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  const iterator = opened.receiver[Symbol.asyncIterator]();
  const calls = Array.from({ length: 5 }, () => iterator.next());
  for (const number of numbers(1, 3)) push.send(messageOf(0, number));
  const found = await Promise.all(calls.slice(0, 3));
  assert.deepEqual(found.map(({ value }) => value?.metrics.requestActiveSlots), [1, 2, 3]);
  await opened.receiver.close();
  for (const call of calls.slice(3)) assert.equal((await call).done, true);
});

/** A feed without a socket. */
function feedOf(take: MessageFeed["take"], state: () => MessageFeed["state"]): MessageFeed {
  return {
    get state() {
      return state();
    },
    take,
    batches: 0,
    next: () => sleep(1),
    wake() {},
    release() {},
  };
}

Deno.test("a flood that never ends leaves timers and others their turn", async () => {
  let count = 0;
  const iterator = new MessageIterator(feedOf(() => receivedOf(0, ++count), () => "open"));
  let isOver = false;
  const timer = setTimeout(() => isOver = true, 1);
  for await (const _ of iterator) if (isOver) break;
  clearTimeout(timer);
  assert(count > 0);
});

Deno.test("what had come when the worker failed is given out, and then the loop ends", async () => {
  const left = [1, 2, 3].map((number) => receivedOf(0, number));
  let state: MessageFeed["state"] = "open";
  const iterator = new MessageIterator(feedOf(() => left.shift() ?? null, () => state));
  assert.equal((await iterator.next()).value?.sequence, 1);
  state = "ended";
  assert.equal((await iterator.next()).value?.sequence, 2);
  assert.equal((await iterator.next()).value?.sequence, 3);
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
});
