/** Finding libzmq: which builds are tried, in which order, and what is said when none loads. */

import assert from "node:assert/strict";
import { LibzmqError, ZmqError } from "../../src/errors.ts";
import { acquireLibzmq, checkZmq } from "../../src/zmq/libzmq.ts";
import { buildsFor, findLibzmq, parseManifest } from "../../src/zmq/libzmq_path.ts";
import { assertNothingMore, holdings } from "../support/zmq.ts";

const MANIFEST = JSON.stringify(Object.fromEntries(
  [
    ["linux", "x64", "glibc", 72],
    ["linux", "x64", "musl", 127],
    ["linux", "x64", "glibc", 127],
    ["linux", "arm64", "glibc", 127],
    ["linux", "x64", "glibc", 115],
    ["win32", "x64", "msvc", 115],
  ].map(([os, arch, libc, abi]) => {
    const separator = os === "win32" ? "\\" : "/";
    const path = [os, arch, "node", `${libc}-${abi}`, "addon.node"].join(separator);
    return [JSON.stringify({ os, arch, libc, abi, name: "" }), path];
  }),
));

Deno.test("builds of this platform and libc are tried, the newest first", () => {
  const builds = parseManifest(MANIFEST);
  assert.deepEqual(
    buildsFor(builds, { os: "linux", arch: "x64", libc: "glibc" }),
    ["127", "115", "72"].map((abi) => `linux/x64/node/glibc-${abi}/addon.node`),
  );
  assert.deepEqual(buildsFor(builds, { os: "linux", arch: "x64", libc: "musl" }), [
    "linux/x64/node/musl-127/addon.node",
  ]);
  assert.deepEqual(buildsFor(builds, { os: "win32", arch: "x64", libc: "msvc" }), [
    "win32/x64/node/msvc-115/addon.node",
  ]);
  assert.deepEqual(buildsFor(builds, { os: "freebsd", arch: "x64", libc: "libc" }), []);
});

Deno.test("the shipped library loads, is new enough, and is shared", () => {
  const first = acquireLibzmq();
  const second = acquireLibzmq();
  try {
    assert.match(first.version, /^4\.\d+\.\d+$/);
    assert.match(first.path, /zeromq.*addon\.node$/);
    assert.equal(first.libzmq, second.libzmq);
    first.release();
    first.release();
    assert.equal(typeof second.libzmq.zmq_errno(), "number");
  } finally {
    first.release();
    second.release();
  }
});

Deno.test("a system libzmq can be named, and is another library than the shipped", () => {
  const shipped = acquireLibzmq();
  // Any file will do that has its functions; the shipped one is sure to be here.
  const named = acquireLibzmq(shipped.path);
  try {
    assert.equal(named.path, shipped.path);
    assert.notEqual(named.libzmq, shipped.libzmq);
  } finally {
    named.release();
    shipped.release();
  }
});

Deno.test("the option goes before the environment, which is left alone without permission", {
  // Also where everything else is allowed.
  permissions: { env: false, ffi: "inherit", read: "inherit" },
}, () => {
  assert.deepEqual(findLibzmq("libzmq.so.5"), {
    paths: ["libzmq.so.5"],
    origin: "option libzmqPath",
  });
  assert.equal(Deno.permissions.querySync({ name: "env" }).state, "prompt");
  assert.match(findLibzmq(undefined).origin, /npm:zeromq/);
});

Deno.test("what cannot be loaded is told with each file and its reason", () => {
  assert.throws(() => acquireLibzmq("/nowhere/libzmq.so.5"), (error) => {
    assert.ok(error instanceof LibzmqError);
    assert.match(error.message, /^Cannot use libzmq: none of option libzmqPath loads\n/);
    assert.match(error.message, /\/nowhere\/libzmq\.so\.5.*(no such file|cannot open)/i);
    assert.deepEqual(error.failures.map(({ path }) => path), ["/nowhere/libzmq.so.5"]);
    return true;
  });
});

Deno.test("a library that is not libzmq is refused", { ignore: Deno.build.os !== "linux" }, () => {
  assert.throws(() => acquireLibzmq("libc.so.6"), (error) => {
    assert.ok(error instanceof LibzmqError);
    assert.match(error.failures[0]!.message, /zmq_/);
    return true;
  });
});

Deno.test("an error has ZeroMQ's own text and the error's name", () => {
  const lease = acquireLibzmq();
  try {
    const { libzmq } = lease;
    const fail = () => checkZmq(libzmq, libzmq.zmq_close(null), "zmq_close", "tcp://x:1");
    assert.throws(fail, (error) => {
      assert.ok(error instanceof ZmqError);
      assert.deepEqual(
        [error.message, error.call, error.endpoint, error.errno],
        [
          "Cannot zmq_close tcp://x:1: Socket operation on non-socket (ENOTSOCK)",
          "zmq_close",
          "tcp://x:1",
          "ENOTSOCK",
        ],
      );
      return true;
    });
  } finally {
    lease.release();
  }
});

Deno.test("a failure leaves no descriptor and no thread", () => {
  const before = holdings();
  assert.throws(() => acquireLibzmq("/nowhere/libzmq.so.5"), LibzmqError);
  assertNothingMore(before);
});
