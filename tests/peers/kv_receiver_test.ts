/** Our receiver and our emitter, with real Python at the other end: pyzmq's own calls on both sides. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { KvMetricsEmitter } from "../../src/kv_metrics/emitter.ts";
import type { KvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import type { PickleForm } from "../../src/kv_metrics/pickle_layout.ts";
import { KV_METRICS_MODULES } from "../../src/kv_metrics/pickle_writer.ts";
import type { KvMetricsReceiver } from "../../src/kv_metrics/receiver.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { aCount } from "../support/kv_arbitraries.ts";
import { metricsOf, TestReceiver } from "../support/kv_receiver.ts";
import { valuesOf } from "../support/kv_vectors.ts";
import { until } from "../support/wait.ts";
import { TempIpc } from "../support/zmq.ts";
import { Float, NumpyScalar } from "./driver_values.ts";
import { kvPeerTests, type PythonForm } from "./kv_peer.ts";
import { KvSocketPeer } from "./kv_socket_peer.ts";

const test = await kvPeerTests();

const SEED = 20_250_601;
const FORMS = ["plain", "dataclass", "slots", "struct", "positional"] as const;
const NEWEST = { module: KV_METRICS_MODULES[3], form: "struct" } as const;
const OLDEST = { module: KV_METRICS_MODULES[0], form: "plain" } as const;

/** Metrics that a receiver of 8 ranks believes. */
const someMetrics: fc.Arbitrary<KvMetrics> = fc.record({
  requestActiveSlots: aCount.map(Math.abs),
  requestTotalSlots: aCount.map(Math.abs),
  kvActiveBlocks: aCount.map(Math.abs),
  kvTotalBlocks: aCount.map(Math.abs),
  numRequestsWaiting: aCount.map(Math.abs),
  gpuCacheUsagePerc: fc.double({ min: 0, max: 1, noNaN: true }),
  gpuPrefixCacheHitRate: fc.double({ min: 0, max: 1, noNaN: true }),
  dataParallelRank: fc.nat({ max: 7 }),
}, { noNullPrototype: true });

function sample(count: number): KvMetrics[] {
  return fc.sample(someMetrics, { seed: SEED, numRuns: count });
}

/** Takes so many messages off a receiver. */
async function metricsFrom(receiver: KvMetricsReceiver, count: number): Promise<KvMetrics[]> {
  const found: KvMetrics[] = [];
  for await (const { metrics } of receiver) if (found.push(metrics) === count) break;
  return found;
}

for (const module of KV_METRICS_MODULES) {
  test(`a scheduler whose class is in ${module} is received, in every form and protocol`, async () => {
    await using peer = await KvSocketPeer.start();
    await using opened = await TestReceiver.open({ dpSize: 8, queueSize: 4096 });
    const records = sample(20);
    for (const form of FORMS) {
      for (const protocol of [2, 3, 4, 5] as const) {
        await peer.send(opened.endpoint, { module, form }, protocol, records);
        assert.deepEqual(await metricsFrom(opened.receiver, records.length), records);
      }
    }
    for (const form of ["struct", "positional"] as const) {
      await peer.send(opened.endpoint, { module, form }, "msgpack", records);
      assert.deepEqual(await metricsFrom(opened.receiver, records.length), records);
    }
    assert.deepEqual(opened.refused(), {});
  });
}

test("1,000 records from Python arrive equal to the bit, in pickle and in MessagePack", async () => {
  await using peer = await KvSocketPeer.start();
  await using opened = await TestReceiver.open({ dpSize: 8, queueSize: 4096 });
  const records = sample(1000);
  for (const [of, encoding] of [[OLDEST, 4], [NEWEST, 5], [NEWEST, "msgpack"]] as const) {
    await peer.send(opened.endpoint, of, encoding, records);
    assert.deepEqual(await metricsFrom(opened.receiver, records.length), records);
  }
  assert.deepEqual([opened.refused(), opened.receiver.stats().overtaken], [{}, 0]);
});

test("the scalars of both numpy generations arrive as the numbers that they are", async (python) => {
  await using peer = await KvSocketPeer.start();
  await using opened = await TestReceiver.open();
  using push = new PushSocket(opened.endpoint);
  const values = [
    new NumpyScalar("int64", 3),
    new NumpyScalar("int32", 128),
    new NumpyScalar("int32", 512),
    8192,
    new NumpyScalar("int64", 2),
    new NumpyScalar("float64", 0.0625),
    new NumpyScalar("float32", 0.5),
    new NumpyScalar("int64", 1),
  ];
  for (const protocol of [2, 3, 4, 5] as const) {
    await peer.send(opened.endpoint, OLDEST, protocol, [values]);
    assert.deepEqual(await metricsFrom(opened.receiver, 1), [metricsOf(1, 3)]);
    // As numpy 1 sends them, which this Python does not have.
    for (const pickle of await python.dumps(OLDEST, protocol, [values], { numpy1: true })) {
      push.send(pickle.slice());
    }
    assert.deepEqual(await metricsFrom(opened.receiver, 1), [metricsOf(1, 3)]);
  }
});

