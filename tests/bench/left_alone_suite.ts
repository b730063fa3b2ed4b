/** How much hot readers delay the engine: the time that SGLang's own writer takes beside them. */

import type { PeerWriter } from "../peers/peer_handles.ts";
import { TempShm } from "../peers/temp_shm.ts";
import type { BenchContext } from "./bench_context.ts";
import { type Heat, heatOfOurs, heatOfReference, startPeer } from "./heats.ts";
import { loadsOf, writeSlotFile } from "./payloads.ts";
import type { Result, Section, Target } from "./results.ts";
import { ratiosOf } from "./statistics.ts";

const CASE = "the engine's write";
const RANKS = 8;
const MOST_HOT = 4;
const WRITE_EVERY_US = 300;

/** Hot processes start before the writer and stop after it, by so much. */
const MARGIN_MS = 200;

const SPIN = "that spin";
const OURS = "readers of ours";
const REFERENCE = "readers of SGLang's";
const OURS_TO_SPIN = "ours to spin";
const REFERENCE_TO_SPIN = "SGLang's to spin";

const QUANTILES = ["p50", "p90", "p99", "p999"] as const;
type Quantile = typeof QUANTILES[number];
type Latency = Readonly<Record<Quantile, number>>;

/** So many hot processes: what is told of it, how thoroughly, and what it has to reach. */
interface Level {
  readonly hot: number;
  readonly quantiles: readonly Quantile[];
  /** The share of the rounds and of their length; only the last has a target. */
  readonly share: number;
  readonly targets: Readonly<Partial<Record<Quantile, readonly Target[]>>>;
}

const LEVELS: readonly Level[] = [
  { hot: 0, quantiles: ["p50", "p99"], share: 0.6, targets: {} },
  { hot: 1, quantiles: ["p50", "p99"], share: 0.6, targets: {} },
  { hot: 2, quantiles: ["p50", "p99"], share: 0.6, targets: {} },
  {
    hot: MOST_HOT,
    quantiles: QUANTILES,
    share: 1,
    targets: { p99: [{ of: OURS_TO_SPIN, atMost: 1.5 }] },
  },
];

/** Runs the cases that were asked for. */
export async function leftAloneSuite(context: BenchContext): Promise<Section | null> {
  const levels = LEVELS.filter(({ hot, quantiles }) =>
    quantiles.some((quantile) => context.wants(nameOf(hot, quantile)))
  );
  if (levels.length === 0) return null;
  const { signal } = context;
  context.progress.begin(CASE);
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(new TempShm());
  await writeSlotFile(path, RANKS, "trace");
  const writer = await (await startPeer(stack, signal))
    .openWriter(path, { dpSize: RANKS, dpRank: 0 });
  const most = Math.max(...levels.map(({ hot }) => hot));
  const heats = new Map<string, Heat>([
    [SPIN, await heatOfOurs("spin", path, most, stack, signal)],
    [OURS, await heatOfOurs("read", path, most, stack, signal)],
    [REFERENCE, await heatOfReference(path, RANKS, most, stack, signal)],
  ]);
  const results: Result[] = [];
  for (const level of levels) {
    const latencies = await measureLevel(context, level, writer, heats);
    results.push(...level.quantiles.map((quantile) => toResult(level, quantile, latencies)));
  }
  return {
    title:
      `The engine is left alone: SGLang's own writer beside hot processes, a write every ${WRITE_EVERY_US} us`,
    series: [SPIN, OURS, REFERENCE],
    ratios: [OURS_TO_SPIN, REFERENCE_TO_SPIN],
    results,
    notes: [
      `${navigator.hardwareConcurrency} cores: where there are fewer cores than processes, the writer ` +
      "also waits for a core;",
      "with 0 hot processes it is alone, whose readers they would be makes no difference there.",
    ],
  };
}

function nameOf(hot: number, quantile: Quantile): string {
  return `${CASE}, ${hot} hot, ${quantile === "p999" ? "p99.9" : quantile}`;
}

/** Times the writer beside each kind in turn. */
async function measureLevel(
  { pace: { hotRounds, hotMs }, progress, signal }: BenchContext,
  { hot, share }: Level,
  writer: PeerWriter,
  heats: ReadonlyMap<string, Heat>,
): Promise<Map<string, Latency[]>> {
  const name = `${CASE}, ${hot} hot`;
  const rounds = Math.ceil(hotRounds * share);
  const ms = hotMs * share;
  progress.begin(name);
  const latencies = new Map<string, Latency[]>(Array.from(heats.keys(), (kind) => [kind, []]));
  for (let round = 1; round <= rounds; round++) {
    if (hot === 0) {
      const alone = await writeFor(writer, ms);
      for (const all of latencies.values()) all.push(alone);
    } else {
      for (const [kind, heat] of heats) {
        const heated = heat(ms + 2 * MARGIN_MS, hot);
        // Told at the end; without this a failure in between would end the process first.
        heated.catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, MARGIN_MS));
        latencies.get(kind)!.push(await writeFor(writer, ms));
        await heated;
      }
    }
    signal.throwIfAborted();
    progress.step(name, round, rounds);
  }
  return latencies;
}

function toResult(
  { hot, targets }: Level,
  quantile: Quantile,
  latencies: ReadonlyMap<string, readonly Latency[]>,
): Result {
  const series = Object.fromEntries(
    Array.from(latencies, ([name, rounds]) => [name, rounds.map((one) => one[quantile] * 1000)]),
  );
  const spin = series[SPIN]!;
  return {
    name: nameOf(hot, quantile),
    unit: "ns",
    series,
    ratios: hot === 0 ? {} : {
      [OURS_TO_SPIN]: ratiosOf(series[OURS]!, spin),
      [REFERENCE_TO_SPIN]: ratiosOf(series[REFERENCE]!, spin),
    },
    targets: targets[quantile] ?? [],
    ...(quantile === "p50" || quantile === "p99"
      ? { growth: { kind: `${CASE}, ${quantile}`, axis: "readers", value: hot } }
      : {}),
  };
}

async function writeFor(writer: PeerWriter, ms: number): Promise<Latency> {
  const loop = await writer.writeLoop(loadsOf(0, "trace")[0]!, {
    seconds: ms / 1000,
    intervalUs: WRITE_EVERY_US,
  });
  const { latencyUs } = await loop.result();
  return latencyUs;
}
