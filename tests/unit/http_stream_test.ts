/** The live stream: what a client is told, after what, and how it ends. */

import assert from "node:assert/strict";
import { createLoadHandler, type LoadHandler } from "../../src/http/mod.ts";
import { EventStream, type StreamEvent } from "../support/event_stream.ts";
import { MemoryReader } from "../support/memory_reader.ts";
import { sleep, until } from "../support/wait.ts";

async function open(handler: LoadHandler, lastEventId: string | null = null): Promise<EventStream> {
  const headers: HeadersInit = lastEventId === null ? {} : { "last-event-id": lastEventId };
  return new EventStream(
    await handler.fetch(new Request("http://x/v1/loads/stream", { headers })),
  );
}

/** What an event tells of loads: rank and running requests. */
function told({ data }: StreamEvent): [number, unknown][] {
  return data.loads!.map((load) => [load.dp_rank, load["num_running_reqs"]]);
}

/** What an event tells of health: the state of each rank. */
function states({ data }: StreamEvent): string[] {
  return data.ranks!.map(({ state }) => state);
}

Deno.test("a stream begins with all ranks and their states, then tells what changes", async () => {
  const reader = MemoryReader.live(3);
  await using handler = createLoadHandler(reader);
  await using stream = await open(handler);
  const first = (await stream.next())!;
  assert.equal(first.event, "loads");
  assert.deepEqual(told(first), [[0, 1], [1, 2], [2, 3]]);
  assert.deepEqual([first.data.loads![0]!["age_ms"], first.data.loads![0]!["state"]], [0, "live"]);
  const health = (await stream.next())!;
  assert.equal(health.event, "health");
  assert.equal(health.data.dp_size, 3);
  assert.deepEqual(health.data.ranks![2], { dp_rank: 2, age_ms: 0, state: "live" });
  assert.equal(stream.retries, 1);
  for (let number = 10; number < 30; number++) {
    reader.put({ dpRank: number % 3, numRunningReqs: number });
    assert.deepEqual(told(await stream.nextOf("loads")), [[number % 3, number]]);
  }
});

Deno.test("what changes within one moment is told together, and the newest of it", async () => {
  const reader = MemoryReader.live(4);
  await using handler = createLoadHandler(reader);
  await using stream = await open(handler);
  await stream.nextOf("loads");
  for (let number = 100; number < 110; number++) {
    reader.put({ dpRank: 1, numRunningReqs: number });
    reader.put({ dpRank: 3, numRunningReqs: number });
  }
  assert.deepEqual(told(await stream.nextOf("loads")), [[1, 109], [3, 109]]);
});

Deno.test("a state that changes is told, though nothing was published", async () => {
  const reader = MemoryReader.live(2);
  await using handler = createLoadHandler(reader);
  await using stream = await open(handler);
  assert.deepEqual(states(await stream.nextOf("health")), ["live", "live"]);
  reader.judge(1, "stale", 12_000);
  const stale = await stream.nextOf("health");
  assert.deepEqual(states(stale), ["live", "stale"]);
  assert.equal(stale.data.ranks![1]!.age_ms, 12_000);
  reader.put({ dpRank: 1 });
  assert.deepEqual(states(await stream.nextOf("health")), ["live", "live"]);
});

Deno.test("an engine that comes late, grows and shrinks is told", async () => {
  const reader = new MemoryReader(0);
  await using handler = createLoadHandler(reader);
  await using stream = await open(handler);
  assert.deepEqual(told(await stream.nextOf("loads")), []);
  const none = await stream.nextOf("health");
  assert.deepEqual([none.data.dp_size, none.data.ranks], [null, []]);
  reader.resize(3);
  reader.put({ dpRank: 2, numRunningReqs: 5 });
  assert.deepEqual(told(await stream.nextOf("loads")), [[2, 5]]);
  assert.deepEqual(states(await stream.nextOf("health")), ["unreported", "unreported", "live"]);
  reader.resize(1);
  assert.deepEqual((await stream.nextOf("health")).data.dp_size, 1);
  await using late = await open(handler);
  assert.deepEqual(told(await late.nextOf("loads")), []);
});

