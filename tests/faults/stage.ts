/**
 * Who is on the stage: engines that are written by SGLang and by us, collectors, and readers of each
 * kind. Faults act on them by name; whoever they end is started again from here.
 */

import type { ReadyPeers } from "../peers/setup.ts";
import { SlotPath } from "../support/slot_path.ts";
import { Actor, type Message, type Program } from "./actor.ts";
import type { OutputOrder, Reached, SourceOrder } from "./actors/orders.ts";
import { observerProgram, pythonProgram, withClock, writerProgram } from "./actors/programs.ts";
import { Network } from "./network.ts";
import type { RunRecord } from "./run_record.ts";
import { Relay } from "./relay.ts";

/** How many ranks the engine on this node has, unless a restart makes it smaller. */
export const ALPHA_RANKS = 4;
const BETA_RANKS = 4;
const GAMMA_RANKS = 2;
const DELTA_RANKS = 2;
/** Only a reader that does not follow any more is waited for as long. */
const FOLLOW_MS = 30_000;

/** What the stage is set up with. */
export interface StageOptions {
  readonly peers: ReadyPeers | null;
  readonly record: RunRecord;
  /** A folder of this run's own. */
  readonly folder: string;
  /** A small file system, or `null` where none could be mounted. */
  readonly smallFolder: string | null;
  /** libfaketime's library, or `null`. */
  readonly clockLibrary: string | null;
  readonly hasOwnNetwork: boolean;
}

/** Everything that runs, and what there is of it in the file system. */
export class Stage implements AsyncDisposable {
  /** The engine on this node: SGLang's ranks first, then ours. */
  readonly alpha: SlotPath = new SlotPath();
  /** The engine across a network: the collector's file. */
  readonly beta: SlotPath = new SlotPath();
  /** The engine on a small file system. */
  readonly gamma: SlotPath;
  /** An engine whose collector lives as long as the run. */
  readonly delta: SlotPath = new SlotPath();
  /** Two files of one writer: one is read, the other is not. */
  readonly watched: SlotPath = new SlotPath();
  readonly alone: SlotPath = new SlotPath();
  readonly network: Network;
  readonly relay: Relay;
  readonly clockFile: string;
  readonly options: StageOptions;
  alphaRanks = ALPHA_RANKS;

  readonly #programs: ReadonlyMap<string, () => Program>;
  readonly #actors = new Map<string, Actor>();
  /** How far readers have come, by their name, and by engine and rank. */
  readonly #reached = new Map<string, Readonly<Record<string, Reached>>>();
  readonly #incarnations = new Map<string, number>();
  readonly #deltaIpc: string;
  #collectorPort: number | null = null;

