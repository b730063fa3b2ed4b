/** How much hot readers delay the engine: the time that SGLang's own writer takes beside them. */

import { PythonPeer } from "../peers/peer.ts";
import type { PeerReader, PeerWriter } from "../peers/peer_handles.ts";
import { TempShm } from "../peers/temp_shm.ts";
import type { BenchContext } from "./bench_context.ts";
import { loadsOf, writeSlotFile } from "./payloads.ts";
import type { Result, Section, Target } from "./results.ts";
import { SideProcess } from "./side_process.ts";
import { ratiosOf } from "./statistics.ts";

const CASE = "the engine's write beside hot readers";
const RANKS = 8;
const HOT = 4;
const WRITE_EVERY_US = 300;

/** Hot processes start before the writer and stop after it, by so much. */
const MARGIN_MS = 200;

const SPIN = `${HOT} that spin`;
const OURS = `${HOT} readers of ours`;
const REFERENCE = `${HOT} of SGLang's`;
const OURS_TO_SPIN = "ours to spin";
const REFERENCE_TO_SPIN = "SGLang's to spin";

const QUANTILES = ["p50", "p90", "p99", "p999"] as const;
const TARGETS: Readonly<Record<string, readonly Target[]>> = {
  p99: [{ of: OURS_TO_SPIN, atMost: 1.5 }],
};

type Latency = Readonly<Record<typeof QUANTILES[number], number>>;

/** Keeps processors busy for a while; resolves when that is over. */
type Heat = (ms: number) => Promise<void>;

/** Runs the case, if it was asked for. */
export async function leftAloneSuite(context: BenchContext): Promise<Section | null> {
  if (!context.wants(CASE)) return null;
  const { pace: { hotRounds, hotMs }, progress, signal } = context;
  progress.begin(CASE);
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(new TempShm());
  await writeSlotFile(path, RANKS, "trace");
  const writer = await (await startPeer(stack, signal))
    .openWriter(path, { dpSize: RANKS, dpRank: 0 });
  const heats: readonly (readonly [string, Heat])[] = [
    [SPIN, await heatOfOurs("spin", path, stack, signal)],
    [OURS, await heatOfOurs("read", path, stack, signal)],
    [REFERENCE, await heatOfReference(path, stack, signal)],
  ];
  const latencies = new Map<string, Latency[]>(heats.map(([name]) => [name, []]));
  for (let round = 1; round <= hotRounds; round++) {
    for (const [name, heat] of heats) {
      const hot = heat(hotMs + 2 * MARGIN_MS);
      // Told at the end; without this a failure in between would end the process first.
      hot.catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, MARGIN_MS));
      latencies.get(name)!.push(await writeFor(writer, hotMs));
      await hot;
      signal.throwIfAborted();
    }
    progress.step(CASE, round, hotRounds);
  }
  return {
    title: `The engine is left alone: SGLang's own writer, a write every ${WRITE_EVERY_US} us`,
    series: [SPIN, OURS, REFERENCE],
    ratios: [OURS_TO_SPIN, REFERENCE_TO_SPIN],
    results: QUANTILES.map((quantile) => toResult(quantile, latencies)),
    notes: [
      `${HOT} hot processes on ${navigator.hardwareConcurrency} cores: where there are fewer ` +
      "cores than processes, the writer also waits for a core.",
    ],
  };
}

function toResult(
  quantile: typeof QUANTILES[number],
  latencies: ReadonlyMap<string, readonly Latency[]>,
): Result {
  const series = Object.fromEntries(
    Array.from(latencies, ([name, rounds]) => [name, rounds.map((one) => one[quantile] * 1000)]),
  );
  const spin = series[SPIN]!;
  return {
    name: `${CASE}, ${quantile === "p999" ? "p99.9" : quantile}`,
    unit: "ns",
    series,
    ratios: {
      [OURS_TO_SPIN]: ratiosOf(series[OURS]!, spin),
      [REFERENCE_TO_SPIN]: ratiosOf(series[REFERENCE]!, spin),
    },
    targets: TARGETS[quantile] ?? [],
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

/** Our readers, or processes that are the same but do not read. */
async function heatOfOurs(
  mode: "spin" | "read",
  path: string,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Heat> {
  const processes: SideProcess[] = [];
  for (let n = 0; n < HOT; n++) {
    processes.push(stack.use(await SideProcess.startScript("hot.ts", [mode, path], signal)));
  }
  return async (ms) => {
    const done = await Promise.all(
      processes.map((process) =>
        process.ask<{ readonly calls: number; readonly publications: number }>(String(ms))
      ),
    );
    if (mode === "read" && done.some(({ publications }) => publications < 2)) {
      throw new Error("A hot reader saw nothing of what was published");
    }
  };
}

/** SGLang's readers. */
async function heatOfReference(
  path: string,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Heat> {
  const readers: PeerReader[] = [];
  for (let n = 0; n < HOT; n++) {
    const peer = await startPeer(stack, signal);
    readers.push(await peer.openReader(path, { dpSize: RANKS }));
  }
  return async (ms) => {
    const loops = await Promise.all(
      readers.map((reader) => reader.readLoop({ seconds: ms / 1000 })),
    );
    for (const loop of loops) await loop.result();
  };
}

/** A peer that ends with the stack, and at once when the run is to end early. */
async function startPeer(stack: AsyncDisposableStack, signal: AbortSignal): Promise<PythonPeer> {
  signal.throwIfAborted();
  const peer = stack.use(await PythonPeer.start());
  const kill = () => peer.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  stack.defer(() => signal.removeEventListener("abort", kill));
  return peer;
}
