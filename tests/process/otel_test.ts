/** Load as OpenTelemetry metrics: a service with Deno's own exporter, and an OTLP receiver on loopback. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { NUMBER_FIELDS } from "../../src/snapshot/number_fields.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { Child } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";
import { HANG_MS, sleep } from "../support/wait.ts";

const SERVICE = new URL("./fixtures/otel_service.ts", import.meta.url).href;

/** One sample as OTLP's JSON has it, as far as it matters here. */
interface DataPoint {
  readonly asDouble?: number;
  readonly asInt?: number | string;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: {
      readonly stringValue?: string;
      readonly intValue?: string | number;
      readonly doubleValue?: number;
    };
  }[];
}

interface Metric {
  readonly name: string;
  readonly unit?: string;
  readonly description?: string;
  readonly gauge?: { readonly dataPoints: readonly DataPoint[] };
}

interface OtlpBody {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly {
      readonly scope: { readonly name: string };
      readonly metrics: readonly Metric[];
    }[];
  }[];
}

/** Takes what an exporter sends; only what came last counts. */
class OtlpReceiver implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #batches: Metric[][] = [];

  constructor() {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      async (request) => {
        const body: OtlpBody = await request.json();
        if (new URL(request.url).pathname === "/v1/metrics") {
          const scopes = body.resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics);
          const ours = scopes.filter(({ scope }) => scope.name === "loadslots");
          this.#batches.push(ours.flatMap(({ metrics }) => metrics));
        }
        return Response.json({});
      },
    );
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Waits for a batch, of those that come from now on, that is as wanted. */
  async next(isWanted: (samples: Map<string, number>) => boolean): Promise<Metric[]> {
    this.#batches = [];
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      const found = this.#batches.find((batch) => isWanted(samplesOf(batch)));
      if (found !== undefined) return found;
      if (performance.now() > deadline) throw new Error("Waited in vain for metrics");
      await sleep(20);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** Samples by name and attributes, without the engine's own one. */
function samplesOf(metrics: readonly Metric[]): Map<string, number> {
  return new Map(metrics.flatMap(({ name, gauge }) =>
    (gauge?.dataPoints ?? []).map((point) => {
      const attributes = Object.fromEntries(
        point.attributes.map(({ key, value }) => [key, Object.values(value)[0]]),
      );
      assert.equal(attributes.engine, "tested");
      const state = attributes.state === undefined ? "" : ` ${attributes.state}`;
      return [
        `${name} ${attributes.dp_rank}${state}`,
        Number(point.asDouble ?? point.asInt),
      ] as const;
    })
  ));
}

Deno.test("Deno's exporter sends every number of each rank, with units, states and ages", async () => {
  using file = new SlotPath();
  await using receiver = new OtlpReceiver();
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
  const load = createLoadSnapshot({
    dpRank: 1,
    timestamp: Date.now() / 1000,
    numRunningReqs: 7,
    tokenUsage: 0.25,
    queues: { waiting: 3 },
    memory: { weightGb: 61.5, kvCacheGb: 18, graphGb: 2, tokenCapacity: 1000 },
  });
  writer.write(load);
  await using service = Child.deno(["--allow-ffi", "--allow-read", SERVICE, file.path], {
    env: {
      OTEL_DENO: "true",
      OTEL_DENO_CONSOLE: "ignore",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_METRIC_EXPORT_INTERVAL: "100",
    },
  });
  assert.equal(await service.line(), "ready");

  const first = await receiver.next((samples) => samples.has("sglang.num_running_reqs 1"));
  const samples = samplesOf(first);
  for (const { metric, section, valueIn } of NUMBER_FIELDS) {
    const name = `sglang.${section === null ? metric : metric.replace("_", ".")}`;
    assert.equal(samples.get(`${name} 1`), valueIn(load) ?? undefined, name);
    // A rank that never reported is not idle: it has no sample.
    assert.equal(samples.has(`${name} 0`), false, name);
  }
  assert.equal(samples.get("loadslots.rank.state 0 unreported"), 1);
  assert.equal(samples.get("loadslots.rank.state 1 live"), 1);
  assert.equal(samples.get("loadslots.rank.state 1 stale"), 0);
  assert(samples.get("loadslots.rank.age 1")! >= 0);
  const units = Object.fromEntries(first.map(({ name, unit }) => [name, unit]));
  assert.deepEqual(
    [
      units["sglang.num_running_reqs"],
      units["sglang.memory.weight_gb"],
      units["loadslots.rank.age"],
    ],
    ["{request}", "GBy", "s"],
  );

  writer.write({ ...load, numRunningReqs: 8 });
  await receiver.next((now) => now.get("sglang.num_running_reqs 1") === 8);
  // A reader that was closed meanwhile yields nothing, and the exporter goes on.
  assert.equal(await service.ask("close"), "close");
  await receiver.next((now) => !now.has("loadslots.rank.state 1 live"));
  assert.equal(await service.ask("stop"), "stop");
  assert.equal((await service.end()).code, 0);
});
