/**
 * Counted kills: writers and collectors end by SIGKILL in the middle of their work, one after the
 * other, while a reader looks on. It has to go on with the last good value, and then with the next
 * writer's.
 */

import { type LoadSnapshot, ShmLoadSnapshotReader } from "../../mod.ts";
import { Random } from "../../examples/engine/random.ts";
import type { ReadyPeers } from "../peers/setup.ts";
import { SlotPath } from "../support/slot_path.ts";
import { sleep } from "../support/wait.ts";
import { Actor, type Message, type Program } from "./actor.ts";
import type { Broken, OutputOrder, WriterOrder } from "./actors/orders.ts";
import { observerProgram, pythonProgram, writerProgram } from "./actors/programs.ts";
import { PublicationCheck } from "./publication.ts";
import { type Times, timesOf } from "./report.ts";

/** What is to be done. */
export interface KillOptions {
  readonly seed: number;
  readonly writers: number;
  readonly collectors: number;
  /** SGLang's processes, which then are half of the writers. */
  readonly peers: ReadyPeers | null;
  readonly log: (line: string) => void;
}

/** What kills of one sort came to. */
export interface KillCounts {
  readonly kills: number;
  /** How many were killed in the middle of a write: their slot was left empty. */
  readonly cutOff: number;
  /** Snapshots that the reader saw meanwhile. */
  readonly seen: number;
  /** From the first publication after a restart to when it was read. */
  readonly followedMs: Times;
}

/** What all of it came to. */
export interface KillReport {
  readonly seed: number;
  readonly writers: KillCounts;
  readonly collectors: KillCounts;
  /** Whatever must not be, in words. */
  readonly broken: readonly string[];
}

/** Only a reader that does not follow any more is waited for as long. */
const FOLLOW_MS = 30_000;
const LOOK_MS = 1;
const TELL_EVERY = 100;
/** Ranks of the collected engine: those of one process of ours, and one of SGLang's. */
const RANKS = 3;