  private constructor(options: StageOptions, network: Network) {
    this.options = options;
    this.network = network;
    this.gamma = new SlotPath(options.smallFolder ?? "/dev/shm");
    this.clockFile = `${options.folder}/clock`;
    this.#deltaIpc = `${options.folder}/delta.sock`;
    this.relay = new Relay(network.hostname, () => this.#collectorPort);
    this.#programs = this.#cast();
  }

  /** Starts everybody. */
  static async open(options: StageOptions): Promise<Stage> {
    const network = await Network.lay(options.hasOwnNetwork);
    const stage = new Stage(options, network);
    try {
      Deno.writeTextFileSync(stage.clockFile, "+0\n");
      for (const left of network.leftOut) options.record.leaveOut(left);
      await stage.start("beta-collector");
      await stage.start("resident");
      const others = [...stage.#programs.keys()].filter((name) => !stage.#actors.has(name));
      for (const name of others) await stage.start(name);
      return stage;
    } catch (error) {
      await stage[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** All names, those of actors that are gone for the moment too. */
  get names(): string[] {
    return [...this.#programs.keys()];
  }

  /** The writers of an engine. */
  writersOf(engine: string): string[] {
    const writers = this.names.filter((name) => new RegExp(`^${engine}-\\d`).test(name));
    return engine === "alpha" ? writers.slice(0, this.alphaRanks) : writers;
  }

  /** An actor that is there now. */
  actor(name: string): Actor {
    const actor = this.#actors.get(name);
    if (actor === undefined) throw new Error(`Nobody is called ${name} now`);
    return actor;
  }

  /** The process numbers of all that are there. */
  pids(): Map<string, number> {
    return new Map([...this.#actors].map(([name, { pid }]) => [name, pid]));
  }

  /** Starts somebody, and waits for the first words. */
  async start(name: string): Promise<void> {
    const actor = new Actor(
      name,
      this.#programs.get(name)!(),
      (message) => this.#hear(name, message),
      (why) => this.#diedAlone(name, why),
    );
    this.#actors.set(name, actor);
    const { endpoints } = await actor.up();
    if (name !== "beta-collector") return;
    const [endpoint = ""] = endpoints as string[];
    this.#collectorPort = Number(endpoint.split(":").at(-1));
  }

  /** Kills somebody. */
  async kill(name: string): Promise<void> {
    const actor = this.actor(name);
    this.#actors.delete(name);
    await actor.kill();
    this.options.record.leave(name);
  }

  /** Waits until a reader has something new of every rank of an engine. */
  async follows(engine: string, ranks: number, reader = "resident"): Promise<void> {
    const reached = (rank: string) => this.#reached.get(reader)?.[rank];
    const before = this.#reached.get(reader) ?? {};
    const deadline = performance.now() + FOLLOW_MS;
    for (let dpRank = 0; dpRank < ranks; dpRank++) {
      const name = `${engine}/${dpRank}`;
      while (!isBeyond(reached(name), before[name])) {
        if (performance.now() > deadline) {
          const detail = `${reader} stays at ${before[name]} of ${name}`;
          return this.options.record.breaks("followed", detail);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** Lets everybody end, and takes away what they made. */
  async [Symbol.asyncDispose](): Promise<void> {
    const actors = [...this.#actors.values()];
    this.#actors.clear();
    const faults = await Promise.all(actors.map((actor) => actor.end()));
    for (const fault of faults) if (fault !== null) this.options.record.breaks("end", fault);
    await this.relay[Symbol.asyncDispose]();
    await this.network[Symbol.asyncDispose]();
    for (const file of [this.alpha, this.beta, this.gamma, this.delta, this.watched, this.alone]) {
      // What the harness itself puts there is gone by now; whatever else stands beside it is left.
      const left = file.all().filter((path) => path !== file.path);
      if (left.length > 0) this.options.record.breaks("left behind", left.join(", "));
      file[Symbol.dispose]();
    }
    Deno.removeSync(this.clockFile);
  }

  #hear(name: string, message: Message): void {
    this.options.record.hear(name, message);
    if (message.kind !== "observer") return;
    this.#reached.set(name, message["reached"] as Readonly<Record<string, Reached>>);
  }

  /** SGLang's own reader is ended by a file that shrinks under it; nobody else may be. */
  #diedAlone(name: string, why: string): void {
    if (!why.includes("SIGBUS") || name !== "sglang-reader") {
      return this.options.record.breaks("crash", why);
    }
    this.options.record.note("SGLang's reader ended by SIGBUS");
    this.options.record.leave(name);
    if (this.#actors.has(name)) void this.start(name).catch(() => {});
  }

  /** An output of the next process that writes a rank. */
  #output(engine: string, kind: "shm" | "zmq", target: string, dpSize: number, dpRank: number) {
    const name = `${engine}/${dpRank}`;
    const incarnation = (this.#incarnations.get(name) ?? 0) + 1;
    this.#incarnations.set(name, incarnation);
    return { kind, target, dpSize, dpRank, incarnation } satisfies OutputOrder;
  }

  /** Everybody's part. */
  #cast(): ReadonlyMap<string, () => Program> {
    const { peers, clockLibrary } = this.options;
    const source = (
      name: string,
      file: SlotPath,
      more: Partial<SourceOrder> = {},
    ): SourceOrder => ({
      name,
      path: file.path,
      isRemote: false,
      ...more,
    });
    const alpha = source("alpha", this.alpha);
    const beta = source("beta", this.beta, { isRemote: true });
    const gamma = source("gamma", this.gamma, { dpSize: GAMMA_RANKS });
    const watched = source("watched", this.watched);
    const collected = { ...beta, dpSize: BETA_RANKS };
    const delta = source("delta", this.delta, { isRemote: true, dpSize: DELTA_RANKS });
    const ofDelta = { ...delta, endpoint: `ipc://${this.#deltaIpc}` };
    const writing = { intervalMs: 25, burstMs: 2, skewMs: 0 };
    const parts = new Map<string, () => Program>();

    for (let rank = 0; rank < ALPHA_RANKS; rank++) {
      parts.set(`alpha-${rank}`, () => {
        const output = this.#output("alpha", "shm", this.alpha.path, this.alphaRanks, rank);
        const order = { ...writing, outputs: [output] };
        return rank < 2 && peers !== null
          ? pythonProgram(peers, "writer.py", order)
          : writerProgram(order);
      });
    }
    parts.set("beta-0", () => {
      const output = this.#output("beta", "zmq", this.relay.endpoint, BETA_RANKS, 0);
      const order = { ...writing, outputs: [output] };
      const program = peers === null
        ? writerProgram(order)
        : pythonProgram(peers, "writer.py", order);
      return this.network.atFarEnd(program);
    });
    parts.set("beta-1", () => {
      const outputs = [1, 2, 3].map((rank) =>
        this.#output("beta", "zmq", this.relay.endpoint, BETA_RANKS, rank)
      );
      return this.network.atFarEnd(writerProgram({ ...writing, outputs }));
    });
    parts.set("beta-collector", () => {
      const endpoint = `tcp://127.0.0.1:${this.#collectorPort ?? "*"}`;
      return observerProgram({ intervalMs: 10, sources: [{ ...collected, endpoint }] });
    });
    parts.set("gamma-0", () => {
      const outputs = [0, 1].map((rank) =>
        this.#output("gamma", "shm", this.gamma.path, GAMMA_RANKS, rank)
      );
      return writerProgram({ ...writing, outputs });
    });
    parts.set("delta-0", () => {
      const outputs = [0, 1].map((rank) =>
        this.#output("delta", "zmq", ofDelta.endpoint, DELTA_RANKS, rank)
      );
      return writerProgram({ ...writing, outputs });
    });
    if (peers !== null) {
      parts.set("quiet", () => {
        const outputs = [this.watched, this.alone].map((file, index) =>
          this.#output(index === 0 ? "watched" : "alone", "shm", file.path, 1, 0)
        );
        return pythonProgram(peers, "writer.py", {
          ...writing,
          intervalMs: 10,
          burstMs: 0,
          outputs,
        });
      });
      parts.set("sglang-reader", () => {
        const sources = [alpha, beta, gamma];
        return pythonProgram(peers, "reader.py", { intervalMs: 200, sources });
      });
    }
    const everything = [alpha, beta, gamma, ...(peers === null ? [] : [watched])];
    parts.set(
      "resident",
      () => observerProgram({ intervalMs: 8, sources: [...everything, ofDelta] }),
    );
    for (const name of ["stopped", "killed", "poor"]) {
      parts.set(name, () => observerProgram({ intervalMs: 15, sources: everything }));
    }
    if (clockLibrary !== null) {
      parts.set("misled", () => {
        const program = observerProgram({ intervalMs: 15, sources: everything });
        return withClock(program, clockLibrary, this.clockFile);
      });
    }
    return parts;
  }
}

function isBeyond(now: Reached | undefined, before: Reached | undefined): boolean {
  if (now === undefined) return false;
  if (before === undefined) return true;
  return now[0] > before[0] || (now[0] === before[0] && now[1] > before[1]);
}
