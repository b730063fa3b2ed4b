/** KvMetrics as gauges of a Prometheus registry. */

import { KV_FIELDS } from "../fields.ts";
import type { KvMetrics } from "../kv_metrics.ts";
import type { ReceivedKvMetrics } from "../received_kv_metrics.ts";
import type { KvMetricsPublisher } from "./publisher.ts";

/** A gauge, as far as it is used; prom-client's is one. */
export interface PrometheusGauge {
  /** Sets the value of one set of labels. */
  set(labels: Record<string, string | number>, value: number): void;
}

/** How a gauge is made. */
export interface PrometheusGaugeConfiguration<Registry> {
  /** What it is called. */
  readonly name: string;
  /** What it shows, in a sentence. */
  readonly help: string;
  /** The names of its labels. */
  readonly labelNames: string[];
  /** Where it is registered. */
  readonly registers: Registry[];
  /** Called before each scrape. */
  readonly collect?: () => void;
}

/** What is used of `npm:prom-client`; pass the module itself. */
export interface PrometheusModule<Registry> {
  /** The class of gauges. */
  readonly Gauge: new (configuration: PrometheusGaugeConfiguration<Registry>) => PrometheusGauge;
}

/** Options of {@linkcode PrometheusPublisher}. */
export interface PrometheusPublisherOptions<Registry> {
  /** Where the gauges are registered. */
  readonly registry: Registry;
  /** What their names begin with. @default {"loadslots_kv_metrics_"} */
  readonly prefix?: string;
  /** Labels that each gauge gets besides `dp_rank`, such as the engine's name. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** What each value is called; Prometheus wants the unit in the name. */
const NAMES: Readonly<Record<Exclude<keyof KvMetrics, "dataParallelRank">, string>> = {
  requestActiveSlots: "requests_running",
  requestTotalSlots: "requests_limit",
  kvActiveBlocks: "used_tokens",
  kvTotalBlocks: "capacity_tokens",
  numRequestsWaiting: "requests_waiting",
  gpuCacheUsagePerc: "usage_ratio",
  gpuPrefixCacheHitRate: "prefix_cache_hit_ratio",
};

const RANK = "dp_rank";

/**
 * Shows the newest metrics of each rank as gauges of a prom-client registry, and how old they are. A
 * rank that was never heard has no value, which is not 0.
 *
 * prom-client is the caller's: nothing of it is imported here.
 *
 * @example
 * ```ts
 * import client from "npm:prom-client@15.1.3";
 * import { PrometheusPublisher } from "./mod.ts";
 *
 * const registry = new client.Registry();
 * const publisher = new PrometheusPublisher(client, { registry });
 * console.log(publisher.name, await registry.metrics());
 * ```
 */
export class PrometheusPublisher<Registry> implements KvMetricsPublisher {
  readonly name = "Prometheus";

  readonly #labels: Readonly<Record<string, string>>;
  readonly #gauges: readonly (readonly [keyof typeof NAMES, PrometheusGauge])[];
  readonly #age: PrometheusGauge;
  /** When each rank's newest message arrived, in milliseconds of `performance.now`. */
  readonly #arrivedAtMs: Map<number, number> = new Map();

  /**
   * Registers the gauges.
   *
   * @param client The module `npm:prom-client`.
   * @param options The registry, and what the gauges are called.
   * @throws What prom-client throws, if the registry has gauges of these names already.
   */
  constructor(client: PrometheusModule<Registry>, options: PrometheusPublisherOptions<Registry>) {
    const { registry, prefix = "loadslots_kv_metrics_", labels = {} } = options;
    this.#labels = labels;
    const common = { labelNames: [...Object.keys(labels), RANK], registers: [registry] };
    this.#gauges = KV_FIELDS.flatMap(({ name, help }) => {
      if (name === "dataParallelRank") return [];
      const gauge = new client.Gauge({ ...common, name: `${prefix}${NAMES[name]}`, help });
      return [[name, gauge] as const];
    });
    this.#age = new client.Gauge({
      ...common,
      name: `${prefix}age_seconds`,
      help: "Time since the rank reported last",
      collect: () => this.#showAges(),
    });
  }

  /** Sets the gauges of one rank. */
  publish({ metrics, ageMs }: ReceivedKvMetrics): void {
    const dpRank = metrics.dataParallelRank;
    this.#arrivedAtMs.set(dpRank, performance.now() - ageMs);
    const labels = this.#labelsOf(dpRank);
    for (const [name, gauge] of this.#gauges) gauge.set(labels, metrics[name]);
  }

  #showAges(): void {
    const nowMs = performance.now();
    for (const [dpRank, arrivedAtMs] of this.#arrivedAtMs) {
      this.#age.set(this.#labelsOf(dpRank), (nowMs - arrivedAtMs) / 1000);
    }
  }

  #labelsOf(dpRank: number): Record<string, string | number> {
    return { ...this.#labels, [RANK]: dpRank };
  }
}