/** A reader that looks all the time, and checks each rank. */
class Onlooker implements Disposable {
  readonly broken: string[] = [];
  readonly checks: readonly PublicationCheck[];
  /** How long each new writer took to be read, in milliseconds. */
  readonly followedMs: number[] = [];
  readonly #reader: ShmLoadSnapshotReader;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(path: string, ranks: number, isRemote: boolean) {
    this.#reader = new ShmLoadSnapshotReader(path, { dpSize: ranks });
    this.checks = Array.from({ length: ranks }, () => new PublicationCheck(isRemote));
    this.#timer = setInterval(() => this.look(), LOOK_MS);
  }

  /** How many snapshots were seen. */
  get seen(): number {
    return this.checks.reduce((sum, { seen }) => sum + seen, 0);
  }

  /** Reads all ranks now; gives what they say. */
  look(): readonly (LoadSnapshot | null)[] {
    const loads = this.checks.map((_, dpRank) => this.#reader.read(dpRank));
    const nowMs = performance.timeOrigin + performance.now();
    this.checks.forEach((check, dpRank) => {
      const before = check.newest?.incarnation ?? 0;
      const fault = check.take(loads[dpRank]!, dpRank);
      if (fault !== null) this.broken.push(`rank ${dpRank}: ${fault}`);
      const { newest } = check;
      if (newest === null || newest.incarnation === before) return;
      this.followedMs.push(nowMs - newest.firstMicros / 1000);
    });
    return loads;
  }

  /** Waits until something is true of a rank; says whether that came. */
  async sees(dpRank: number, what: string, isTrue: () => boolean): Promise<boolean> {
    const deadline = performance.now() + FOLLOW_MS;
    while (!isTrue()) {
      if (performance.now() > deadline) {
        this.broken.push(`rank ${dpRank}: ${what} was never seen`);
        return false;
      }
      await sleep(LOOK_MS);
    }
    return true;
  }

  /** While nobody writes, a rank keeps its last good value, whatever stands in its slot. */
  keeps(dpRank: number): void {
    const [first, second] = [this.look()[dpRank], this.look()[dpRank]];
    if (first === null || first !== second) {
      this.broken.push(`rank ${dpRank}: a dead writer's last value was not kept`);
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#reader.close();
  }
}

/** Kills as many as asked for. */
export async function runKills(options: KillOptions): Promise<KillReport> {
  const broken: string[] = [];
  const writers = await killWriters(options, broken);
  const collectors = await killCollectors(options, broken);
  return { seed: options.seed, writers, collectors, broken };
}

async function killWriters(options: KillOptions, broken: string[]): Promise<KillCounts> {
  const { seed, writers, peers, log } = options;
  using file = new SlotPath();
  using onlooker = new Onlooker(file.path, 2, false);
  let kills = 0;
  let cutOff = 0;
  await Promise.all([0, 1].map(async (dpRank) => {
    const random = new Random(seed, dpRank);
    const check = onlooker.checks[dpRank]!;
    const share = dpRank === 0 ? Math.ceil(writers / 2) : Math.floor(writers / 2);
    for (let incarnation = 1; incarnation <= share; incarnation++) {
      const output = { kind: "shm", target: file.path, dpSize: 2, dpRank, incarnation } as const;
      const order = hotWriter([output]);
      const program = dpRank === 0 && peers !== null
        ? pythonProgram(peers, "writer.py", order)
        : writerProgram(order);
      const actor = begin(`writer ${incarnation} of rank ${dpRank}`, program, broken);
      await actor.up();
      await onlooker.sees(
        dpRank,
        `writer ${incarnation}`,
        () => check.newest?.incarnation === incarnation,
      );
      await sleep(random.between(0, 40));
      await actor.kill();
      onlooker.keeps(dpRank);
      if (new DataView(file.bytes().buffer).getUint32(12 + dpRank * 16_384, true) === 0) cutOff++;
      if (++kills % TELL_EVERY === 0) log(`${kills} writers killed`);
    }
  }));
  if (!file.isFree()) broken.push("the lock of a dead writer is not free");
  broken.push(...onlooker.broken);
  return { kills, cutOff, seen: onlooker.seen, followedMs: timesOf(onlooker.followedMs) };
}

async function killCollectors(options: KillOptions, broken: string[]): Promise<KillCounts> {
  const { seed, collectors, peers, log } = options;
  const random = new Random(seed, 2);
  using file = new SlotPath();
  const writers: Actor[] = [];
  const followedMs: number[] = [];
  let endpoint = "tcp://127.0.0.1:*";
  const collector = async (): Promise<Actor> => {
    const source = { name: "collected", path: file.path, endpoint, dpSize: RANKS, isRemote: true };
    const program = observerProgram({ intervalMs: 10, sources: [source] });
    const actor = begin("collector", program, broken);
    endpoint = (((await actor.up())["endpoints"]) as string[])[0]!;
    return actor;
  };
  let cutOff = 0;
  let actor = await collector();
  using onlooker = new Onlooker(file.path, RANKS, true);
  try {
    for (const ranks of [[0, 1], [2]]) {
      const outputs = ranks.map((dpRank) =>
        ({ kind: "zmq", target: endpoint, dpSize: RANKS, dpRank, incarnation: 1 }) as const
      );
      const order = hotWriter(outputs);
      const isPython = ranks.includes(2) && peers !== null;
      const program = isPython ? pythonProgram(peers, "writer.py", order) : writerProgram(order);
      writers.push(begin(`writers ${ranks}`, program, broken));
    }
    for (let kill = 1; kill <= collectors; kill++) {
      const before = onlooker.checks.map(({ newest }) => newest?.number ?? 0);
      const upMs = performance.now();
      for (let dpRank = 0; dpRank < RANKS; dpRank++) {
        const isNew = () => (onlooker.checks[dpRank]!.newest?.number ?? 0) > before[dpRank]!;
        await onlooker.sees(dpRank, `what collector ${kill} took`, isNew);
      }
      if (kill > 1) followedMs.push(performance.now() - upMs);
      await sleep(random.between(0, 40));
      await actor.kill();
      for (let dpRank = 0; dpRank < RANKS; dpRank++) onlooker.keeps(dpRank);
      const view = new DataView(file.bytes().buffer);
      for (let at = 12; at < view.byteLength; at += 16_384) {
        if (view.getUint32(at, true) === 0) cutOff++;
      }
      if (!file.isFree()) broken.push("the lock of a dead collector is not free");
      if (kill % TELL_EVERY === 0) log(`${kill} collectors killed`);
      if (kill < collectors) actor = await collector();
    }
  } finally {
    await actor.kill();
    for (const writer of writers) await writer.kill();
  }
  broken.push(...onlooker.broken);
  return { kills: collectors, cutOff, seen: onlooker.seen, followedMs: timesOf(followedMs) };
}

/** Writes without a pause most of the time, so that many die in the middle of a write. */
function hotWriter(outputs: readonly OutputOrder[]): WriterOrder {
  return { outputs, intervalMs: 1, burstMs: 15, skewMs: 0 };
}

function begin(name: string, program: Program, broken: string[]): Actor {
  const hear = (message: Message) => {
    if (message.kind === "broken") broken.push(`${name}: ${(message as unknown as Broken).detail}`);
  };
  return new Actor(name, program, hear, (why) => broken.push(why));
}

/** The table. */
export function killTableOf(report: KillReport): string {
  const lines = [`Kills, --seed ${report.seed}`];
  for (const sort of ["writers", "collectors"] as const) {
    const { kills, cutOff, seen, followedMs } = report[sort];
    const { p50, p99, max, overOneSecond } = followedMs;
    lines.push(
      `  ${kills} ${sort} killed, ${cutOff} slots cut off in a write, ${seen} snapshots seen`,
      `    followed: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${
        max.toFixed(1)
      } ms, ` +
        `${overOneSecond} of ${followedMs.count} after more than 1 s`,
    );
  }
  lines.push(`Broken: ${report.broken.length}`, ...report.broken.slice(0, 50));
  return lines.join("\n");
}
