/** Collectors that cannot open: the error comes whole out of the worker, and nothing is left. */

import assert from "node:assert/strict";
import { EndpointInUseError, LibzmqError, SlotFileError, ZmqError } from "../../src/errors.ts";
import { cString } from "../../src/slotfile/libc.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { PullSocket } from "../../src/zmq/socket.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import {
  Collector,
  type CollectorOptions,
  holdings,
  loadOf,
  LOOPBACK,
  returnTo,
} from "../support/collector.ts";
import { headerBytes, slotFileBytes } from "../support/slot_bytes.ts";
import { isRoot, must, raw } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { TempIpc } from "../support/zmq.ts";

const LIMITS = { maxMessageSize: 16_384 };
const NOBODY = 65_534;

async function errorOf(options: CollectorOptions): Promise<Error> {
  const before = await holdings();
  try {
    await using _collector = await Collector.open(options);
  } catch (error) {
    assert(error instanceof Error);
    await returnTo(before);
    return error;
  }
  assert.fail("it opened");
}

for (const transport of ["tcp", "ipc"] as const) {
  Deno.test(`a ${transport} endpoint that is in use is told, and its owner goes on`, async () => {
    using ipc = new TempIpc();
    const endpoint = transport === "ipc" ? ipc.endpoint : LOOPBACK;
    await using owner = await Collector.open({ endpoint });
    const error = await errorOf({ endpoint: owner.reader.endpoint });
    assert(error instanceof EndpointInUseError);
    assert.equal(error.endpoint, owner.reader.endpoint);
    assert.match(error.message, /^Cannot bind .*: another socket is bound to it$/);
    using writer = new ZmqLoadSnapshotWriter(owner.reader.endpoint, { dpSize: 2, dpRank: 0 });
    writer.write(loadOf(0, 1));
    await owner.shows(0, 1);
  });
}

Deno.test("an endpoint of a socket that is no collector's is in use as well", async () => {
  using ipc = new TempIpc();
  for (const endpoint of [LOOPBACK, ipc.endpoint]) {
    using pull = new PullSocket(endpoint, LIMITS);
    assert(await errorOf({ endpoint: pull.endpoint }) instanceof EndpointInUseError);
  }
});

Deno.test("who does not get the endpoint does not touch the slot file", async () => {
  await using owner = await Collector.open();
  const { endpoint } = owner.reader;
  using absent = new SlotPath();
  await assert.rejects(Collector.open({ endpoint, path: absent.path }), EndpointInUseError);
  assert.deepEqual(absent.all(), []);
  // A group of another size would replace the file under its owner.
  await assert.rejects(
    Collector.open({ endpoint, path: owner.file.path, dpSize: 3 }),
    EndpointInUseError,
  );
  assert.deepEqual(owner.file.bytes().subarray(0, 12), headerBytes({ dpSize: 2 }));
});

/** Asks for a path that cannot be a slot file; the writer of shared memory says what is right. */
async function assertSameAsWriter(path: string, reason: string): Promise<void> {
  const error = await errorOf({ path });
  assert(error instanceof SlotFileError, String(error));
  let expected: unknown = null;
  try {
    new ShmLoadSnapshotWriter(path, { dpSize: 2, dpRank: 0 }).close();
  } catch (error) {
    expected = error;
  }
  assert(expected instanceof SlotFileError);
  const fields = ({ name, message, reason, path, syscall, errno }: SlotFileError) => ({
    ...{ name, message, reason, path, syscall, errno },
  });
  assert.deepEqual(fields(error), fields(expected));
  assert.equal(error.reason, reason);
}

Deno.test("a path that cannot be a slot file is told as a writer tells it", async () => {
  using file = new SlotPath();
  await assertSameAsWriter("/dev/shm", "not-regular");
  await assertSameAsWriter("/dev/null", "not-regular");
  await assertSameAsWriter(`${file.path}/below/nothing`, "absent");
  await assertSameAsWriter(`/dev/shm/${"x".repeat(300)}`, "path");
  file.put(new TextEncoder().encode("hello, I am a text"));
  await assertSameAsWriter(file.path, "magic");
  using link = new SlotPath();
  must(raw.symlink(cString(file.path), cString(link.path)), "symlink");
  await assertSameAsWriter(link.path, "not-regular");
});

Deno.test("another user's file is refused", { ignore: !isRoot() }, async () => {
  using file = new SlotPath();
  file.put(slotFileBytes({ slots: [null, null] }));
  must(raw.chown(cString(file.path), NOBODY, NOBODY), "chown");
  await assertSameAsWriter(file.path, "foreign-owner");
});

Deno.test("a path or an endpoint that is none is told at once", async () => {
  await assert.rejects(Collector.open({ path: "" }), { name: "SlotFileError", reason: "path" });
  await assert.rejects(Collector.open({ path: "a\0b" }), { name: "SlotFileError", reason: "path" });
  const endpoints = [
    "",
    "udp://127.0.0.1:1",
    "tcp://127.0.0.1",
    "tcp://127.0.0.1:70000",
    "inproc://x",
  ];
  for (const endpoint of [...endpoints, `ipc:///tmp/${"x".repeat(200)}`]) {
    await assert.rejects(Collector.open({ endpoint }), { name: "RangeError" }, endpoint);
  }
});

Deno.test("an endpoint that the system refuses is told with its reason", async () => {
  const error = await errorOf({ endpoint: "ipc:///dev/shm/loadslots_test_nowhere/x.sock" });
  assert(error instanceof ZmqError);
  assert.equal(error.errno, "ENOENT");
  assert.equal(error.endpoint, "ipc:///dev/shm/loadslots_test_nowhere/x.sock");
  // An address that no interface of this machine has: TEST-NET-1.
  const foreign = await errorOf({ endpoint: "tcp://192.0.2.1:5555", allowInsecureBind: true });
  assert(foreign instanceof ZmqError);
  assert.match(foreign.errno, /^(EADDRNOTAVAIL|ENODEV)$/);
});

Deno.test("a libzmq that is none is told with each file and its reason", async () => {
  const error = await errorOf({ libzmqPath: "/nowhere/libzmq.so.5" });
  assert(error instanceof LibzmqError);
  assert.deepEqual(error.failures.map(({ path }) => path), ["/nowhere/libzmq.so.5"]);
  assert.match(error.message, /^Cannot use libzmq: .*\n.*\/nowhere\/libzmq\.so\.5/);
});

Deno.test("options out of range are refused before a worker starts", async () => {
  const wrong: readonly CollectorOptions[] = [
    ...[0, -1, 65_536, 1.5, NaN].map((dpSize) => ({ dpSize })),
    ...[0, 3, 1022, -16_384].map((slotSize) => ({ slotSize })),
    ...[0, -1, 0.5, NaN].map((receiveHighWaterMark) => ({ receiveHighWaterMark })),
  ];
  for (const options of wrong) {
    await assert.rejects(Collector.open(options), { name: "RangeError" }, JSON.stringify(options));
  }
});

Deno.test("times that are none are refused before a file is made", async () => {
  for (const times of [{ staleAfterMs: -1 }, { lockTimeoutMs: NaN }]) {
    using file = new SlotPath();
    assert.equal((await errorOf({ path: file.path, ...times })).name, "RangeError");
    assert.deepEqual(file.all(), []);
  }
});
