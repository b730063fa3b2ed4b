/** Receiving KvMetrics beside pyzmq: what one message costs on one core, and how many there can be. */

import { fileURLToPath } from "node:url";
import type { BenchContext } from "./bench_context.ts";
import { OURS, REFERENCE, TIMES_AS_FAST } from "./compare.ts";
import { hasTaskset, onCore } from "./on_core.ts";
import type { Result, Section, Target } from "./results.ts";
import { SideProcess } from "./side_process.ts";
import { ratiosOf } from "./statistics.ts";

/** One case. */
interface ReceiveCase {
  readonly name: string;
  readonly encoding: "pickle" | "msgpack";
  /** What our main isolate does: shows the newest, or takes every message. */
  readonly taker: "latest" | "every";
  readonly targets: readonly Target[];
}

/** 300,000 a second on one core. */
const ENOUGH: readonly Target[] = [{ of: OURS, atMost: 1e9 / 300_000 }];

const CASES: readonly ReceiveCase[] = [
  {
    name: "KvMetrics, receive pickles, the newest of each rank",
    encoding: "pickle",
    taker: "latest",
    targets: ENOUGH,
  },
  {
    name: "KvMetrics, receive pickles, and iterate",
    encoding: "pickle",
    taker: "every",
    targets: ENOUGH,
  },
  {
    name: "KvMetrics, receive MessagePack, the newest of each rank",
    encoding: "msgpack",
    taker: "latest",
    targets: ENOUGH,
  },
];

const MESSAGES = 160_000;
const QUICK_MESSAGES = 60_000;

/** What a side answers to a number of messages. */
interface Round {
  readonly ns: number;
  readonly cpuNs: number;
  readonly taken: number;
  readonly refused: number;
}

/** Runs the cases that were asked for. */
export async function kvReceiveSuite(context: BenchContext): Promise<Section | null> {
  const results: Result[] = [];
  for (const receiveCase of CASES.filter(({ name }) => context.wants(name))) {
    results.push(...await compareReceiving(context, receiveCase));
  }
  if (results.length === 0) return null;
  const pinned = await hasTaskset();
  return {
    title: "Receiving KvMetrics, beside pyzmq's recv_pyobj",
    series: [OURS, REFERENCE],
    ratios: [TIMES_AS_FAST],
    results,
    notes: [
      "processor: user and system time of the whole receiving process, libzmq's threads included;",
      pinned
        ? "each receiver has core 0 to itself and shares it with nobody but its own threads."
        : "without taskset the receivers are not held to one core.",
    ],
  };
}

async function compareReceiving(
  context: BenchContext,
  { name, encoding, taker, targets }: ReceiveCase,
): Promise<Result[]> {
  const { pace: { rounds }, peers, progress, signal } = context;
  progress.begin(name);
  await using stack = new AsyncDisposableStack();
  const script = fileURLToPath(new URL("kv_receive_reference.py", import.meta.url));
  // Nothing of the user's own Python settings, and no bytecode in this folder.
  const python = ["-E", "-s", "-B", script, peers.moduleDir, encoding];
  const sides = [
    await Side.start(
      OURS,
      Deno.execPath(),
      denoArgs("kv_receive_ours.ts", taker),
      encoding,
      signal,
    ),
    await Side.start(REFERENCE, peers.python, python, encoding, signal),
  ];
  for (const side of sides) stack.use(side);
  const count = rounds > 3 ? MESSAGES : QUICK_MESSAGES;
  const found: Record<string, Round[]> = { [OURS]: [], [REFERENCE]: [] };
  // The first round fills caches.
  for (let round = 0; round <= rounds; round++) {
    for (const side of sides) {
      const one = await side.round(count);
      if (one.refused > 0) throw new Error(`${side.name} refused ${one.refused} messages`);
      if (round > 0) found[side.name]!.push(one);
    }
    progress.step(name, round, rounds);
  }
  if (taker === "every" && found[OURS]!.at(-1)!.taken === 0) throw new Error("Nothing was taken");
  return (["cpuNs", "ns"] as const).map((key): Result => {
    const series = Object.fromEntries(
      Object.entries(found).map(([side, all]) => [side, all.map((one) => one[key])]),
    );
    return {
      name: `${name}, ${key === "ns" ? "time" : "processor"}`,
      unit: "ns",
      series,
      ratios: { [TIMES_AS_FAST]: ratiosOf(series[REFERENCE]!, series[OURS]!) },
      targets,
    };
  });
}

/** A receiver on one core, and its own sender on another. */
class Side implements AsyncDisposable {
  readonly name: string;
  readonly #receiver: SideProcess;
  readonly #sender: SideProcess;

  private constructor(name: string, receiver: SideProcess, sender: SideProcess) {
    this.name = name;
    this.#receiver = receiver;
    this.#sender = sender;
  }

  static async start(
    name: string,
    program: string,
    args: readonly string[],
    encoding: string,
    signal: AbortSignal,
  ): Promise<Side> {
    const receiver = await SideProcess.start(name, ...await onCore(0, program, args), signal);
    try {
      const { endpoint } = await receiver.ask<{ readonly endpoint: string }>("endpoint");
      const flood = denoArgs("kv_receive_flood.ts", endpoint, encoding);
      const pinned = await onCore(1, Deno.execPath(), flood);
      return new Side(name, receiver, await SideProcess.start("the sender", ...pinned, signal));
    } catch (error) {
      await receiver[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Sends so many messages, and lets the receiver tell what they cost. */
  async round(count: number): Promise<Round> {
    const [round] = await Promise.all([
      this.#receiver.ask<Round>(String(count)),
      this.#sender.ask(String(count)),
    ]);
    return round;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sender[Symbol.asyncDispose]();
    await this.#receiver[Symbol.asyncDispose]();
  }
}

function denoArgs(script: string, ...args: readonly string[]): string[] {
  return ["run", "-A", new URL(script, import.meta.url).href, ...args];
}