Deno.test("the ranks' states are told at least every five seconds", async () => {
  await using handler = createLoadHandler(MemoryReader.live(1));
  await using stream = await open(handler);
  await stream.nextOf("health");
  const again = (await stream.next())!;
  assert.equal(again.event, "health");
});

Deno.test("a client that comes back is told the ranks that changed meanwhile, and no others", async () => {
  const reader = MemoryReader.live(4);
  await using handler = createLoadHandler(reader);
  await using stays = await open(handler);
  let seen: string;
  {
    await using leaves = await open(handler);
    seen = (await leaves.nextOf("loads")).id!;
  }
  await stays.nextOf("loads");
  reader.put({ dpRank: 2, numRunningReqs: 50 });
  reader.put({ dpRank: 2, numRunningReqs: 51 });
  await stays.nextOf("loads");
  await using back = await open(handler, seen);
  const news = await back.nextOf("loads");
  assert.deepEqual(told(news), [[2, 51]]);
  await back.nextOf("health");
  // Whoever missed nothing is told the states alone.
  await using again = await open(handler, news.id);
  assert.equal((await again.next())!.event, "health");
  reader.put({ dpRank: 0, numRunningReqs: 9 });
  assert.deepEqual(told(await again.nextOf("loads")), [[0, 9]]);
});

Deno.test("it can come back also when nobody listened meanwhile", async () => {
  const reader = MemoryReader.live(3);
  await using handler = createLoadHandler(reader);
  let seen: string;
  {
    await using stream = await open(handler);
    seen = (await stream.nextOf("loads")).id!;
  }
  await until("nobody watches", () => reader.watches === 0);
  reader.put({ dpRank: 1, numRunningReqs: 77 });
  await using back = await open(handler, seen);
  assert.deepEqual(told(await back.nextOf("loads")), [[1, 77]]);
});

Deno.test("a mark of another run, of the future or of nonsense gives everything", async () => {
  const reader = MemoryReader.live(2);
  await using handler = createLoadHandler(reader);
  await using other = createLoadHandler(reader);
  await using theirs = await open(other);
  const foreign = (await theirs.nextOf("loads")).id!;
  await using stream = await open(handler);
  const [epoch] = (await stream.nextOf("loads")).id!.split("-");
  const marks = [foreign, `${epoch}-999999`, `${epoch}--1`, `${epoch}-`, "", "x".repeat(10_000)];
  for (const mark of marks) {
    await using back = await open(handler, mark);
    assert.deepEqual(told((await back.next())!), [[0, 1], [1, 2]], mark.slice(0, 40));
  }
});

Deno.test("all clients share one watch, and the last that leaves ends it", async () => {
  const reader = MemoryReader.live(2);
  await using handler = createLoadHandler(reader);
  assert.equal(reader.watches, 0);
  {
    await using one = await open(handler);
    await using two = await open(handler);
    await Promise.all([one.nextOf("health"), two.nextOf("health")]);
    assert.equal(reader.watches, 1);
    reader.put({ dpRank: 0, numRunningReqs: 40 });
    const [first, second] = await Promise.all([one.nextOf("loads"), two.nextOf("loads")]);
    assert.deepEqual(told(first), told(second));
    assert.equal(handler.stats().streams.clients, 2);
  }
  await until("nobody watches", () => reader.watches === 0);
  assert.equal(handler.stats().streams.clients, 0);
});

Deno.test("a client that does not read gets the newest of each rank when it does", async () => {
  const reader = MemoryReader.live(3);
  await using handler = createLoadHandler(reader);
  await using keepsUp = await open(handler);
  await using sleeps = await open(handler);
  await Promise.all([keepsUp.nextOf("health"), sleeps.nextOf("health")]);
  for (let number = 100; number < 150; number++) {
    reader.put({ dpRank: number % 2, numRunningReqs: number });
    assert.deepEqual(told(await keepsUp.nextOf("loads")), [[number % 2, number]]);
  }
  // A few chunks wait in the pipe of this test; then everything that was missed comes at once.
  const newest = new Map<number, unknown>();
  let events = 0;
  while (newest.get(0) !== 148 || newest.get(1) !== 149) {
    for (const [dpRank, number] of told(await sleeps.nextOf("loads"))) newest.set(dpRank, number);
    events++;
  }
  assert(events < 10, `${events} events`);
});

