// deno-lint-ignore-file no-console -- what was left out is printed
/** Two engines and ten readers of both on one node: what happens to one engine is not the other's. */

import assert from "node:assert/strict";
import { ensurePeers } from "../peers/setup.ts";
import { SlotPath } from "../support/slot_path.ts";
import { until } from "../support/wait.ts";
import { Actor, type Message } from "./actor.ts";
import type { ObserverReport, Reached, WriterReport } from "./actors/orders.ts";
import { observerProgram, pythonProgram, writerProgram } from "./actors/programs.ts";
import { underLock } from "./kinds/alpha.ts";

const READERS = 10;
const RANKS = 2;

/** Everybody who runs, and the last that each of them said. */
class Node implements AsyncDisposable {
  readonly wrong: string[] = [];
  readonly #actors = new Map<string, Actor>();
  readonly #said = new Map<string, Message>();

  async start(name: string, program: ConstructorParameters<typeof Actor>[1]): Promise<void> {
    const hear = (message: Message) => {
      if (message.kind === "broken") this.wrong.push(JSON.stringify(message));
      else if (message.kind !== "up") this.#said.set(name, message);
    };
    const actor = new Actor(name, program, hear, (why) => this.wrong.push(why));
    this.#actors.set(name, actor);
    await actor.up();
  }

  async kill(name: string): Promise<void> {
    await this.#actors.get(name)!.kill();
    this.#actors.delete(name);
  }

  /** What a writer has come to. */
  writer(name: string): WriterReport {
    return this.#said.get(name) as unknown as WriterReport;
  }

  /** How far each reader has come with a rank. */
  reached(rank: string): (Reached | undefined)[] {
    return Array.from({ length: READERS }, (_, index) => {
      const report = this.#said.get(`reader ${index}`) as unknown as ObserverReport | undefined;
      return report?.reached[rank];
    });
  }

  /** Waits until all readers have something new of all ranks of an engine. */
  async follow(engine: string): Promise<void> {
    for (let dpRank = 0; dpRank < RANKS; dpRank++) {
      const before = this.reached(`${engine}/${dpRank}`);
      await until(
        `all readers follow rank ${dpRank} of ${engine}`,
        () =>
          this.reached(`${engine}/${dpRank}`).every((now, index) => {
            const [incarnation, number] = before[index] ?? [0, 0];
            return now !== undefined &&
              (now[0] > incarnation || (now[0] === incarnation && now[1] > number));
          }),
        50,
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = await Promise.all([...this.#actors.values()].map((actor) => actor.end()));
    this.wrong.push(...ends.filter((end) => end !== null));
  }
}

Deno.test("two engines and ten readers of both do not disturb each other", async () => {
  const peers = await ensurePeers();
  if (peers.state === "missing") console.log(`left out: SGLang's writers: ${peers.reason}`);
  using one = new SlotPath();
  using two = new SlotPath();
  const node = new Node();
  {
    await using _all = node;
    const orderOf = (file: SlotPath, dpRank: number, incarnation: number) => ({
      outputs: [
        { kind: "shm", target: file.path, dpSize: RANKS, dpRank, incarnation } as const,
      ],
      ...{ intervalMs: 10, burstMs: 1, skewMs: 0 },
    });
    const start = async (engine: string, file: SlotPath, incarnation: number) => {
      // One rank is SGLang's, one is ours.
      const theirs = orderOf(file, 0, incarnation);
      const program = peers.state === "ready"
        ? pythonProgram(peers, "writer.py", theirs)
        : writerProgram(theirs);
      await node.start(`${engine} 0`, program);
      await node.start(`${engine} 1`, writerProgram(orderOf(file, 1, incarnation)));
    };
    await start("one", one, 1);
    await start("two", two, 1);
    const sources = [
      { name: "one", path: one.path, isRemote: false },
      { name: "two", path: two.path, isRemote: false },
    ];
    for (let index = 0; index < READERS; index++) {
      await node.start(`reader ${index}`, observerProgram({ intervalMs: 25, sources }));
    }
    for (const engine of ["one", "two"]) await node.follow(engine);

    // The lock of one engine is kept: the other one publishes, and is read.
    await underLock(one, "exclusive", () => node.follow("two"));
    await node.follow("one");
    // One engine dies, and starts again: the other one does not notice.
    await node.kill("one 0");
    await node.kill("one 1");
    await node.follow("two");
    await start("one", one, 2);
    for (const engine of ["one", "two"]) await node.follow(engine);
    const { refused } = node.writer("two 1");
    assert.deepEqual(refused, {}, "no write of the other engine ever waited for a lock in vain");
    assert(node.reached("one/0").every((reached) => reached?.[0] === 2));
    assert(node.reached("two/0").every((reached) => reached?.[0] === 1));
  }
  assert.deepEqual(node.wrong, []);
});
