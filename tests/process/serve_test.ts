/** `examples/serve.ts` as a user runs it. */

import assert from "node:assert/strict";
import { SimulatedEngine } from "../../examples/engine.ts";
import { serveLoad } from "../../src/http/mod.ts";
import { EventStream } from "../support/event_stream.ts";
import { MemoryReader } from "../support/memory_reader.ts";
import { SlotPath } from "../support/slot_path.ts";
import { ExampleProcess, type Outcome } from "./fixtures/example_process.ts";

/** What it asks for, and no more. */
const PERMISSIONS = ["--allow-ffi", "--allow-read", "--allow-net=127.0.0.1"];

function start(...args: readonly string[]): ExampleProcess {
  return new ExampleProcess("serve.ts", args, PERMISSIONS);
}

/** Runs it to its end. */
async function outcomeOf(...args: readonly string[]): Promise<Outcome> {
  await using process = start(...args);
  return await process.outcome;
}

/** Waits until it serves. @returns The address that it printed, and what stands behind `#`. */
async function opened(process: ExampleProcess): Promise<URL> {
  await process.printed("curl ");
  return new URL(/^Open (\S+)$/m.exec(process.stdout)![1]!);
}

async function get(url: URL, route: string): Promise<Response> {
  return await fetch(new URL(route, url));
}

Deno.test("it serves a simulated engine with a page, live, and ends in order", async () => {
  await using process = start("--port", "0", "--ranks", "3");
  const url = await opened(process);
  assert.equal(url.hostname, "127.0.0.1");
  assert.match(process.stdout, /^A simulated engine\./);
  const { loads } = await (await get(url, "v1/loads")).json();
  assert.deepEqual(loads.map((load: { dp_rank: number }) => load.dp_rank), [0, 1, 2]);
  const page = await get(url, ".");
  assert.match(page.headers.get("content-type")!, /^text\/html/);
  assert.match(await page.text(), /<title>/);
  const ready = await get(url, "healthz");
  assert.equal(ready.status, 200);
  await ready.body!.cancel();
  await using stream = new EventStream(await get(url, "v1/loads/stream"));
  for (let n = 0; n < 3; n++) await stream.nextOf("loads");
  process.kill("SIGINT");
  assert.equal((await stream.nextOf("bye")).data.code, "closing");
  const { code, stderr } = await process.outcome;
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
});

Deno.test("it serves a real engine by its path, asks for a token, and ends after its time", async () => {
  using file = new SlotPath();
  using engine = SimulatedEngine.publishingTo(file.path, { dpSize: 2 });
  engine.step(1000);
  await using process = start(
    ...["--port", "0", "--path", file.path, "--token", "s3cret", "--seconds", "6"],
  );
  const url = await opened(process);
  assert.equal(url.hash, "#token=s3cret");
  assert(process.stdout.startsWith(`${file.path}\n`));
  const refused = await get(url, "v1/loads");
  assert.equal(refused.status, 401);
  await refused.body!.cancel();
  const response = await fetch(new URL("v1/loads?dp_rank=1", url), {
    headers: { authorization: "Bearer s3cret" },
  });
  assert.equal((await response.json()).loads[0].dp_rank, 1);
  const { code, stderr } = await process.outcome;
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
});

Deno.test("an engine that is not there yet is said, and served when it comes", async () => {
  using file = new SlotPath();
  await using process = start("--port", "0", "--path", file.path);
  const url = await opened(process);
  await process.printed(`No engine publishes at ${file.path}`);
  await using stream = new EventStream(await get(url, "v1/loads/stream"));
  assert.deepEqual((await stream.nextOf("loads")).data.loads, []);
  using engine = SimulatedEngine.publishingTo(file.path, { dpSize: 1 });
  engine.step(1000);
  assert.equal((await stream.nextOf("loads")).data.loads![0]!.dp_rank, 0);
});

Deno.test("a port that is taken ends it with exit code 1 and a reason", async () => {
  await using server = serveLoad(MemoryReader.live(1));
  const { port } = server.addr;
  const { code, stderr } = await outcomeOf("--port", `${port}`);
  assert.deepEqual([code, stderr], [
    1,
    `Something else listens at port ${port}: choose another by --port\n`,
  ]);
});

for (
  const [what, flags, reason] of [
    ["an address that others reach", ["--host", "0.0.0.0"], /say --token T, or --open/],
    ["a port that is none", ["--port", "70000"], /--port takes/],
    ["a token with a blank", ["--token", "a b"], /--token takes/],
    ["an unknown flag", ["--verbose"], /--verbose/],
  ] as const
) {
  Deno.test(`${what} is answered with the usage and exit code 2`, async () => {
    const { code, stdout, stderr } = await outcomeOf(...flags);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, reason);
    assert.match(stderr, /deno task serve \[flags\]/);
  });
}
