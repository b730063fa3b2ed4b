/** The publishers: a slot file, a Prometheus registry, and Dynamo's older events. */

import assert from "node:assert/strict";
import client from "npm:prom-client@15.1.3";
import { LockTimeoutError } from "../../src/errors.ts";
import { createKvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import {
  type LoadEvent,
  loadEventJson,
  loadEventOf,
  LoadEventPublisher,
} from "../../src/kv_metrics/publishers/load_event.ts";
import { PrometheusPublisher } from "../../src/kv_metrics/publishers/prometheus_publisher.ts";
import { KvMetricsRelay } from "../../src/kv_metrics/publishers/relay.ts";
import {
  loadSnapshotFrom,
  SlotFilePublisher,
} from "../../src/kv_metrics/publishers/slot_file_publisher.ts";
import { removeSlotFile } from "../../src/slotfile/created_file.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { messageOf, metricsOf, receivedOf, TestReceiver } from "../support/kv_receiver.ts";
import { RawFile } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { until } from "../support/wait.ts";

const LOCK_EX = 2;

Deno.test("readers of slot files see an engine that tells nothing but KvMetrics", async () => {
  using file = new SlotPath();
  await using opened = await TestReceiver.open();
  using publisher = new SlotFilePublisher(file.path, { dpSize: 2 });
  await using _relay = new KvMetricsRelay(opened.receiver, [{ publisher }]);
  using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 2 });
  using push = new PushSocket(opened.endpoint);
  const before = Date.now();
  push.send(messageOf(1, 7));
  await until("it is readable", () => reader.read(1)?.numRunningReqs === 7);
  const load = reader.read(1)!;
  const { timestamp } = load;
  assert(timestamp * 1000 >= before && timestamp * 1000 <= Date.now(), `${timestamp}`);
  assert.deepEqual(
    load,
    createLoadSnapshot({
      timestamp,
      dpRank: 1,
      numRunningReqs: 7,
      numWaitingReqs: 2,
      numUsedTokens: 512,
      numTotalTokens: 512,
      numActiveTokens: 512,
      maxTotalNumTokens: 8192,
      maxRunningRequests: 128,
      tokenUsage: 0.0625,
      cacheHitRate: 0.5,
    }),
  );
  assert.deepEqual(reader.readAll(), [load]);
  assert.deepEqual(reader.health().map(({ state }) => state), ["unreported", "live"]);
});

Deno.test("a slot file publisher fails as it can, and goes on with the next message", () => {
  using file = new SlotPath();
  using publisher = new SlotFilePublisher(file.path, { dpSize: 2 });
  using reader = new ShmLoadSnapshotReader(file.path);
  const numbers = () => reader.readAll().map(({ numRunningReqs }) => numRunningReqs);
  assert.throws(() => publisher.publish(receivedOf(2, 1)), RangeError);
  publisher.publish(receivedOf(0, 1));
  {
    using holder = new RawFile(file.path);
    assert.equal(holder.tryLock(LOCK_EX), true);
    assert.throws(() => publisher.publish(receivedOf(0, 2)), LockTimeoutError);
  }
  assert.deepEqual(numbers(), [1]);
  publisher.publish(receivedOf(0, 3));
  publisher.publish(receivedOf(1, 4));
  assert.deepEqual(numbers(), [3, 4]);
  publisher.close();
  publisher.close();
  assert.throws(() => publisher.publish(receivedOf(0, 5)), TypeError);
  assert.deepEqual(numbers(), [3, 4], "the file stays");
});

Deno.test("a slot file that was removed is made again, at the latest at the clock's next tick", async () => {
  using file = new SlotPath();
  using publisher = new SlotFilePublisher(file.path, { dpSize: 1 });
  publisher.publish(receivedOf(0, 1));
  removeSlotFile(file.path);
  using reader = new ShmLoadSnapshotReader(file.path);
  await until("it is there again", () => {
    publisher.publish(receivedOf(0, 2));
    return reader.read(0)?.numRunningReqs === 2;
  });
});

Deno.test("a load that is made of metrics has what there is, and zeros for the rest", () => {
  const load = loadSnapshotFrom(metricsOf(3, 7), 1_700_000_000_500);
  assert.deepEqual([load.timestamp, load.dpRank, load.numRunningReqs], [1_700_000_000.5, 3, 7]);
  assert.deepEqual([load.queues, load.memory, load.genThroughput], [null, null, 0]);
});

Deno.test("options of a slot file that cannot be are refused", () => {
  using file = new SlotPath();
  for (const options of [{ dpSize: 0 }, { dpSize: 1, lockTimeoutMs: -1 }]) {
    assert.throws(() => new SlotFilePublisher(file.path, options), RangeError);
  }
  assert.deepEqual(file.all(), []);
});

