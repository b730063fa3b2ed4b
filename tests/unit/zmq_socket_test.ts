// deno-lint-ignore-file no-console -- the reason for a test that is left out is printed
/** PUSH and PULL: binding, sending without waiting, limits, and closing without a trace. */

import assert from "node:assert/strict";
import { EndpointInUseError, ZmqError } from "../../src/errors.ts";
import { ZmqContext } from "../../src/zmq/context.ts";
import { cText } from "../../src/zmq/libzmq.ts";
import { NOTHING, PullSocket, PushSocket } from "../../src/zmq/socket.ts";
import { assertNothingMore, bytesOf, holdings, receive, textOf } from "../support/zmq.ts";

const LIMITS = { maxMessageSize: 16384 };
const LOOPBACK = "tcp://127.0.0.1:*";

/** Sends frames as one message; no socket of ours does that. */
function sendParts(endpoint: string, messages: readonly (readonly string[])[]): Disposable {
  const context = new ZmqContext();
  const { libzmq } = context;
  const socket = context.open(8, endpoint);
  libzmq.zmq_connect(socket.handle, cText(endpoint));
  for (const parts of messages) {
    parts.forEach((part, index) => {
      const bytes = bytesOf(part);
      const sndmore = index < parts.length - 1 ? 2 : 0;
      libzmq.zmq_send(socket.handle, bytes, BigInt(bytes.length), sndmore);
    });
  }
  return { [Symbol.dispose]: () => context.close() };
}

Deno.test("a wildcard port is told, and a message arrives whole", () => {
  using pull = new PullSocket(LOOPBACK, LIMITS);
  assert.match(pull.endpoint, /^tcp:\/\/127\.0\.0\.1:[1-9][0-9]*$/);
  using push = new PushSocket(pull.endpoint);
  for (const text of ["one", "", "x".repeat(16384)]) {
    assert.equal(push.send(bytesOf(text)), "sent");
    assert.equal(textOf(receive(pull)), text);
  }
  assert.equal(pull.receive(new Uint8Array(8)), NOTHING);
});

Deno.test("a part of a buffer can be sent", () => {
  using pull = new PullSocket(LOOPBACK, LIMITS);
  using push = new PushSocket(pull.endpoint, { conflate: true });
  push.send(bytesOf("0123456789").subarray(4, 7));
  assert.equal(textOf(receive(pull)), "456");
});

Deno.test("a message that is longer than the buffer is cut, and its size is told", () => {
  using pull = new PullSocket(LOOPBACK, LIMITS);
  using push = new PushSocket(pull.endpoint);
  push.send(bytesOf("0123456789"));
  const buffer = new Uint8Array(4);
  let size = NOTHING;
  const deadline = performance.now() + 10_000;
  while (size === NOTHING && performance.now() < deadline) size = pull.receive(buffer);
  assert.equal(size, 10);
  assert.equal(new TextDecoder().decode(buffer), "0123");
});

Deno.test("IPv6 is spoken where the machine has it", async (context) => {
  let pull: PullSocket;
  try {
    pull = new PullSocket("tcp://[::1]:*", LIMITS);
  } catch (error) {
    if (!(error instanceof ZmqError)) throw error;
    console.error(`left out: "${context.name}": ${error.message}`);
    return;
  }
  await context.step("loopback", () => {
    using bound = pull;
    assert.match(bound.endpoint, /^tcp:\/\/\[::1\]:[1-9][0-9]*$/);
    using push = new PushSocket(bound.endpoint);
    push.send(bytesOf("six"));
    assert.equal(textOf(receive(bound)), "six");
  });
  await context.step("all addresses, for peers of both kinds", () => {
    using bound = new PullSocket("tcp://[::]:*", { ...LIMITS, allowInsecureBind: true });
    const port = bound.endpoint.split(":").at(-1);
    using four = new PushSocket(`tcp://127.0.0.1:${port}`);
    four.send(bytesOf("four"));
    assert.equal(textOf(receive(bound)), "four");
    using six = new PushSocket(`tcp://[::1]:${port}`);
    six.send(bytesOf("six"));
    assert.equal(textOf(receive(bound)), "six");
  });
});

Deno.test("a port that is taken is refused, and is free again after a close", () => {
  const first = new PullSocket(LOOPBACK, LIMITS);
  const { endpoint } = first;
  try {
    assert.throws(() => new PullSocket(endpoint, LIMITS), (error) => {
      assert.ok(error instanceof EndpointInUseError);
      assert.equal(error.endpoint, endpoint);
      assert.equal(error.message, `Cannot bind ${endpoint}: another socket is bound to it`);
      return true;
    });
  } finally {
    first.close();
  }
  new PullSocket(endpoint, LIMITS).close();
});

Deno.test("an address that is not this machine's is refused by its name", () => {
  const options = { ...LIMITS, allowInsecureBind: true };
  assert.throws(() => new PullSocket("tcp://192.0.2.77:*", options), {
    name: "ZmqError",
    call: "zmq_bind",
    errno: "EADDRNOTAVAIL",
    endpoint: "tcp://192.0.2.77:*",
  });
  assert.throws(() => new PullSocket("tcp://no-such-interface:*", options), {
    name: "ZmqError",
    errno: "ENODEV",
  });
});

