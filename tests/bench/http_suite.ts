/** Serving over HTTP beside SGLang's own route, and how soon a client of the stream hears of a load. */

import { removeSlotFile, shmPathFor } from "../../mod.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { LoadRoute } from "../peers/load_route.ts";
import type { BenchContext } from "./bench_context.ts";
import { OURS, REFERENCE, TIMES_AS_FAST } from "./compare.ts";
import { hasTaskset, onCore } from "./on_core.ts";
import { loadsOf, VERSIONS } from "./payloads.ts";
import type { Result, Section } from "./results.ts";
import { SideProcess } from "./side_process.ts";
import { ratiosOf } from "./statistics.ts";

const ANSWER = "HTTP, /v1/loads of 8 ranks on one core";
const EVENT = "HTTP, from publication to a client's event";
const CROWD = "HTTP, /v1/loads of 8 ranks with 200 clients of the stream";

const RANKS = 8;
/** All ranks publish this often while answers are timed, as a busy engine does. */
const PUBLISH_MS = 25;
const CLIENTS = 200;
/** Publications a second: of a busy group for one client, of a calm one for many. */
const RATES = { one: 100, many: 40 } as const;

/** Runs the cases that were asked for. */
export async function httpSuite(context: BenchContext): Promise<Section | null> {
  const results: Result[] = [];
  if (context.wants(ANSWER)) results.push(...await compareAnswers(context));
  if (context.wants(EVENT)) results.push(...await measureEvents(context));
  if (context.wants(CROWD)) results.push(...await measureCrowd(context));
  if (results.length === 0) return null;
  return {
    title: "Serving over HTTP, beside SGLang's route under FastAPI and uvicorn",
    series: [OURS, REFERENCE],
    ratios: [TIMES_AS_FAST],
    results,
    notes: [
      `time of an answer: 16 connections that stay open, while all ranks publish every ${PUBLISH_MS} ms;`,
      "processor: user and system time of the serving process; SGLang's has uvloop and httptools;",
      await hasTaskset()
        ? "each server has core 0, who asks has core 1."
        : "without taskset the servers are not held to one core.",
    ],
  };
}

/** A slot file of its own, whose ranks publish until the end of its scope. */
class Publishing implements Disposable {
  readonly path: string = shmPathFor(`bench-${crypto.randomUUID()}`);
  readonly #writers: readonly ShmLoadSnapshotWriter[];
  readonly #timer: ReturnType<typeof setInterval>;
  #version = 0;

  constructor() {
    this.#writers = Array.from(
      { length: RANKS },
      (_, dpRank) => new ShmLoadSnapshotWriter(this.path, { dpSize: RANKS, dpRank }),
    );
    const loads = this.#writers.map((_, dpRank) => loadsOf(dpRank, "trace"));
    const publish = () => {
      const version = this.#version++ % VERSIONS;
      const timestamp = Date.now() / 1000;
      this.#writers.forEach((writer, dpRank) =>
        writer.write({ ...loads[dpRank]![version]!, timestamp })
      );
    };
    publish();
    this.#timer = setInterval(publish, PUBLISH_MS);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    for (const writer of this.#writers) writer.close();
    removeSlotFile(this.path);
  }
}

/** Where a server listens, and its process. */
interface Served {
  readonly url: string;
  readonly pid: number;
}

async function startOurs(
  context: BenchContext,
  path: string,
  stack: AsyncDisposableStack,
): Promise<Served> {
  const args = ["run", "-A", new URL("http_ours.ts", import.meta.url).href, path];
  const command = await onCore(0, Deno.execPath(), args);
  const side = stack.use(await SideProcess.start(OURS, ...command, context.signal));
  return await side.ask<Served>("where");
}

async function startAsker(
  context: BenchContext,
  stack: AsyncDisposableStack,
): Promise<SideProcess> {
  const args = ["run", "-A", new URL("http_asker.ts", import.meta.url).href];
  const command = await onCore(1, Deno.execPath(), args);
  return stack.use(await SideProcess.start("who asks", ...command, context.signal));
}

async function startListener(
  context: BenchContext,
  path: string,
  { url }: Served,
  clients: number,
  stack: AsyncDisposableStack,
): Promise<SideProcess> {
  const script = new URL("http_listener.ts", import.meta.url).href;
  const args = ["run", "-A", script, path, new URL(url).port, `${clients}`];
  const command = await onCore(1, Deno.execPath(), args);
  return stack.use(await SideProcess.start("who listens", ...command, context.signal));
}

/** User and system time that a process has used, in ns; Linux counts it in ticks of 10 ms. */
async function processorNs(pid: number): Promise<number> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 1e7;
}