test("a scheduler of 2025 that has not filled its fields is refused, and heard when it has", async () => {
  await using peer = await KvSocketPeer.start();
  await using opened = await TestReceiver.open();
  const empty = Array(8).fill(null);
  const partial = [1, 128, 512, 8192, 0, new Float(0.5), null, 0];
  await peer.send(opened.endpoint, OLDEST, 4, [empty, partial, metricsOf(0, 7)]);
  await opened.shows(0, 7);
  assert.deepEqual(opened.refused(), { missing: 2 });
});

test("a scheduler that queued without a limit before we came is caught up with", async () => {
  using ipc = new TempIpc();
  await using peer = await KvSocketPeer.start();
  const count = 10_000;
  const records = Array.from({ length: count }, (_, n) => metricsOf(n % 2, n));
  await peer.send(ipc.endpoint, NEWEST, 5, records);
  await using opened = await TestReceiver.open({ endpoint: ipc.endpoint, queueSize: 100 });
  await opened.shows(1, count - 1);
  assert.equal(opened.numberOf(0), count - 2);
  const { accepted, overtaken } = opened.receiver.stats();
  assert.deepEqual([accepted, overtaken], [count, count - 100]);
  assert.deepEqual(await metricsFrom(opened.receiver, 100), records.slice(-100));
});

test("a scheduler that goes and comes back is live again", async () => {
  await using peer = await KvSocketPeer.start();
  await using opened = await TestReceiver.open({ staleAfterMs: 100 });
  for (let life = 1; life <= 3; life++) {
    await peer.send(opened.endpoint, NEWEST, 5, [metricsOf(0, life)]);
    await opened.shows(0, life);
    assert.equal(opened.receiver.health()[0]!.state, "live");
    await peer.close(opened.endpoint);
    await until("it is stale", () => opened.receiver.health()[0]!.state === "stale");
    assert.equal(opened.numberOf(0), life);
  }
});

/** The forms of a class that Python can make an object of, out of one of ours. */
const READABLE: Readonly<Record<PickleForm, readonly PythonForm[]>> = {
  plain: ["plain", "dataclass"],
  slots: ["slots"],
  struct: ["struct"],
};

for (const kind of ["TCP", "ipc"] as const) {
  test(`a Dynamo worker in Python receives over ${kind} what our emitter emits`, async () => {
    using ipc = new TempIpc();
    await using peer = await KvSocketPeer.start();
    const records = sample(50);
    for (const module of KV_METRICS_MODULES) {
      for (const form of ["plain", "slots", "struct"] as const) {
        for (const protocol of [4, 5] as const) {
          const wanted = kind === "ipc" ? ipc.endpoint : "tcp://127.0.0.1:*";
          const endpoint = await peer.bind(wanted);
          const pickle = { module, form, protocol };
          using emitter = new KvMetricsEmitter(endpoint, { pickle, queueSize: 1000 });
          const pythonForm = READABLE[form][protocol === 4 ? 0 : READABLE[form].length - 1]!;
          for (const record of records) emitter.emit(record);
          // What is queued until there is a connection is sent by rank.
          await until("all are sent", () => emitter.stats().sent === records.length);
          const found = await peer.receive(endpoint, { module, form: pythonForm }, records.length);
          assert.deepEqual(byRank(found), byRank(records.map(valuesOf)));
          await peer.close(endpoint);
        }
      }
    }
  });
}

test("a receiver in Python that knows MessagePack gets 1,000 records equal to the bit", async () => {
  await using peer = await KvSocketPeer.start();
  const endpoint = await peer.bind("tcp://127.0.0.1:*");
  using emitter = new KvMetricsEmitter(endpoint, { encoding: "msgpack", queueSize: 1000 });
  const records = sample(1000);
  for (const record of records) emitter.emit(record);
  await until("all are sent", () => emitter.stats().sent === records.length);
  const found = await peer.receive(endpoint, NEWEST, records.length, { msgpack: true });
  assert.deepEqual(byRank(found), byRank(records.map(valuesOf)));
});

test("a worker in Python that starts late gets our newest metrics first, and nothing older", async () => {
  using ipc = new TempIpc();
  await using peer = await KvSocketPeer.start();
  using emitter = new KvMetricsEmitter(ipc.endpoint);
  for (let number = 1; number <= 500; number++) {
    assert.equal(emitter.emit(metricsOf(0, number)), "queued");
  }
  await peer.bind(ipc.endpoint);
  await until("it is sent", () => emitter.stats().sent === 1);
  const found = await peer.receive(ipc.endpoint, NEWEST, 1);
  assert.deepEqual(found, [valuesOf(metricsOf(0, 500))]);
});

/** Records in the order of their rank; within a rank, in theirs. */
function byRank(records: readonly (readonly (number | null)[])[]): (readonly (number | null)[])[] {
  return records.toSorted((a, b) => a[7]! - b[7]!);
}