Deno.test("binding beyond loopback without keys needs to be said", () => {
  for (const endpoint of ["tcp://*:*", "tcp://0.0.0.0:*", "tcp://[::]:*", "tcp://192.0.2.77:*"]) {
    assert.throws(() => new PullSocket(endpoint, LIMITS), (error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, /without CURVE keys whoever does can write any rank's load/);
      assert.match(error.message, /allowInsecureBind/);
      return true;
    });
  }
  const open = new PullSocket("tcp://*:*", { ...LIMITS, allowInsecureBind: true });
  assert.match(open.endpoint, /^tcp:\/\/0\.0\.0\.0:[1-9][0-9]*$/);
  open.close();
});

Deno.test("a name is judged by the address that it stands for", { ignore: !hasLo() }, () => {
  const pull = new PullSocket("tcp://lo:*", LIMITS);
  assert.match(pull.endpoint, /^tcp:\/\/127\.0\.0\.1:/);
  pull.close();
  new PullSocket("tcp://localhost:*", LIMITS).close();
});

Deno.test("messages up to the limit arrive; a longer one costs the connection, not the socket", () => {
  using pull = new PullSocket(LOOPBACK, { maxMessageSize: 1000 });
  using push = new PushSocket(pull.endpoint);
  push.send(new Uint8Array(1000));
  assert.equal((receive(pull) as Uint8Array).length, 1000);
  push.send(new Uint8Array(1001));
  assert.equal(receive(pull, 300), null);
  using other = new PushSocket(pull.endpoint);
  other.send(bytesOf("still here"));
  assert.equal(textOf(receive(pull)), "still here");
});

Deno.test("100 MB are refused, and the next message of the same peer arrives", () => {
  using pull = new PullSocket(LOOPBACK, LIMITS);
  using push = new PushSocket(pull.endpoint);
  push.send(new Uint8Array(100_000_000));
  assert.equal(receive(pull, 300), null);
  push.send(bytesOf("small"));
  assert.equal(textOf(receive(pull)), "small");
});

Deno.test("a message of several parts is told as such, and the next one is whole", () => {
  using pull = new PullSocket(LOOPBACK, LIMITS);
  using _peer = sendParts(pull.endpoint, [["a", "b", "c"], ["single"], ["d", ""], ["last"]]);
  const seen = Array.from({ length: 4 }, () => textOf(receive(pull)));
  assert.deepEqual(seen, ["multipart", "single", "multipart", "last"]);
});

Deno.test("with conflate, libzmq takes every message and the peer gets the newest", () => {
  using pull = new PullSocket(LOOPBACK, LIMITS);
  const { endpoint } = pull;
  pull.close();
  using push = new PushSocket(endpoint, { conflate: true });
  for (let n = 1; n <= 5000; n++) assert.equal(push.send(bytesOf(`${n}`)), "sent");
  using late = new PullSocket(endpoint, LIMITS);
  assert.equal(textOf(receive(late)), "5000");
  assert.equal(receive(late, 50), null);
});

Deno.test("without conflate, what goes beyond the limit is dropped at once", () => {
  using push = new PushSocket("tcp://127.0.0.1:9", { sendHighWaterMark: 2 });
  const outcomes = Array.from({ length: 4 }, () => push.send(bytesOf("x")));
  assert.deepEqual(outcomes, ["sent", "sent", "dropped", "dropped"]);
});

Deno.test("a closed socket refuses, and closing twice is fine", () => {
  const pull = new PullSocket(LOOPBACK, LIMITS);
  const push = new PushSocket(pull.endpoint);
  for (const socket of [push, pull, push, pull]) socket.close();
  assert.throws(() => push.send(bytesOf("x")), TypeError);
  assert.throws(() => pull.receive(new Uint8Array(1)), TypeError);
});

Deno.test("closing leaves no descriptor and no thread, whether or not a peer is there", () => {
  new PushSocket("tcp://127.0.0.1:9").close();
  const before = holdings();
  for (let round = 0; round < 50; round++) {
    const pull = new PullSocket(LOOPBACK, LIMITS);
    // The first has a peer, the second is refused, the third never gets an answer.
    const endpoints = [pull.endpoint, "tcp://127.0.0.1:9", "tcp://192.0.2.1:9"];
    const pushes = endpoints.map((endpoint) => new PushSocket(endpoint, { conflate: true }));
    for (const push of pushes) push.send(new Uint8Array(10_000));
    if (round % 2 === 0) pull.close();
    for (const push of pushes) push.close();
    pull.close();
  }
  assertNothingMore(before);
});

Deno.test("a bind that fails leaves no descriptor and no thread", () => {
  using taken = new PullSocket(LOOPBACK, LIMITS);
  const before = holdings();
  for (let round = 0; round < 20; round++) {
    assert.throws(() => new PullSocket(taken.endpoint, LIMITS), EndpointInUseError);
    assert.throws(() => new PullSocket("tcp://*:*", LIMITS), TypeError);
    assert.throws(() => new PushSocket("tcp://*:1"), RangeError);
    assert.throws(() => new PushSocket("tcp://127.0.0.1:1", { sendHighWaterMark: -1 }), ZmqError);
  }
  assertNothingMore(before);
});

/** Linux names its loopback interface so. */
function hasLo(): boolean {
  return Deno.build.os === "linux";
}