/** The samples of a registry, without comments. */
async function samplesOf(registry: client.Registry): Promise<Map<string, number>> {
  const lines = (await registry.metrics()).split("\n").filter((line) => /^[a-z]/.test(line));
  return new Map(lines.map((line) => {
    const [name = "", value] = line.split(" ");
    return [name, Number(value)];
  }));
}

Deno.test("a registry shows each value of each rank that was heard, and how old it is", async () => {
  const registry = new client.Registry();
  const publisher = new PrometheusPublisher(client, { registry });
  assert.deepEqual(await samplesOf(registry), new Map(), "a rank that was not heard has no zero");
  publisher.publish({ ...receivedOf(1, 7), ageMs: 2000 });
  publisher.publish(receivedOf(0, 1));
  publisher.publish(receivedOf(0, 3));
  const samples = await samplesOf(registry);
  const expected = {
    requests_running: 7,
    requests_limit: 128,
    used_tokens: 512,
    capacity_tokens: 8192,
    requests_waiting: 2,
    usage_ratio: 0.0625,
    prefix_cache_hit_ratio: 0.5,
  };
  for (const [name, value] of Object.entries(expected)) {
    assert.equal(samples.get(`loadslots_kv_metrics_${name}{dp_rank="1"}`), value);
  }
  assert.equal(samples.get('loadslots_kv_metrics_requests_running{dp_rank="0"}'), 3);
  const age = samples.get('loadslots_kv_metrics_age_seconds{dp_rank="1"}')!;
  assert(age >= 2 && age < 60, `${age}`);
  assert.equal(samples.size, 16);
});

Deno.test("several engines share a registry by a prefix or by labels", async () => {
  const registry = new client.Registry();
  const options = { registry, prefix: "kv_", labels: { engine: "a" } };
  new PrometheusPublisher(client, options).publish(receivedOf(0, 7));
  new PrometheusPublisher(client, { registry, prefix: "other_" }).publish(receivedOf(0, 8));
  assert.throws(() => new PrometheusPublisher(client, options), /already been registered/);
  const samples = await samplesOf(registry);
  assert.equal(samples.get('kv_requests_running{engine="a",dp_rank="0"}'), 7);
  assert.equal(samples.get('other_requests_running{dp_rank="0"}'), 8);
});

Deno.test("a load event has Dynamo's names and order, with blocks as they came", () => {
  assert.equal(
    loadEventJson(loadEventOf(metricsOf(1, 3), { workerId: 7 })),
    '{"worker_id":7,"data":{"worker_stats":{"data_parallel_rank":1,"request_active_slots":3,' +
      '"request_total_slots":128,"num_requests_waiting":2},"kv_stats":{"kv_active_blocks":512,' +
      '"kv_total_blocks":8192,"gpu_cache_usage_perc":0.0625,"gpu_prefix_cache_hit_rate":0.5},' +
      '"spec_decode_stats":null}}',
  );
});

Deno.test("with a page size a load event counts pages, rounded up", () => {
  const metrics = createKvMetrics({ kvActiveBlocks: 513, kvTotalBlocks: 8191 });
  const { kv_stats } = loadEventOf(metrics, { workerId: 7, pageSize: 64 }).data;
  assert.deepEqual([kv_stats.kv_active_blocks, kv_stats.kv_total_blocks], [9, 128]);
  for (const pageSize of [0, -1, 1.5, NaN]) {
    assert.throws(() => loadEventOf(metrics, { workerId: 7, pageSize }), RangeError);
  }
});

Deno.test("a worker id beyond 2^53 is written to its last digit", () => {
  const event = loadEventOf(createKvMetrics(), { workerId: 7_587_888_100_000_000_001n });
  assert.match(loadEventJson(event), /^\{"worker_id":7587888100000000001,/);
});

Deno.test("events go to the subject of the namespace, by the caller's own connection", async () => {
  const sent: [string, LoadEvent][] = [];
  const send = (subject: string, event: LoadEvent): Promise<void> => {
    sent.push([subject, event]);
    return Promise.resolve();
  };
  const publisher = new LoadEventPublisher(send, { workerId: 7, pageSize: 16, namespace: "prod" });
  await publisher.publish(receivedOf(0, 3));
  const event = loadEventOf(metricsOf(0, 3), { workerId: 7, pageSize: 16 });
  assert.deepEqual(sent, [["namespace.prod.kv_metrics", event]]);
  assert.equal(
    new LoadEventPublisher(send, { workerId: 7 }).subject,
    "namespace.dynamo.kv_metrics",
  );
});
