/** The service under load: many clients that keep up, some that do not, many that vanish. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { EventStream } from "../support/event_stream.ts";
import { HttpService } from "../support/http_service.ts";
import { SlotPath } from "../support/slot_path.ts";
import { HANG_MS, sleep } from "../support/wait.ts";

const RANKS = 8;
const CLIENTS = 200;
const ASKERS = 4;
const ANSWERS = 1000;
const MIB = 2 ** 20;

/** All ranks of one engine, which publish numbers. */
class Ranks implements Disposable {
  readonly #writers: ShmLoadSnapshotWriter[];

  constructor(path: string, dpSize: number) {
    this.#writers = Array.from(
      { length: dpSize },
      (_, dpRank) => new ShmLoadSnapshotWriter(path, { dpSize, dpRank }),
    );
    for (let dpRank = 0; dpRank < dpSize; dpRank++) this.publish(dpRank, 0);
  }

  publish(dpRank: number, number: number): void {
    this.#writers[dpRank]!.write(
      createLoadSnapshot({
        dpRank,
        timestamp: Date.now() / 1000,
        numRunningReqs: number,
        memory: {},
        queues: {},
        disaggregation: {},
      }),
    );
  }

  [Symbol.dispose](): void {
    for (const writer of this.#writers) writer.close();
  }
}

/** One stream that is read without pause; it keeps all numbers that it was told of each rank. */
class Listener implements AsyncDisposable {
  readonly told: number[][] = Array.from({ length: RANKS }, () => []);
  readonly #stream: EventStream;
  readonly #reading: Promise<void>;
  #news = Promise.withResolvers<void>();
  #isClosing = false;

  constructor(response: Response) {
    this.#stream = new EventStream(response);
    this.#reading = this.#read();
  }

  /** Resolves when a rank's newest number is this one. */
  async hears(dpRank: number, number: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`rank ${dpRank}: ${number} is missing, ${this.told[dpRank]}`)),
        HANG_MS,
      );
    });
    try {
      while (this.told[dpRank]!.at(-1) !== number) await Promise.race([this.#news.promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    await this.#stream[Symbol.asyncDispose]();
    await this.#reading;
  }

  async #read(): Promise<void> {
    for (;;) {
      const event = await this.#stream.next();
      if (event === null) break;
      for (const load of event.data.loads ?? []) {
        this.told[load.dp_rank]!.push(load["num_running_reqs"] as number);
      }
      const news = this.#news;
      this.#news = Promise.withResolvers();
      news.resolve();
    }
    assert(this.#isClosing, "the server ended the stream");
  }
}

/** Asks for the loads over and over: often enough, and until it is told to stop. */
async function askAlways(service: HttpService, stop: AbortSignal): Promise<void> {
  let answers = 0;
  while (!stop.aborted || answers < ANSWERS / ASKERS) {
    const { status, text } = await service.get("v1/loads");
    assert.equal(status, 200);
    assert.equal(JSON.parse(text).loads.length, RANKS);
    answers++;
  }
}

Deno.test(`${CLIENTS} clients that keep up are told every update while others ask, and memory stays`, async () => {
  using file = new SlotPath();
  using ranks = new Ranks(file.path, RANKS);
  await using service = await HttpService.start(file.path);
  await using stack = new AsyncDisposableStack();
  const listeners: Listener[] = [];
  for (let n = 0; n < CLIENTS; n++) {
    listeners.push(stack.use(new Listener(await service.stream())));
  }
  const stop = new AbortController();
  const asking = Promise.all(
    Array.from({ length: ASKERS }, () => askAlways(service, stop.signal)),
  );
  let number = 0;
  const publishMany = async (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      const dpRank = ++number % RANKS;
      ranks.publish(dpRank, number);
      await Promise.all(listeners.map((listener) => listener.hears(dpRank, number)));
    }
  };
  try {
    await publishMany(40);
    const before = await service.state();
    await publishMany(120);
    const after = await service.state();
    assert.equal(after.stats.streams.clients, CLIENTS);
    assert.equal(after.stats.streams.dropped, 0);
    assert(
      after.heapBytes - before.heapBytes < 4 * MIB,
      `heap from ${before.heapBytes} to ${after.heapBytes}`,
    );
    assert.equal(after.descriptors, before.descriptors);
  } finally {
    stop.abort();
  }
  await asking;
  assert((await service.state()).stats.requests >= ANSWERS + CLIENTS);
  // Not one is missing, twice, or out of order, for anybody.
  for (const { told } of listeners) {
    for (let dpRank = 0; dpRank < RANKS; dpRank++) {
      const published = Array.from({ length: number }, (_, n) => n + 1)
        .filter((n) => n % RANKS === dpRank);
      assert.deepEqual(told[dpRank], [0, ...published]);
    }
  }
});

