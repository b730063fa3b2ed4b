/** The path of an ipc endpoint: one owner at a time, private, and nothing left behind. */

import assert from "node:assert/strict";
import { EndpointInUseError } from "../../src/errors.ts";
import { cString } from "../../src/slotfile/libc.ts";
import { ZmqContext } from "../../src/zmq/context.ts";
import { cText } from "../../src/zmq/libzmq.ts";
import { PullSocket, PushSocket } from "../../src/zmq/socket.ts";
import { isRoot, must, raw, RawFile } from "../support/raw_libc.ts";
import { assertNothingMore, bytesOf, holdings, receive, TempIpc, textOf } from "../support/zmq.ts";

const LIMITS = { maxMessageSize: 16384 };
// Elsewhere libzmq binds by itself.
const ignore = Deno.build.os !== "linux";

function modeOf(path: string): number {
  return Deno.lstatSync(path).mode! & 0o7777;
}

function isThere(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Binds as libzmq does by itself, and as SGLang's collector does: it takes the path, come what may. */
function bindUnguarded(endpoint: string): Disposable {
  const context = new ZmqContext();
  const socket = context.open(7, endpoint);
  must(context.libzmq.zmq_bind(socket.handle, cText(endpoint)), "zmq_bind");
  return { [Symbol.dispose]: () => context.close() };
}

Deno.test("messages go through a socket file of mode 0600 that a close removes", { ignore }, () => {
  using ipc = new TempIpc();
  {
    using pull = new PullSocket(ipc.endpoint, LIMITS);
    assert.equal(pull.endpoint, ipc.endpoint);
    assert.equal(modeOf(ipc.path), 0o600);
    assert.equal(modeOf(ipc.lockPath), 0o600);
    using push = new PushSocket(ipc.endpoint, { conflate: true });
    push.send(bytesOf("one"));
    assert.equal(textOf(receive(pull)), "one");
    using second = new PushSocket(ipc.endpoint, { conflate: true });
    second.send(bytesOf("two"));
    assert.equal(textOf(receive(pull)), "two");
  }
  assert.deepEqual([isThere(ipc.path), isThere(ipc.lockPath)], [false, false]);
});

Deno.test("the path of a living owner is refused, and the owner goes on", { ignore }, () => {
  using ipc = new TempIpc();
  using owner = new PullSocket(ipc.endpoint, LIMITS);
  for (let attempt = 0; attempt < 3; attempt++) {
    assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), (error) => {
      assert.ok(error instanceof EndpointInUseError);
      assert.equal(error.endpoint, ipc.endpoint);
      return true;
    });
  }
  using push = new PushSocket(ipc.endpoint);
  push.send(bytesOf("still ours"));
  assert.equal(textOf(receive(owner)), "still ours");
});

Deno.test("an owner that takes no lock is recognised by its socket", { ignore }, () => {
  using ipc = new TempIpc();
  {
    using _owner = bindUnguarded(ipc.endpoint);
    assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), EndpointInUseError);
    assert.equal(isThere(ipc.lockPath), false);
  }
  // libzmq has left its file behind: nobody answers there any more.
  assert.equal(isThere(ipc.path), true);
  new PullSocket(ipc.endpoint, LIMITS).close();
  assert.equal(isThere(ipc.path), false);
});

Deno.test("a lock file without a holder, and a lock without a socket", { ignore }, () => {
  using ipc = new TempIpc();
  new RawFile(ipc.lockPath, { mode: 0o600 })[Symbol.dispose]();
  new PullSocket(ipc.endpoint, LIMITS).close();
  assert.equal(isThere(ipc.lockPath), false);
  using lock = new RawFile(ipc.lockPath, { mode: 0o600 });
  assert.equal(lock.tryLock(2), true);
  assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), EndpointInUseError);
  assert.equal(isThere(ipc.path), false);
});

