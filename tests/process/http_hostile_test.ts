/** What comes over the network and is no good request; and an engine, or a server, that goes. */

import assert from "node:assert/strict";
import { serveLoad } from "../../src/http/mod.ts";
import { removeSlotFile } from "../../src/slotfile/created_file.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { EventStream } from "../support/event_stream.ts";
import { firstLineOf, HttpService } from "../support/http_service.ts";
import { MemoryReader } from "../support/memory_reader.ts";
import { SlotPath } from "../support/slot_path.ts";

function get(target: string, headers = ""): string {
  return `GET ${target} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`;
}

/** Requests, and the statuses that they may get; an empty text is a connection that is closed. */
const REQUESTS: readonly (readonly [name: string, request: string, ...statuses: string[]])[] = [
  ["a header of 100 KB", get("/v1/loads", `X-Long: ${"a".repeat(100_000)}\r\n`), "400", "431"],
  ["1,000 headers", get("/v1/loads", "X-One: 1\r\n".repeat(1000)), "400", "431"],
  ["a query of 10 KB", get(`/v1/loads?include=${"a".repeat(10_000)}`), "414"],
  ["a query of 1 MB", get(`/v1/loads?include=${"a".repeat(1_000_000)}`), "400", "414", ""],
  ["10,000 values", get(`/v1/loads?${"dp_rank=0&".repeat(800)}`), "200"],
  ["a path upwards", get("/../../../../etc/passwd"), "404", "400"],
  ["a path upwards below assets", get("/assets/../../mod.ts"), "404"],
  ["an encoded path upwards", get("/assets/%2e%2e%2fassets.ts"), "404"],
  ["a path with NUL", get("/assets/page.css%00"), "404"],
  ["a backslash", get("/assets\\..\\page.css"), "404", "400"],
  ["a double slash", get("//v1/loads"), "404", "400"],
  ["another host's address", get("http://elsewhere.example/nowhere"), "404"],
  ["a broken escape", get("/v1/loads?include=%zz%"), "400"],
  ["no HTTP", "\x00\x01\x02\r\n\r\n", "400", ""],
  ["an unknown method", "BREW /v1/loads HTTP/1.1\r\nHost: x\r\n\r\n", "405"],
  ["CONNECT", "CONNECT elsewhere.example:1 HTTP/1.1\r\nHost: x\r\n\r\n", "405", "404", "400"],
  [
    "a body that never comes",
    "POST /v1/loads HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n",
    "405",
  ],
  ["no token", get("/v1/loads"), "200"],
];

Deno.test("requests that are none are refused, and the service goes on", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  writer.write(createLoadSnapshot({ timestamp: Date.now() / 1000 }));
  await using service = await HttpService.start(file.path);
  for (const [name, request, ...statuses] of REQUESTS) {
    const line = await firstLineOf(service, request);
    const status = line === "" ? "" : line.split(" ")[1];
    assert(statuses.includes(status!), `${name}: ${line}`);
    assert.equal((await service.get("v1/loads")).status, 200, name);
  }
  // Requests that are begun and left.
  {
    await using stack = new AsyncDisposableStack();
    for (let n = 0; n < 50; n++) {
      const connection = stack.adopt(await service.connect(), (one) => one.close());
      await connection.write(new TextEncoder().encode("GET /v1/loads HT"));
    }
    assert.equal((await service.get("healthz")).status, 200);
  }
  assert.deepEqual(await service.end(), { code: 0, stderr: "" });
});

Deno.test("an engine that goes and comes back is told in the stream and by /healthz", async () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path, { staleAfterMs: 300 });
  await using server = serveLoad(reader);
  const get = async (route: string) => {
    const response = await fetch(new URL(route, server.url));
    return { status: response.status, body: await response.json() };
  };
  await using stream = new EventStream(await fetch(new URL("v1/loads/stream", server.url)));
  const nextState = async (state: string) => {
    for (;;) {
      const { data } = await stream.nextOf("health");
      if (data.ranks![0]?.state === state) return;
    }
  };
  assert.equal((await stream.nextOf("health")).data.dp_size, null);
  assert.equal((await get("healthz")).status, 503);
  const write = (writer: ShmLoadSnapshotWriter, number: number) =>
    writer.write(createLoadSnapshot({ timestamp: Date.now() / 1000, numRunningReqs: number }));
  {
    using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
    write(writer, 7);
    await nextState("live");
  }
  removeSlotFile(file.path);
  await nextState("stale");
  const health = await get("healthz");
  assert.equal(health.status, 503);
  assert.equal(health.body.ranks[0].state, "stale");
  const { status, body } = await get("v1/loads");
  assert.deepEqual([status, body.loads[0].num_running_reqs], [200, 7]);
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  write(writer, 8);
  await nextState("live");
  assert.equal((await get("v1/loads")).body.loads[0].num_running_reqs, 8);
});

Deno.test("a closed reader is told over the network, and ends the streams", async () => {
  using file = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  writer.write(createLoadSnapshot({ timestamp: Date.now() / 1000 }));
  const reader = new ShmLoadSnapshotReader(file.path);
  await using server = serveLoad(reader);
  await using stream = new EventStream(await fetch(new URL("v1/loads/stream", server.url)));
  await stream.nextOf("health");
  reader.close();
  assert.equal((await stream.nextOf("bye")).data.code, "closed");
  assert.equal(await stream.next(), null);
  for (const route of ["v1/loads", "get_load", "healthz", "v1/loads/stream"]) {
    const response = await fetch(new URL(route, server.url));
    assert.equal(response.status, 503, route);
    await response.body!.cancel();
  }
});

Deno.test("closing says a last word, frees the port, and waits for nobody for ever", async () => {
  const server = serveLoad(MemoryReader.live(1), { closeTimeoutMs: 200 });
  const { hostname, port } = server.addr;
  await using stream = new EventStream(await fetch(new URL("v1/loads/stream", server.url)));
  await stream.nextOf("health");
  // A request that never ends.
  using half = await Deno.connect({ hostname, port });
  await half.write(new TextEncoder().encode("GET /v1/lo"));
  await Promise.all([server.close(), server.close()]);
  await server.closed;
  assert.equal((await stream.nextOf("bye")).data.code, "closing");
  await using again = serveLoad(MemoryReader.live(1), { port });
  assert.equal(again.addr.port, port);
  assert.throws(() => serveLoad(MemoryReader.live(1), { port }), Deno.errors.AddrInUse);
});

Deno.test("beyond loopback it is served with a token, which is asked for", async () => {
  await using server = serveLoad(MemoryReader.live(1), { hostname: "0.0.0.0", token: "s3cret" });
  const url = `http://127.0.0.1:${server.addr.port}/v1/loads`;
  const status = async (headers: Readonly<Record<string, string>>) => {
    const response = await fetch(url, { headers });
    await response.body?.cancel();
    return response.status;
  };
  assert.equal(await status({}), 401);
  assert.equal(await status({ authorization: "Bearer wrong" }), 401);
  assert.equal(await status({ authorization: "Bearer s3cret" }), 200);
});
