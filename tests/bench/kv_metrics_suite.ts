/** KvMetrics beside Python: pickle.loads and pickle.dumps, and msgspec where pickle is off. */

import { fileURLToPath } from "node:url";
import fc from "npm:fast-check@4.11.0";
import { createKvMetrics, type KvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import { encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { encodeKvMetricsPickle, KV_METRICS_MODULES } from "../../src/kv_metrics/pickle_writer.ts";
import { KV_VECTORS } from "../support/kv_vectors.ts";
import { alternate } from "./alternate.ts";
import { type BenchContext, pathIn } from "./bench_context.ts";
import { OURS, REFERENCE, TIMES_AS_FAST } from "./compare.ts";
import type { Result, Section, Target } from "./results.ts";
import { SideProcess } from "./side_process.ts";
import { ratiosOf } from "./statistics.ts";

/** A case: what is done with which messages. */
interface KvCase {
  readonly name: string;
  /** As kv_metrics_ours.ts and kv_metrics_reference.py call it. */
  readonly id: "decode-pickle" | "encode-pickle" | "decode-msgpack" | "encode-msgpack";
  /** How the reference's class is made. */
  readonly form: "plain" | "struct";
  readonly messages: () => readonly Uint8Array[];
  readonly targets: readonly Target[];
}

const TWICE: readonly Target[] = [{ of: TIMES_AS_FAST, atLeast: 2 }];

/** Different messages of a busy engine, so that no side can learn one by heart. */
const COUNT = 256;

const CASES: readonly KvCase[] = [
  {
    name: "KvMetrics, decode a pickle of 2025, protocol 4",
    id: "decode-pickle",
    form: "plain",
    messages: plain,
    targets: TWICE,
  },
  {
    name: "KvMetrics, decode a pickled struct, protocol 5",
    id: "decode-pickle",
    form: "struct",
    messages: struct,
    targets: TWICE,
  },
  {
    name: "KvMetrics, decode a pickle of protocol 2",
    id: "decode-pickle",
    form: "plain",
    messages: () => vectors("a plain class, protocol 2"),
    targets: TWICE,
  },
  {
    name: "KvMetrics, decode a pickle of numpy scalars",
    id: "decode-pickle",
    form: "plain",
    messages: () => vectors("scalars of numpy 2, protocol 5"),
    targets: [],
  },
  {
    name: "KvMetrics, decode MessagePack",
    id: "decode-msgpack",
    form: "struct",
    messages: msgpack,
    targets: [],
  },
  {
    name: "KvMetrics, encode a pickle, protocol 5",
    id: "encode-pickle",
    form: "struct",
    messages: struct,
    targets: [],
  },
  {
    name: "KvMetrics, encode MessagePack",
    id: "encode-msgpack",
    form: "struct",
    messages: msgpack,
    targets: [],
  },
];

/** Runs the cases that were asked for. */
export async function kvMetricsSuite(context: BenchContext): Promise<Section | null> {
  const results: Result[] = [];
  for (const kvCase of CASES.filter(({ name }) => context.wants(name))) {
    results.push(await compareKv(context, kvCase));
  }
  if (results.length === 0) return null;
  return {
    title: "KvMetrics, beside Python's pickle and msgspec",
    series: [OURS, REFERENCE],
    ratios: [TIMES_AS_FAST],
    results,
    notes: ["Python executes a pickle; here it is only read, and everything else is refused."],
  };
}

async function compareKv(context: BenchContext, kvCase: KvCase): Promise<Result> {
  const { name, id, form, targets } = kvCase;
  const { pace: { rounds, roundMs, warmMs }, peers, progress, signal } = context;
  progress.begin(name);
  await using stack = new AsyncDisposableStack();
  const path = pathIn(context, "kv-metrics");
  const lines = kvCase.messages().map((message) => message.toHex());
  await Deno.writeTextFile(path, `${lines.join("\n")}\n`);
  const args = [id, path, String(roundMs), String(warmMs)];
  const ours = stack.use(await SideProcess.startScript("kv_metrics_ours.ts", args, signal));
  const script = fileURLToPath(new URL("kv_metrics_reference.py", import.meta.url));
  // Nothing of the user's own Python settings, and no bytecode in this folder.
  const python = ["-E", "-s", "-B", script, peers.moduleDir, ...args, form];
  const reference = stack.use(
    await SideProcess.start("kv_metrics_reference.py", peers.python, python, signal),
  );
  const series = await alternate(
    new Map([[OURS, ours], [REFERENCE, reference]]),
    rounds,
    (round) => progress.step(name, round, rounds),
  );
  return {
    name,
    unit: "ns",
    series,
    ratios: { [TIMES_AS_FAST]: ratiosOf(series[REFERENCE]!, series[OURS]!) },
    targets,
  };
}

function load(): KvMetrics[] {
  const share = fc.integer({ min: 0, max: 100 }).map((percent) => percent / 100);
  const values = fc.record({
    requestActiveSlots: fc.nat(256),
    requestTotalSlots: fc.constant(256),
    kvActiveBlocks: fc.nat(500_000),
    kvTotalBlocks: fc.constant(500_000),
    numRequestsWaiting: fc.nat(40),
    gpuCacheUsagePerc: share,
    gpuPrefixCacheHitRate: share,
    dataParallelRank: fc.nat(7),
  });
  return fc.sample(values, { seed: 1, numRuns: COUNT }).map(createKvMetrics);
}

function plain(): Uint8Array[] {
  const [module] = KV_METRICS_MODULES;
  return load().map((metrics) => encodeKvMetricsPickle(metrics, { protocol: 4, module }));
}

function struct(): Uint8Array[] {
  return load().map((metrics) => encodeKvMetricsPickle(metrics));
}

function msgpack(): Uint8Array[] {
  return load().map(encodeKvMetricsMsgpack);
}

function vectors(name: string): Uint8Array[] {
  return KV_VECTORS.filter((vector) => vector.name === name).map(({ pickle }) => pickle);
}
