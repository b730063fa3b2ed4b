/** Collecting over ZeroMQ beside SGLang's own collector: what an update costs, and how fresh it is. */

import { fileURLToPath } from "node:url";
import { removeSlotFile, shmPathFor } from "../../mod.ts";
import type { BenchContext } from "./bench_context.ts";
import { OURS, REFERENCE, TIMES_AS_FAST } from "./compare.ts";
import type { Result, Section, Target } from "./results.ts";
import { SideProcess } from "./side_process.ts";
import { ratiosOf } from "./statistics.ts";

/** How the updates come. */
interface UpdateCase {
  readonly name: string;
  readonly count: number;
  readonly group: number;
  readonly pauseUs: number;
  readonly targets: readonly Target[];
}

const UPDATES: readonly UpdateCase[] = [
  {
    name: "ZeroMQ, processor time of an update, 8 ranks at once",
    count: 4_000,
    group: 8,
    pauseUs: 300,
    targets: [],
  },
  {
    name: "ZeroMQ, processor time of an update, one by one",
    count: 1_200,
    group: 1,
    pauseUs: 300,
    targets: [],
  },
  {
    name: "ZeroMQ, processor time of an update, in a flood",
    count: 40_000,
    group: 40_000,
    pauseUs: 0,
    targets: [],
  },
];

const TURN = "ZeroMQ, drain, check and write an update, 8 ranks a turn";
const TURNS = 2_000;
const ARRIVAL_MS = 200;
const IDLE = "ZeroMQ, processor time of a second without messages";

/** The quantiles of freshness, as zmq_observer.ts and as the table call them. */
const AGES = [["p50", "p50"], ["p99", "p99"], ["p999", "p99.9"]] as const;
type Age = typeof AGES[number][0];

/** The ages of one quantile, one for each round. */
interface FoundAges {
  readonly quantile: Age;
  readonly [OURS]: number[];
  readonly [REFERENCE]: number[];
}

/** How often the ranks publish while the age of what is read is looked at. */
interface FreshnessCase {
  readonly name: string;
  readonly rate: number;
  /** The share of the rounds of a hot case. */
  readonly rounds: number;
  readonly targets: Readonly<Partial<Record<Age, readonly Target[]>>>;
}

const FRESHNESS: readonly FreshnessCase[] = [
  {
    name: "ZeroMQ, from write to readable elsewhere",
    rate: 1_000,
    rounds: 1,
    targets: { p50: [{ of: OURS, atMost: 200_000 }], p99: [{ of: OURS, atMost: 2_000_000 }] },
  },
  {
    name: "ZeroMQ, from write to readable elsewhere, 8,000 a second",
    rate: 8_000,
    rounds: 0.6,
    targets: { p99: [{ of: OURS, atMost: 2_000_000 }] },
  },
];

/** Runs the cases that were asked for. */
export async function zmqSuite(context: BenchContext): Promise<Section | null> {
  const results: Result[] = [];
  for (const update of UPDATES.filter(({ name }) => context.wants(name))) {
    results.push(await compareUpdates(context, update));
  }
  if (context.wants(TURN)) results.push(await compareTurns(context));
  for (const freshness of FRESHNESS.filter(({ name }) => context.wants(name))) {
    results.push(...await compareFreshness(context, freshness));
  }
  if (context.wants(IDLE)) results.push(await measureIdle(context));
  if (results.length === 0) return null;
  return {
    title: "Collecting over ZeroMQ, beside SGLang's own collector",
    series: [OURS, REFERENCE],
    ratios: [TIMES_AS_FAST],
    results,
    notes: [
      "processor time: user and system time of the whole collecting process, libzmq's threads included;",
      "freshness: SGLang's own writers of 8 ranks, 1,000 messages a second, seen by a third process that",
      "looks without pause; SGLang's collector is polled every 20 ms.",
    ],
  };
}

/** A collector, and a sender that is connected to it. */
class Collecting implements AsyncDisposable {
  readonly path: string;
  readonly collector: SideProcess;
  readonly sender: SideProcess;

  private constructor(path: string, collector: SideProcess, sender: SideProcess) {
    this.path = path;
    this.collector = collector;
    this.sender = sender;
  }

