/** An emitter: what it says of each message is so, and what it keeps is the newest. */

import assert from "node:assert/strict";
import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import {
  type EmitOutcome,
  KvMetricsEmitter,
  type KvMetricsEmitterOptions,
} from "../../src/kv_metrics/emitter.ts";
import { encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { encodeKvMetricsPickle } from "../../src/kv_metrics/pickle_writer.ts";
import { generateCurveKeys } from "../../src/zmq/curve.ts";
import { PullSocket } from "../../src/zmq/socket.ts";
import { LOOPBACK, returnTo } from "../support/collector.ts";
import { metricsOf, receiverHoldings, take, TestReceiver } from "../support/kv_receiver.ts";
import { matches } from "../support/raw_libc.ts";
import { until } from "../support/wait.ts";
import { receive, TempIpc } from "../support/zmq.ts";

const NOBODY = "tcp://127.0.0.1:9";
const LIMITS = { maxMessageSize: 16_384 };

/** Emits until libzmq has taken a message: then there is a connection. */
async function connect(emitter: KvMetricsEmitter): Promise<void> {
  await until("there is a connection", () => {
    return emitter.emit(metricsOf(0, 0)) === "sent" && emitter.stats().queued === 0;
  });
}

for (
  const [name, options, expected] of [
    ["pickle of protocol 5", {}, encodeKvMetricsPickle(metricsOf(0, 7))],
    [
      "pickle as it is told",
      { pickle: { protocol: 4, module: "sglang.srt.managers.scheduler", form: "slots" } },
      encodeKvMetricsPickle(metricsOf(0, 7), {
        protocol: 4,
        module: "sglang.srt.managers.scheduler",
        form: "slots",
      }),
    ],
    ["MessagePack", { encoding: "msgpack" }, encodeKvMetricsMsgpack(metricsOf(0, 7))],
  ] as const satisfies readonly (readonly [string, KvMetricsEmitterOptions, Uint8Array])[]
) {
  Deno.test(`metrics travel as ${name}`, () => {
    using pull = new PullSocket(LOOPBACK, LIMITS);
    using emitter = new KvMetricsEmitter(pull.endpoint, options);
    let message: unknown = null;
    // A message that was queued goes with the next one.
    while (message === null) {
      emitter.emit(metricsOf(0, 7));
      message = receive(pull, 20);
    }
    assert.deepEqual(message, expected);
    assert.deepEqual(decodeKvMetrics(expected), metricsOf(0, 7));
  });
}

Deno.test("a message is sent where a receiver is connected, and it arrives", async () => {
  await using opened = await TestReceiver.open();
  using emitter = new KvMetricsEmitter(opened.endpoint);
  await connect(emitter);
  for (let number = 1; number <= 50; number++) {
    assert.equal(emitter.emit(metricsOf(1, number)), "sent");
  }
  await opened.shows(1, 50);
  const { sent, queued, dropped } = emitter.stats();
  assert.deepEqual([queued, dropped], [0, 0]);
  await opened.counts("accepted", sent);
});

Deno.test("what is queued is sent without another message, once there is a receiver", async () => {
  using ipc = new TempIpc();
  const { endpoint } = ipc;
  using emitter = new KvMetricsEmitter(endpoint);
  assert.equal(emitter.emit(metricsOf(0, 1)), "queued");
  assert.deepEqual(emitter.stats(), { sent: 0, queued: 1, dropped: 0 });
  await using opened = await TestReceiver.open({ endpoint });
  await opened.shows(0, 1);
  assert.deepEqual(emitter.stats(), { sent: 1, queued: 0, dropped: 0 });
});

Deno.test("a receiver that starts late gets the newest of each rank first, and nothing older", async () => {
  using ipc = new TempIpc();
  const { endpoint } = ipc;
  using emitter = new KvMetricsEmitter(endpoint);
  for (let number = 1; number <= 1000; number++) {
    assert.equal(emitter.emit(metricsOf(0, number)), "queued");
    if (number <= 10) assert.equal(emitter.emit(metricsOf(1, number)), "queued");
  }
  assert.deepEqual(emitter.stats(), { sent: 0, queued: 2, dropped: 1008 });
  await using opened = await TestReceiver.open({ endpoint });
  assert.deepEqual(await take(opened.receiver, 2), [1000, 10]);
  assert.equal(emitter.emit(metricsOf(0, 1001)), "sent");
  assert.deepEqual(await take(opened.receiver, 1), [1001]);
  assert.deepEqual(emitter.stats(), { sent: 3, queued: 0, dropped: 1008 });
});

Deno.test("a longer queue keeps the newest of each rank in their order", async () => {
  using ipc = new TempIpc();
  const { endpoint } = ipc;
  using emitter = new KvMetricsEmitter(endpoint, { queueSize: 3 });
  for (let number = 1; number <= 10; number++) emitter.emit(metricsOf(0, number));
  emitter.emit(metricsOf(1, 11));
  assert.deepEqual(emitter.stats(), { sent: 0, queued: 4, dropped: 7 });
  await using opened = await TestReceiver.open({ endpoint });
  assert.deepEqual(await take(opened.receiver, 4), [8, 9, 10, 11]);
});

Deno.test("without a queue, what cannot be sent is dropped and said to be", async () => {
  using ipc = new TempIpc();
  const { endpoint } = ipc;
  using emitter = new KvMetricsEmitter(endpoint, { queueSize: 0 });
  for (let number = 1; number <= 3; number++) {
    assert.equal(emitter.emit(metricsOf(0, number)), "dropped");
  }
  assert.deepEqual(emitter.stats(), { sent: 0, queued: 0, dropped: 3 });
  await using opened = await TestReceiver.open({ endpoint });
  await until("one is sent", () => emitter.emit(metricsOf(0, 7)) === "sent");
  await opened.shows(0, 7);
});

for (const kind of ["TCP", "ipc"] as const) {
  Deno.test(`a receiver that goes and comes back over ${kind} is found again, and gets the newest first`, async () => {
    using ipc = new TempIpc();
    await using first = await TestReceiver.open(kind === "ipc" ? { endpoint: ipc.endpoint } : {});
    const { endpoint } = first;
    using emitter = new KvMetricsEmitter(endpoint);
    await until("it is heard", () => {
      emitter.emit(metricsOf(0, 1));
      return first.numberOf(0) === 1;
    });
    await first.receiver.close();
    for (let life = 2; life <= 4; life++) {
      await until("it is missed", () => emitter.emit(metricsOf(0, 0)) === "queued");
      emitter.emit(metricsOf(0, life));
      await using opened = await TestReceiver.open({ endpoint });
      assert.deepEqual(await take(opened.receiver, 1), [life]);
    }
  });
}

Deno.test("a receiver that is behind costs neither waiting nor memory, and then gets the newest", async () => {
  using pull = new PullSocket(LOOPBACK, { ...LIMITS, receiveHighWaterMark: 1 });
  using emitter = new KvMetricsEmitter(pull.endpoint);
  const outcomes: Record<EmitOutcome, number> = { sent: 0, queued: 0, dropped: 0 };
  const count = 200_000;
  for (let number = 1; number <= count; number++) outcomes[emitter.emit(metricsOf(0, number))]++;
  const { sent, queued, dropped } = emitter.stats();
  assert.deepEqual([outcomes.dropped, queued], [0, 1]);
  assert.equal(sent + queued + dropped, count);
  assert(dropped > count / 2, `${dropped}`);
  let last = 0;
  await until("the newest has come", () => {
    for (let message = receive(pull, 0); message !== null; message = receive(pull, 0)) {
      assert(message instanceof Uint8Array);
      const number = decodeKvMetrics(message).requestActiveSlots!;
      assert(number > last, `${number} after ${last}`);
      last = number;
    }
    return last === count;
  });
  assert.deepEqual(emitter.stats(), { sent: sent + 1, queued: 0, dropped });
});

Deno.test("every message is counted once, also when the emitter is closed", () => {
  const emitter = new KvMetricsEmitter(NOBODY, { queueSize: 2 });
  for (let number = 1; number <= 5; number++) emitter.emit(metricsOf(number % 2, number));
  assert.deepEqual(emitter.stats(), { sent: 0, queued: 4, dropped: 1 });
  emitter.close();
  emitter.close();
  assert.deepEqual(emitter.stats(), { sent: 0, queued: 0, dropped: 5 });
  assert.throws(() => emitter.emit(metricsOf(0, 6)), {
    name: "TypeError",
    message: "Cannot emit metrics: the emitter is closed",
  });
});

Deno.test("closing lets go of every thread and descriptor, with messages queued or without", async () => {
  const before = await receiverHoldings();
  for (let round = 0; round < 10; round++) {
    using emitter = new KvMetricsEmitter(NOBODY);
    if (round % 2 === 0) emitter.emit(metricsOf(0, 1));
  }
  await returnTo(before);
});

Deno.test("an emitter leaves no file at an ipc endpoint, whether a receiver comes or not", async () => {
  using ipc = new TempIpc();
  {
    using emitter = new KvMetricsEmitter(ipc.endpoint);
    emitter.emit(metricsOf(0, 1));
    assert.deepEqual(matches(`${ipc.path}*`), []);
    await using opened = await TestReceiver.open({ endpoint: ipc.endpoint });
    await opened.shows(0, 1);
  }
  assert.deepEqual(matches(`${ipc.path}*`), []);
});

Deno.test("values that cannot travel are refused, and nothing is sent", () => {
  using emitter = new KvMetricsEmitter(NOBODY);
  const metrics = metricsOf(0, 1);
  assert.throws(() => emitter.emit({ ...metrics, dataParallelRank: null }), TypeError);
  assert.throws(() => emitter.emit({ ...metrics, kvActiveBlocks: 1.5 }), RangeError);
  assert.throws(() => emitter.emit({ ...metrics, kvActiveBlocks: 2 ** 53 }), RangeError);
  for (const dataParallelRank of [-1, 65_535, 2 ** 40]) {
    assert.throws(() => emitter.emit({ ...metrics, dataParallelRank }), RangeError);
  }
  assert.throws(() => emitter.emit({ ...metrics, kvTotalBlocks: "8192" } as never), TypeError);
  assert.deepEqual(emitter.stats(), { sent: 0, queued: 0, dropped: 0 });
  // What a sender of 2025 may leave out is not wrong.
  assert.equal(emitter.emit({ ...metrics, gpuPrefixCacheHitRate: null }), "queued");
});

Deno.test("options and endpoints that cannot be are refused", () => {
  const open = (options: KvMetricsEmitterOptions, endpoint = NOBODY) => () =>
    new KvMetricsEmitter(endpoint, options);
  for (const queueSize of [-1, 0.5, NaN, 2 ** 20 + 1]) {
    assert.throws(open({ queueSize }), RangeError);
  }
  assert.throws(open({ encoding: "json" as "pickle" }), RangeError);
  assert.throws(open({ pickle: { protocol: 3 as 4 } }), RangeError);
  assert.throws(open({ pickle: { module: "os\nsystem" } }), RangeError);
  for (const endpoint of ["tcp://127.0.0.1:*", "tcp://*:5557", "inproc://x", "ipc://"]) {
    assert.throws(open({}, endpoint), RangeError);
  }
  assert.throws(open({ curve: { serverKey: "short" } }), TypeError);
});

Deno.test("with keys, known emitters get in and others are counted", async () => {
  const keys = generateCurveKeys();
  const known = generateCurveKeys();
  await using opened = await TestReceiver.open({
    endpoint: "tcp://0.0.0.0:*",
    curve: { keys, allowedClients: [known.publicKey] },
  });
  const endpoint = opened.endpoint.replace("0.0.0.0", "127.0.0.1");
  const serverKey = keys.publicKey;
  using friend = new KvMetricsEmitter(endpoint, { curve: { serverKey, keys: known } });
  using stranger = new KvMetricsEmitter(endpoint, { curve: { serverKey } });
  using plain = new KvMetricsEmitter(endpoint);
  for (const emitter of [stranger, plain]) emitter.emit(metricsOf(0, 1));
  friend.emit(metricsOf(1, 2));
  await opened.shows(1, 2);
  await opened.counts("refusedPeers", 1);
  assert.equal(opened.receiver.latest(0), null);
  assert.deepEqual([stranger.stats().queued, plain.stats().queued], [1, 1]);
});
