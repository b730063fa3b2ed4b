/** npm:zeromq's own PUSH, in processes of its own, to our collector. */

import assert from "node:assert/strict";
import { Child } from "../support/child.ts";
import { Collector, LOOPBACK } from "../support/collector.ts";
import { until } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";

const PUSH = new URL("./fixtures/npm_push.ts", import.meta.url).href;
const RANKS = 3;
const STEPS = 2000;

for (const transport of ["tcp", "ipc"]) {
  Deno.test(`what npm:zeromq pushes over ${transport} arrives, every message of it`, async () => {
    using ipc = new TempIpc();
    await using collector = await Collector.open({
      endpoint: transport === "ipc" ? ipc.endpoint : LOOPBACK,
      dpSize: RANKS,
    });
    const { reader } = collector;
    await using stack = new AsyncDisposableStack();
    const children = Array.from({ length: RANKS }, (_, rank) => {
      const args = ["--allow-all", PUSH, reader.endpoint, String(rank), String(STEPS)];
      return stack.use(Child.deno(args));
    });
    for (const child of children) assert.equal(await child.line(), "sent");
    await until(
      "the last step of each rank is readable",
      () => reader.readAll().filter((load) => load.numRunningReqs === STEPS).length === RANKS,
    );
    for (const child of children) assert.equal((await child.end()).stderr, "");
    assert.deepEqual(reader.read(1)?.queues?.waiting, STEPS);
    const { received, published, superseded } = reader.stats();
    assert.deepEqual([received, published + superseded], [RANKS * STEPS, RANKS * STEPS]);
    assert(reader.health().every(({ state }) => state === "live"));
  });
}