Deno.test("ranks that publish faster than a client reads give it the newest, and no backlog", async () => {
  using file = new SlotPath();
  using ranks = new Ranks(file.path, RANKS);
  await using service = await HttpService.start(file.path);
  await using stack = new AsyncDisposableStack();
  const listeners = await Promise.all(
    Array.from({ length: 20 }, async () => stack.use(new Listener(await service.stream()))),
  );
  for (let number = 1; number <= 5000; number++) {
    ranks.publish(number % RANKS, number);
    if (number % 50 === 0) await sleep(1);
  }
  for (let dpRank = 0; dpRank < RANKS; dpRank++) ranks.publish(dpRank, 9000);
  for (const listener of listeners) {
    for (let dpRank = 0; dpRank < RANKS; dpRank++) {
      await listener.hears(dpRank, 9000);
      const told = listener.told[dpRank]!;
      assert(told.every((number, at) => at === 0 || number > told[at - 1]!), `${told}`);
    }
  }
});

Deno.test("clients that vanish leave nothing behind", async () => {
  using file = new SlotPath();
  using ranks = new Ranks(file.path, RANKS);
  await using service = await HttpService.start(file.path);
  const request = new TextEncoder().encode("GET /v1/loads/stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const vanish = async () => {
    const connections = await Promise.all(Array.from({ length: 100 }, () => service.connect()));
    for (const connection of connections) await connection.write(request);
    await Promise.all(connections.map((connection) => connection.read(new Uint8Array(16))));
    ranks.publish(0, 1);
    for (const connection of connections) connection.close();
    return await service.until("all are gone", ({ stats }) => stats.streams.clients === 0);
  };
  const first = await vanish();
  let last = first;
  for (let round = 0; round < 5; round++) last = await vanish();
  // The runtime opens a few of its own when it likes to; 600 connections are more.
  const settled = await service.until(
    "their descriptors are closed",
    ({ descriptors }) => descriptors < first.descriptors + 10,
  );
  assert.equal(settled.stats.streams.opened, 600);
  assert(
    last.heapBytes - first.heapBytes < 2 * MIB,
    `heap from ${first.heapBytes} to ${last.heapBytes}`,
  );
});

Deno.test("a client that stops reading is dropped with a reason; the others do not notice", async () => {
  const dpSize = 256;
  using file = new SlotPath();
  using ranks = new Ranks(file.path, dpSize);
  await using service = await HttpService.start(file.path, { slowAfterMs: 300, maxStreams: 2 });
  using stalled = await service.connect();
  await stalled.write(
    new TextEncoder().encode("GET /v1/loads/stream HTTP/1.0\r\nHost: x\r\n\r\n"),
  );
  await using stream = new EventStream(await service.stream());
  let number = 0;
  for (;;) {
    number++;
    for (let dpRank = 0; dpRank < dpSize; dpRank++) ranks.publish(dpRank, number);
    // The other one goes on hearing the newest.
    for (let newest = 0; newest < number;) {
      const { data } = await stream.nextOf("loads");
      newest = data.loads!.at(-1)!["num_running_reqs"] as number;
    }
    const { streams } = (await service.state()).stats;
    if (streams.dropped === 1) break;
    assert(number < 20_000, "a client that reads nothing was never dropped");
  }
  assert.equal((await service.state()).stats.streams.clients, 1);
  // Its connection still takes a place, as it holds what was not read.
  const full = await service.get("v1/loads/stream");
  assert.equal(full.status, 503);
  let text = "";
  for await (const part of stalled.readable.pipeThrough(new TextDecoderStream())) {
    text = (text + part).slice(-1000);
  }
  assert.match(text, /event: bye\ndata: .*"code":"slow".*\n\n$/);
  const next = await service.stream();
  assert.equal(next.status, 200);
  await next.body!.cancel();
});
