/** From a receiver to publishers: who is told what and when, and who fails without harm. */

import assert from "node:assert/strict";
import { createKvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import type {
  KvMetricsOutlet,
  KvMetricsOutletStats,
} from "../../src/kv_metrics/publishers/publisher.ts";
import { KvMetricsRelay } from "../../src/kv_metrics/publishers/relay.ts";
import type { ReceivedKvMetrics } from "../../src/kv_metrics/received_kv_metrics.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { messageOf, receivedOf, TestReceiver } from "../support/kv_receiver.ts";
import { sleep, until } from "../support/wait.ts";

const NOTHING: Omit<KvMetricsOutletStats, "name"> = {
  published: 0,
  unchanged: 0,
  superseded: 0,
  failed: 0,
  lastError: null,
};

/** A receiver that gives out what a test pushes. */
class Source implements AsyncIterable<ReceivedKvMetrics> {
  readonly #messages: ReceivedKvMetrics[] = [];
  #wake: (() => void) | null = null;
  #hasEnded = false;

  push(...messages: readonly ReceivedKvMetrics[]): void {
    this.#messages.push(...messages);
    this.#wake?.();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake?.();
  }

  [Symbol.asyncIterator](): AsyncIterator<ReceivedKvMetrics, undefined> {
    const done = { done: true, value: undefined } as const;
    return {
      next: async () => {
        while (this.#messages.length === 0 && !this.#hasEnded) {
          await new Promise<void>((resolve) => this.#wake = resolve);
        }
        const value = this.#messages.shift();
        return value === undefined ? done : { done: false, value };
      },
      return: () => {
        this.end();
        return Promise.resolve(done);
      },
    };
  }
}

/** A publisher that keeps what it was told. */
class Listener {
  readonly numbers: number[] = [];
  readonly publish = ({ metrics }: ReceivedKvMetrics): void => {
    this.numbers.push(metrics.requestActiveSlots);
  };
}

/** A message in which what a planner looks at is told apart from the number. */
function message(dpRank: number, number: number, blocks: number, waiting = 0): ReceivedKvMetrics {
  return {
    ...receivedOf(dpRank, number),
    metrics: createKvMetrics({
      dataParallelRank: dpRank,
      requestActiveSlots: number,
      kvActiveBlocks: blocks,
      numRequestsWaiting: waiting,
    }),
  };
}

function relayTo(outlets: readonly KvMetricsOutlet[], failures: unknown[] = []) {
  const source = new Source();
  const relay = new KvMetricsRelay(source, outlets, {
    onFailure: (publisher, error) => void failures.push([publisher, error]),
  });
  return { source, relay };
}

Deno.test("each publisher gets each message of a receiver, in order", async () => {
  await using opened = await TestReceiver.open();
  const [one, other] = [new Listener(), new Listener()];
  await using relay = new KvMetricsRelay(opened.receiver, [
    { publisher: one.publish },
    { publisher: { name: "other", publish: other.publish } },
  ]);
  using push = new PushSocket(opened.endpoint);
  for (let number = 1; number <= 100; number++) push.send(messageOf(number % 2, number));
  await until("all came", () => other.numbers.length === 100);
  assert.deepEqual(one.numbers, Array.from({ length: 100 }, (_, n) => n + 1));
  assert.deepEqual(other.numbers, one.numbers);
  assert.deepEqual(relay.stats(), [
    { name: "publish", ...NOTHING, published: 100 },
    { name: "other", ...NOTHING, published: 100 },
  ]);
});

Deno.test("a relay ends with its receiver, and leaves it open when it is closed first", async () => {
  await using opened = await TestReceiver.open();
  const first = new KvMetricsRelay(opened.receiver, []);
  assert.throws(() => new KvMetricsRelay(opened.receiver, []), TypeError);
  await first.close();
  await first.close();
  await first.ended;
  await using second = new KvMetricsRelay(opened.receiver, []);
  await opened.receiver.close();
  await second.ended;
});

Deno.test("a publisher that throws or rejects is reported, and breaks nothing", async () => {
  const good = new Listener();
  const failures: unknown[] = [];
  const [thrown, rejected] = [new Error("thrown"), new Error("rejected")];
  const { source, relay } = relayTo([
    {
      publisher: {
        name: "thrower",
        publish() {
          throw thrown;
        },
      },
    },
    { publisher: { name: "rejecter", publish: () => Promise.reject(rejected) } },
    { publisher: good.publish },
  ], failures);
  await using _relay = relay;
  for (const number of [1, 2]) {
    source.push(receivedOf(0, number));
    await until("all have failed", () => failures.length === number * 2);
  }
  assert.deepEqual(good.numbers, [1, 2]);
  assert.deepEqual(failures.slice(0, 2), [["thrower", thrown], ["rejecter", rejected]]);
  assert.deepEqual(relay.stats().slice(0, 2), [
    { name: "thrower", ...NOTHING, failed: 2, lastError: "thrown" },
    { name: "rejecter", ...NOTHING, failed: 2, lastError: "rejected" },
  ]);
});

Deno.test("not even what is told of failures can break a relay, nor can it be nobody", async () => {
  const good = new Listener();
  const fails = () => {
    throw new Error("on purpose");
  };
  for (const options of [{ onFailure: fails }, {}]) {
    const source = new Source();
    await using relay = new KvMetricsRelay(
      source,
      [{ publisher: fails }, { publisher: good.publish }],
      options,
    );
    source.push(receivedOf(0, 1), receivedOf(0, 2));
    source.end();
    await relay.ended;
    assert.deepEqual([good.numbers.splice(0), relay.stats()[0]!.failed], [[1, 2], 2]);
  }
});

Deno.test("a slow publisher holds up nobody, and gets the newest of each rank when it is ready", async () => {
  const good = new Listener();
  const started: number[] = [];
  const { promise: first, resolve } = Promise.withResolvers<void>();
  const { source, relay } = relayTo([
    {
      publisher: ({ metrics }) => {
        started.push(metrics.requestActiveSlots);
        return started.length === 1 ? first : Promise.resolve();
      },
    },
    { publisher: good.publish },
  ]);
  await using _relay = relay;
  for (let number = 1; number <= 10; number++) source.push(receivedOf(number % 2, number));
  await until("the other has all", () => good.numbers.length === 10);
  assert.deepEqual(started, [1]);
  resolve();
  await until("it has the rest", () => relay.stats()[0]!.published === 3);
  assert.deepEqual(started.sort((a, b) => a - b), [1, 9, 10]);
  assert.equal(relay.stats()[0]!.superseded, 7);
});

Deno.test("only changes of blocks or waiting requests are published, if that is asked for", async () => {
  const listener = new Listener();
  const { source, relay } = relayTo([{ publisher: listener.publish, onlyChanges: true }]);
  await using _relay = relay;
  source.push(
    message(0, 1, 100),
    message(0, 2, 100),
    message(1, 3, 100),
    message(0, 4, 101),
    message(0, 5, 101, 1),
    message(0, 6, 101, 1),
    message(1, 7, 100),
    message(0, 8, 101),
  );
  source.end();
  await relay.ended;
  assert.deepEqual(listener.numbers, [1, 3, 4, 5, 8]);
  const [stats] = relay.stats();
  assert.deepEqual([stats?.published, stats?.unchanged], [5, 3]);
});

Deno.test("what was not published for a failure is a change still", async () => {
  const numbers: number[] = [];
  const { source, relay } = relayTo([{
    publisher: ({ metrics }) => {
      numbers.push(metrics.requestActiveSlots);
      if (numbers.length === 1) throw new Error("on purpose");
    },
    onlyChanges: true,
  }]);
  await using _relay = relay;
  source.push(message(0, 1, 100), message(0, 2, 100), message(0, 3, 100));
  source.end();
  await relay.ended;
  assert.deepEqual(numbers, [1, 2]);
});

Deno.test("within an interval a rank is published once, and then with its newest message", async () => {
  const listener = new Listener();
  const intervalMs = 40;
  const { source, relay } = relayTo([{ publisher: listener.publish, minIntervalMs: intervalMs }]);
  await using _relay = relay;
  const begin = performance.now();
  source.push(receivedOf(0, 1), receivedOf(0, 2), receivedOf(1, 3), receivedOf(0, 4));
  await until("the first of each rank is there", () => listener.numbers.length === 2);
  assert.deepEqual(listener.numbers, [1, 3]);
  await until("the newest is there", () => listener.numbers.length === 3);
  assert(performance.now() - begin >= intervalMs - 1);
  assert.deepEqual(listener.numbers, [1, 3, 4]);
  assert.equal(relay.stats()[0]!.superseded, 1);
  await sleep(2 * intervalMs);
  assert.equal(listener.numbers.length, 3);
});

Deno.test("what is held back is published at the end, and given up when the relay is closed", async () => {
  for (const end of ["end", "close"] as const) {
    const listener = new Listener();
    const outlet = { publisher: listener.publish, minIntervalMs: 1_000_000 };
    const { source, relay } = relayTo([outlet]);
    await using _relay = relay;
    source.push(receivedOf(0, 1), receivedOf(0, 2));
    await until("the first is there", () => listener.numbers.length === 1);
    if (end === "end") source.end();
    else await relay.close();
    await relay.ended;
    assert.deepEqual(listener.numbers, end === "end" ? [1, 2] : [1]);
    const [stats] = relay.stats();
    assert.equal(stats!.published + stats!.superseded, 2);
  }
});

Deno.test("an interval that is none is refused, and no message is taken", () => {
  for (const minIntervalMs of [-1, NaN, Infinity]) {
    assert.throws(() => relayTo([{ publisher: () => {}, minIntervalMs }]), RangeError);
  }
});

Deno.test("a publisher that throws or rejects with a value without a text is a failure like others", async () => {
  const source = new Source();
  const got: number[] = [];
  const bare: unknown = Object.create(null);
  const relay = new KvMetricsRelay(source, [
    {
      publisher: () => {
        throw bare;
      },
    },
    { publisher: () => Promise.reject(bare) },
    {
      publisher: () => ({
        get then(): never {
          throw bare;
        },
      }),
    },
    { publisher: ({ metrics }) => void got.push(metrics.requestActiveSlots!) },
  ], { onFailure: () => {} });
  for (const number of [1, 2, 3]) source.push(receivedOf(0, number));
  await until("all are passed on", () => got.length === 3);
  source.end();
  await relay.ended;
  assert.deepEqual(relay.stats().slice(0, 3).map(({ failed }) => failed > 0), [true, true, true]);
  assert.deepEqual(got, [1, 2, 3]);
});