Deno.test("what is not a socket is left alone", { ignore }, () => {
  using ipc = new TempIpc();
  const expected = {
    name: "ZmqError",
    errno: "ENOTSOCK",
    message:
      `Cannot bind ${ipc.endpoint}: something that is not a socket is at its path (ENOTSOCK)`,
  };
  {
    using file = new RawFile(ipc.path, { mode: 0o600 });
    file.write(0, bytesOf("precious"));
    assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), expected);
    assert.equal(Deno.readTextFileSync(ipc.path), "precious");
    raw.unlink(cString(ipc.path));
  }
  using target = new TempIpc();
  using _owner = new PullSocket(target.endpoint, LIMITS);
  must(raw.symlink(cString(target.path), cString(ipc.path)), "symlink");
  assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), expected);
  assert.equal(isThere(ipc.lockPath), false);
});

Deno.test("an empty file, by which SGLang reserves a path, is taken over", { ignore }, () => {
  using ipc = new TempIpc();
  new RawFile(ipc.path, { mode: 0o600 })[Symbol.dispose]();
  {
    using pull = new PullSocket(ipc.endpoint, LIMITS);
    using push = new PushSocket(ipc.endpoint);
    push.send(bytesOf("at the reserved path"));
    assert.equal(textOf(receive(pull)), "at the reserved path");
  }
  assert.deepEqual([isThere(ipc.path), isThere(ipc.lockPath)], [false, false]);
});

Deno.test("a link in the place of the lock file is not followed", { ignore }, () => {
  using ipc = new TempIpc();
  using target = new TempIpc();
  must(raw.symlink(cString(target.path), cString(ipc.lockPath)), "symlink");
  assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), { name: "ZmqError", errno: "ELOOP" });
  assert.deepEqual([isThere(ipc.path), isThere(target.path)], [false, false]);
});

Deno.test("a close leaves what has come to another owner", { ignore }, () => {
  using ipc = new TempIpc();
  const robbed = new PullSocket(ipc.endpoint, LIMITS);
  using _thief = bindUnguarded(ipc.endpoint);
  robbed.close();
  assert.deepEqual([isThere(ipc.path), isThere(ipc.lockPath)], [true, false]);
});

Deno.test("a folder that is not there, or may not be written, is told", { ignore }, () => {
  assert.throws(() => new PullSocket("ipc:///tmp/loadslots-no-such-folder/x", LIMITS), {
    name: "ZmqError",
    errno: "ENOENT",
    message: /No such file or directory/,
  });
  assert.throws(() => new PullSocket("ipc:///dev/null/x", LIMITS), {
    name: "ZmqError",
    errno: "ENOTDIR",
  });
  // Nothing can be made there, not even by root.
  assert.throws(() => new PullSocket("ipc:///proc/self/x", LIMITS), { name: "ZmqError" });
});

Deno.test(
  "root takes over what another user left, and makes it private",
  { ignore: ignore || !isRoot() },
  () => {
    using ipc = new TempIpc();
    {
      using _owner = bindUnguarded(ipc.endpoint);
    }
    must(raw.chown(cString(ipc.path), 12345, 12345), "chown");
    using _pull = new PullSocket(ipc.endpoint, LIMITS);
    assert.deepEqual([Deno.lstatSync(ipc.path).uid, modeOf(ipc.path)], [0, 0o600]);
  },
);

Deno.test("the longest path works, and takes a lock file beside it", { ignore }, () => {
  const path = `/tmp/${crypto.randomUUID()}${"x".repeat(107)}`.slice(0, 107);
  using pull = new PullSocket(`ipc://${path}`, LIMITS);
  using push = new PushSocket(`ipc://${path}`);
  push.send(bytesOf("far"));
  assert.equal(textOf(receive(pull)), "far");
  assert.equal(isThere(`${path}.lock`), true);
});

Deno.test("nothing is left of a hundred owners, of those refused either", { ignore }, () => {
  using ipc = new TempIpc();
  new PullSocket(ipc.endpoint, LIMITS).close();
  const before = holdings();
  for (let round = 0; round < 100; round++) {
    using _owner = new PullSocket(ipc.endpoint, LIMITS);
    assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), EndpointInUseError);
  }
  assertNothingMore(before);
  assert.deepEqual([isThere(ipc.path), isThere(ipc.lockPath)], [false, false]);
});