async function compareAnswers(context: BenchContext): Promise<Result[]> {
  const { pace: { hotRounds, hotMs }, peers, progress } = context;
  progress.begin(ANSWER);
  await using stack = new AsyncDisposableStack();
  const engine = stack.use(new Publishing());
  const ours = await startOurs(context, engine.path, stack);
  const [first = "", ...within] = (await onCore(0, "", [])).flat().filter((word) => word !== "");
  const reference = stack.use(
    await LoadRoute.start(engine.path, RANKS, peers, first === "" ? [] : [first, ...within]),
  );
  const asker = await startAsker(context, stack);
  const time: Record<string, number[]> = { [OURS]: [], [REFERENCE]: [] };
  const processor: Record<string, number[]> = { [OURS]: [], [REFERENCE]: [] };
  // The first round has the compiler done.
  for (let round = 0; round <= hotRounds; round++) {
    for (const [side, { url, pid }] of [[OURS, ours], [REFERENCE, reference]] as const) {
      const before = await processorNs(pid);
      const { count, ns } = await asker.ask<{ readonly count: number; readonly ns: number }>(
        `${new URL(url).port} ${hotMs / 1000}`,
      );
      if (round === 0) continue;
      time[side]!.push(ns);
      processor[side]!.push((await processorNs(pid) - before) / count);
    }
    progress.step(ANSWER, round, hotRounds);
  }
  return [
    compared(`${ANSWER}, time`, time),
    compared(`${ANSWER}, processor`, processor),
  ];
}

function compared(name: string, series: Readonly<Record<string, readonly number[]>>): Result {
  const ratios = { [TIMES_AS_FAST]: ratiosOf(series[REFERENCE]!, series[OURS]!) };
  return { name, unit: "ns", series, ratios, targets: [{ of: TIMES_AS_FAST, atLeast: 5 }] };
}

/** What who listens answers. */
interface Heard {
  readonly p50: number;
  readonly p99: number;
  readonly heard: number;
  readonly published: number;
}

async function measureEvents(context: BenchContext): Promise<Result[]> {
  const { pace: { hotRounds, hotMs }, progress } = context;
  const results: Result[] = [];
  for (const clients of [1, CLIENTS]) {
    const name = clients === 1 ? EVENT : `${EVENT}, one of ${clients}`;
    progress.begin(name);
    await using stack = new AsyncDisposableStack();
    const path = shmPathFor(`bench-${crypto.randomUUID()}`);
    stack.defer(() => void removeSlotFile(path));
    const ours = await startOurs(context, path, stack);
    const listener = await startListener(context, path, ours, clients, stack);
    const rate = clients === 1 ? RATES.one : RATES.many;
    const p50: number[] = [];
    const p99: number[] = [];
    for (let round = 0; round <= hotRounds; round++) {
      const heard = await listener.ask<Heard>(`${rate} ${hotMs / 1000}`);
      // On a busy machine some are skipped for newer ones of their rank.
      if (heard.heard === 0) throw new Error("Nothing was heard");
      if (round > 0) {
        p50.push(heard.p50);
        p99.push(heard.p99);
      }
      progress.step(name, round, hotRounds);
    }
    results.push(
      { name: `${name}, p50`, unit: "ns", series: { [OURS]: p50 }, ratios: {}, targets: [] },
      {
        name: `${name}, p99`,
        unit: "ns",
        series: { [OURS]: p99 },
        ratios: {},
        targets: [{ of: OURS, atMost: 10e6 }],
      },
    );
  }
  return results;
}

/** A thousand answers a second, while many listen. */
async function measureCrowd(context: BenchContext): Promise<Result[]> {
  const { pace: { hotRounds, hotMs }, progress } = context;
  progress.begin(CROWD);
  await using stack = new AsyncDisposableStack();
  const path = shmPathFor(`bench-${crypto.randomUUID()}`);
  stack.defer(() => void removeSlotFile(path));
  const ours = await startOurs(context, path, stack);
  const listener = await startListener(context, path, ours, CLIENTS, stack);
  const asker = await startAsker(context, stack);
  const time: number[] = [];
  for (let round = 0; round <= hotRounds; round++) {
    const seconds = hotMs / 1000;
    const [{ ns }] = await Promise.all([
      asker.ask<{ readonly ns: number }>(`${new URL(ours.url).port} ${seconds}`),
      listener.ask(`${RATES.many} ${seconds}`),
    ]);
    if (round > 0) time.push(ns);
    progress.step(CROWD, round, hotRounds);
  }
  return [{
    name: CROWD,
    unit: "ns",
    series: { [OURS]: time },
    ratios: {},
    targets: [{ of: OURS, atMost: 1e6 }],
  }];
}