Deno.test("a client that reads nothing for too long is ended with a reason, and counted", async () => {
  const reader = MemoryReader.live(1);
  await using handler = createLoadHandler(reader, { slowAfterMs: 100 });
  const response = await handler.fetch(new Request("http://x/v1/loads/stream"));
  await until("it was dropped", () => {
    reader.put({ dpRank: 0, numRunningReqs: 1 });
    return handler.stats().streams.dropped === 1;
  });
  assert.equal(handler.stats().streams.clients, 0);
  await using stream = new EventStream(response);
  const bye = await stream.nextOf("bye");
  assert.equal(bye.data.code, "slow");
  assert.match(bye.data.reason!, /does not read/);
  assert.equal(await stream.next(), null);
  await until("nobody watches", () => reader.watches === 0);
});

Deno.test("a stream ends after its time, with a word, and can be taken up again", async () => {
  const reader = MemoryReader.live(1);
  await using handler = createLoadHandler(reader, { maxStreamMs: 50 });
  await using stream = await open(handler);
  const { id } = await stream.nextOf("loads");
  assert.equal((await stream.nextOf("bye")).data.code, "time");
  assert.equal(await stream.next(), null);
  await using back = await open(handler, id);
  assert.equal((await back.next())!.event, "health");
});

Deno.test("one stream too many is refused, and a place that is left is free again", async () => {
  await using handler = createLoadHandler(MemoryReader.live(1), { maxStreams: 2 });
  await using one = await open(handler);
  {
    await using two = await open(handler);
    await Promise.all([one.next(), two.next()]);
    const refused = await handler.fetch(new Request("http://x/v1/loads/stream"));
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get("retry-after"), "5");
    await refused.body!.cancel();
  }
  await using three = await open(handler);
  await three.next();
  const { clients, opened, refused } = handler.stats().streams;
  assert.deepEqual({ clients, opened, refused }, { clients: 2, opened: 3, refused: 1 });
});

Deno.test("a place is taken until the connection is done with the stream", async () => {
  await using handler = createLoadHandler(MemoryReader.live(1), { maxStreams: 1 });
  const delivered = Promise.withResolvers<void>();
  const request = () => new Request("http://x/v1/loads/stream");
  const first = await handler.fetch(request(), { completed: delivered.promise });
  await first.body!.cancel();
  const second = await handler.fetch(request());
  assert.equal(second.status, 503);
  await second.body!.cancel();
  delivered.reject(new Error("the connection broke"));
  await sleep(0);
  const third = await handler.fetch(request());
  assert.equal(third.status, 200);
  await third.body!.cancel();
});

Deno.test("closing the handler ends its streams with a word, and leaves the reader open", async () => {
  const reader = MemoryReader.live(1);
  const handler = createLoadHandler(reader);
  await using stream = await open(handler);
  await stream.nextOf("health");
  await handler.close();
  await handler.close();
  assert.equal((await stream.nextOf("bye")).data.code, "closing");
  assert.equal(await stream.next(), null);
  assert.equal(reader.watches, 0);
  assert.equal(reader.readAll().length, 1);
  const late = await handler.fetch(new Request("http://x/v1/loads/stream"));
  assert.equal(late.status, 503);
  await late.body!.cancel();
  assert.equal((await handler.fetch(new Request("http://x/v1/loads"))).status, 200);
});

for (const kind of ["closed", "failed"] as const) {
  Deno.test(`a reader that has ${kind} ends the streams with a word`, async () => {
    const reader = MemoryReader.live(1);
    await using handler = createLoadHandler(reader);
    await using stream = await open(handler);
    await stream.nextOf("health");
    if (kind === "closed") reader.close();
    else reader.fail(new Error("the worker crashed"));
    assert.equal((await stream.nextOf("bye")).data.code, kind);
    assert.equal(await stream.next(), null);
  });
}

Deno.test("a reader that cannot be watched at all ends the stream with a word", async () => {
  const reader = MemoryReader.live(1);
  reader.watch = () => {
    throw new RangeError("not now");
  };
  await using handler = createLoadHandler(reader);
  await using stream = await open(handler);
  assert.equal((await stream.nextOf("bye")).data.code, "failed");
  assert.equal(handler.stats().streams.clients, 0);
});