  static async start(
    context: BenchContext,
    side: string,
    script = "zmq_ours.ts",
  ): Promise<Collecting> {
    const { peers, signal } = context;
    const path = shmPathFor(`bench-${crypto.randomUUID()}`);
    const python = (script: string, ...args: readonly string[]) => [
      ...["-E", "-s", "-B", fileURLToPath(new URL(script, import.meta.url)), peers.moduleDir],
      ...args,
    ];
    const collector = side === OURS
      ? await SideProcess.startScript(script, [path], signal)
      : await SideProcess.start(side, peers.python, python("zmq_reference.py", path), signal);
    try {
      const { endpoint } = await collector.ask<{ readonly endpoint: string }>("endpoint");
      const sender = await SideProcess.start(
        "the sender",
        peers.python,
        python("zmq_sender.py", endpoint),
        signal,
      );
      return new Collecting(path, collector, sender);
    } catch (error) {
      await collector[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sender[Symbol.asyncDispose]();
    await this.collector[Symbol.asyncDispose]();
    removeSlotFile(this.path);
  }
}

async function compareUpdates(context: BenchContext, update: UpdateCase): Promise<Result> {
  const { name, count, group, pauseUs, targets } = update;
  const { pace: { rounds }, progress } = context;
  progress.begin(name);
  await using ours = await Collecting.start(context, OURS);
  await using reference = await Collecting.start(context, REFERENCE);
  const found: Record<string, number[]> = { [OURS]: [], [REFERENCE]: [] };
  // The first round fills caches.
  for (let round = 0; round <= rounds; round++) {
    for (const [side, { collector, sender }] of [[OURS, ours], [REFERENCE, reference]] as const) {
      const [{ cpuNs }] = await Promise.all([
        collector.ask<{ readonly cpuNs: number }>(String(count)),
        sender.ask(`${count} ${group} ${pauseUs}`),
      ]);
      if (round > 0) found[side]!.push(cpuNs);
    }
    progress.step(name, round, rounds);
  }
  return resultOf(name, found, targets);
}

/** What the collector itself does, once the messages are there; the system's part is left out. */
async function compareTurns(context: BenchContext): Promise<Result> {
  const { pace: { rounds }, progress } = context;
  progress.begin(TURN);
  await using ours = await Collecting.start(context, OURS, "zmq_turn.ts");
  await using reference = await Collecting.start(context, REFERENCE);
  const found: Record<string, number[]> = { [OURS]: [], [REFERENCE]: [] };
  // The first round fills caches.
  for (let round = 0; round <= rounds; round++) {
    for (const [side, { collector, sender }] of [[OURS, ours], [REFERENCE, reference]] as const) {
      await sender.ask(`${TURNS * 8} ${TURNS * 8} 0`);
      await new Promise((resolve) => setTimeout(resolve, ARRIVAL_MS));
      const line = side === OURS ? String(TURNS) : `turns ${TURNS}`;
      const one = await collector.ask<{ readonly ns: number; readonly count: number }>(line);
      if (one.count !== TURNS * 8) throw new Error(`${side}: ${one.count} messages were there`);
      if (round > 0) found[side]!.push(one.ns / one.count);
    }
    progress.step(TURN, round, rounds);
  }
  return resultOf(TURN, found, [{ of: TIMES_AS_FAST, atLeast: 5 }]);
}

async function compareFreshness(
  context: BenchContext,
  { name, rate, rounds: share, targets }: FreshnessCase,
): Promise<Result[]> {
  const { pace: { hotRounds, hotMs }, progress } = context;
  progress.begin(name);
  const rounds = Math.ceil(hotRounds * share);
  const found = AGES.map(([quantile]) => ({ quantile, [OURS]: [], [REFERENCE]: [] } as FoundAges));
  const seconds = hotMs / 1000;
  for (let round = 1; round <= rounds; round++) {
    for (const side of [OURS, REFERENCE] as const) {
      await using collecting = await Collecting.start(context, side);
      await using observer = await SideProcess.startScript(
        "zmq_observer.ts",
        [collecting.path],
        context.signal,
      );
      const [ages] = await Promise.all([
        observer.ask<Readonly<Record<Age | "count", number>>>(String(seconds + 0.5)),
        collecting.collector.ask(`serve ${seconds + 0.5}`),
        collecting.sender.ask(`paced ${seconds} ${rate}`),
      ]);
      if (ages.count === 0) throw new Error(`${side}: nothing was seen`);
      for (const one of found) one[side].push(ages[one.quantile]);
    }
    progress.step(name, round, rounds);
  }
  return found.map(({ quantile, [OURS]: ours, [REFERENCE]: reference }, n) =>
    resultOf(
      `${name}, ${AGES[n]![1]}`,
      { [OURS]: ours, [REFERENCE]: reference },
      targets[quantile] ?? [],
    )
  );
}

async function measureIdle(context: BenchContext): Promise<Result> {
  const { pace: { hotMs }, progress } = context;
  progress.begin(IDLE);
  await using ours = await Collecting.start(context, OURS);
  const { cpuNs } = await ours.collector.ask<{ readonly cpuNs: number }>(`idle ${hotMs / 1000}`);
  // 0.2 % of a processor.
  return resultOf(IDLE, { [OURS]: [cpuNs] }, [{ of: OURS, atMost: 2_000_000 }]);
}

function resultOf(
  name: string,
  series: Readonly<Record<string, readonly number[]>>,
  targets: readonly Target[],
): Result {
  const reference = series[REFERENCE];
  const ratios = reference === undefined
    ? {}
    : { [TIMES_AS_FAST]: ratiosOf(reference, series[OURS]!) };
  return { name, unit: "ns", series, ratios, targets };
}
