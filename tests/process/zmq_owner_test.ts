/** Processes that end with a socket open: they end at once, and others take over what they leave. */

import assert from "node:assert/strict";
import { EndpointInUseError } from "../../src/errors.ts";
import { PullSocket, PushSocket } from "../../src/zmq/socket.ts";
import { Child, outputOf, runDeno } from "../support/child.ts";
import { bytesOf, receive, TempIpc, textOf } from "../support/zmq.ts";

const SCENARIOS = new URL("./fixtures/zmq_scenarios.ts", import.meta.url);
const LIMITS = { maxMessageSize: 16384 };
const NOBODY = "tcp://127.0.0.1:9";
// Elsewhere libzmq binds ipc endpoints by itself.
const ignore = Deno.build.os !== "linux";

const ENV = { LOADSLOTS_LIBZMQ: "/nowhere/libzmq.so" };

function argsOf(name: string, endpoint = "", permissions: readonly string[] = []): string[] {
  return ["--allow-ffi", "--allow-read", ...permissions, SCENARIOS.href, name, endpoint];
}

/** Starts an owner of the endpoint, and waits until it is bound. */
async function startOwner(endpoint: string): Promise<Child> {
  const child = Child.deno(argsOf("owns", endpoint));
  assert.equal(await child.line(), `bound ${endpoint}`);
  return child;
}

/** Has an owner bind, and kills it. */
async function leaveBehind({ endpoint, path, lockPath }: TempIpc): Promise<void> {
  await using child = await startOwner(endpoint);
  child.kill("SIGKILL");
  assert.equal((await child.status).signal, "SIGKILL");
  assert.deepEqual([Deno.lstatSync(path).isSocket, Deno.lstatSync(lockPath).isFile], [true, true]);
}

Deno.test("the path of another living process is refused", { ignore }, async () => {
  using ipc = new TempIpc();
  await using owner = await startOwner(ipc.endpoint);
  assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), EndpointInUseError);
  // One that stands still is alive as well.
  owner.kill("SIGSTOP");
  assert.throws(() => new PullSocket(ipc.endpoint, LIMITS), EndpointInUseError);
});

Deno.test(
  "what killed owners left is taken over, and their writers come along",
  { ignore },
  async () => {
    using ipc = new TempIpc();
    await leaveBehind(ipc);
    using push = new PushSocket(ipc.endpoint, { conflate: true });
    for (let round = 0; round < 3; round++) {
      {
        using pull = new PullSocket(ipc.endpoint, LIMITS);
        push.send(bytesOf(`round ${round}`));
        assert.equal(textOf(receive(pull)), `round ${round}`);
      }
      await leaveBehind(ipc);
    }
  },
);

Deno.test("of processes that bind at the same moment one gets the path", { ignore }, async () => {
  using ipc = new TempIpc();
  await leaveBehind(ipc);
  await using stack = new AsyncDisposableStack();
  const children = Array.from(
    { length: 6 },
    () => stack.use(Child.deno(argsOf("owns", ipc.endpoint))),
  );
  const said = await Promise.all(
    children.map((child) => child.line().catch((error: Error) => error.message)),
  );
  assert.equal(said.filter((line) => line === `bound ${ipc.endpoint}`).length, 1);
  assert.equal(said.filter((line) => line.includes("EndpointInUseError")).length, 5);
});

Deno.test("a process ends although its writer is open and its collector absent", async () => {
  assert.equal(await outputOf(argsOf("returns", NOBODY)), "");
  const { code, signal, stderr } = await runDeno(argsOf("throws", NOBODY));
  assert.deepEqual([code, signal], [1, null]);
  assert.match(stderr, /on purpose/);
  assert.equal((await runDeno(argsOf("exits", NOBODY))).code, 7);
});

Deno.test("closing does not wait for the look-up of a name", async () => {
  assert.equal(await outputOf(argsOf("closes", "tcp://no-such-host.invalid:9")), "closed\n");
});

Deno.test("the environment names a libzmq where Deno may read it, and only there", async () => {
  assert.match(await outputOf(argsOf("library"), { env: ENV }), /addon\.node\n$/);
  const permissions = ["--allow-env=LOADSLOTS_LIBZMQ"];
  const { code, stderr } = await runDeno(argsOf("library", "", permissions), { env: ENV });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /Cannot use libzmq: none of LOADSLOTS_LIBZMQ loads\n.*\/nowhere\/libzmq\.so/,
  );
});

Deno.test("without permission the error is Deno's own", async () => {
  const errorWith = async (permission: string) =>
    (await runDeno([permission, SCENARIOS.href, "library"])).stderr;
  assert.match(await errorWith("--allow-read"), /NotCapable: Requires ffi access/);
  assert.match(await errorWith("--allow-ffi"), /NotCapable: Requires read access/);
});
