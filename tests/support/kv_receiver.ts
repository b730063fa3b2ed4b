/** A receiver of KvMetrics in a test, and messages for it. */

import { createKvMetrics, type KvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import { encodeKvMetricsPickle } from "../../src/kv_metrics/pickle_writer.ts";
import type { ReceivedKvMetrics } from "../../src/kv_metrics/received_kv_metrics.ts";
import { KvMetricsReceiver, type KvMetricsReceiverStats } from "../../src/kv_metrics/receiver.ts";
import type { KvMetricsReceiverOptions } from "../../src/kv_metrics/receiver_options.ts";
import type { KvMetricsRefusalKind } from "../../src/kv_metrics/refusals.ts";
import { type Holdings, holdings, LOOPBACK } from "./collector.ts";
import { until } from "./wait.ts";

/** What a test's receiver can be told; the rest are its own options. */
export interface TestReceiverOptions extends KvMetricsReceiverOptions {
  readonly endpoint?: string;
}

/** An open receiver of two ranks, unless it is told otherwise. */
export class TestReceiver implements AsyncDisposable {
  readonly receiver: KvMetricsReceiver;

  private constructor(receiver: KvMetricsReceiver) {
    this.receiver = receiver;
  }

  static async open(options: TestReceiverOptions = {}): Promise<TestReceiver> {
    const { endpoint = LOOPBACK, ...rest } = options;
    const ranks = rest.maxRanks === undefined ? { dpSize: 2 } : {};
    return new TestReceiver(await KvMetricsReceiver.open(endpoint, { ...ranks, ...rest }));
  }

  get endpoint(): string {
    return this.receiver.endpoint;
  }

  /** What tells a rank's newest message from others, or `null`. */
  numberOf(dpRank: number): number | null {
    const latest = this.receiver.latest(dpRank);
    return latest === null ? null : latest.metrics.requestActiveSlots;
  }

  /** Waits until a rank's newest message has a number. */
  async shows(dpRank: number, number: number): Promise<void> {
    await until(`rank ${dpRank} says ${number}`, () => this.numberOf(dpRank) === number);
  }

  /** Waits until a count has come to a number. */
  async counts(
    name: Exclude<keyof KvMetricsReceiverStats, "refused">,
    number: number,
  ): Promise<void> {
    await until(`${name} is ${number}`, () => this.receiver.stats()[name] >= number);
  }

  /** What was refused, without the kinds that were not met. */
  refused(): Partial<Record<KvMetricsRefusalKind, number>> {
    const entries = Object.entries(this.receiver.stats().refused);
    return Object.fromEntries(entries.filter(([, count]) => count > 0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.receiver.close();
  }
}

/** Metrics; the number tells them from others. */
export function metricsOf(dpRank: number, number: number): KvMetrics {
  return createKvMetrics({
    requestActiveSlots: number,
    requestTotalSlots: 128,
    kvActiveBlocks: 512,
    kvTotalBlocks: 8192,
    numRequestsWaiting: 2,
    gpuCacheUsagePerc: 0.0625,
    gpuPrefixCacheHitRate: 0.5,
    dataParallelRank: dpRank,
  });
}

/** The same as a message. */
export function messageOf(dpRank: number, number: number): Uint8Array<ArrayBuffer> {
  return encodeKvMetricsPickle(metricsOf(dpRank, number));
}

/** The same as a receiver gives it out. */
export function receivedOf(dpRank: number, number: number): ReceivedKvMetrics {
  return {
    metrics: metricsOf(dpRank, number),
    arrivedAtMs: Date.now(),
    ageMs: 0,
    sequence: number,
  };
}

/** Takes messages until there are so many; tells their numbers. */
export async function take(
  messages: AsyncIterable<ReceivedKvMetrics>,
  count: number,
): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { metrics } of messages) {
    if (numbers.push(metrics.requestActiveSlots) === count) break;
  }
  return numbers;
}

/** Opens and closes a receiver, so that what Deno keeps for later ones is there; then counts. */
export async function receiverHoldings(): Promise<Holdings> {
  {
    await using _receiver = await TestReceiver.open();
  }
  return await holdings();
}
