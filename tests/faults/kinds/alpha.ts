/** Faults of the engine on this node, whose ranks SGLang writes, and we. */

import { sleep } from "../../support/wait.ts";
import { LOCK_EX, LOCK_NB, LOCK_SH } from "../../../src/slotfile/libc.ts";
import { RawFile } from "../../support/raw_libc.ts";
import { slotFileBytes } from "../../support/slot_bytes.ts";
import type { SlotPath } from "../../support/slot_path.ts";
import { ALPHA_RANKS, type Stage } from "../stage.ts";
import {
  type FaultKind,
  killAndRestart,
  pick,
  restartSglangWriters,
  stopAndContinue,
} from "./fault.ts";
import { hostileBytes } from "./hostile_bytes.ts";

const HEADER_SIZE = 12;
const SLOT_SIZE = 16_384;
const LOCK_ATTEMPTS = 500;
/** Bytes of a header that no other value makes another good header of. */
const FRAGILE = [0, 1, 2, 3, 5, 11];

/**
 * Takes a file's lock, does something, and lets go of it.
 *
 * @returns Whether the lock could be had: a writer that stands still may have it.
 */
export async function underLock(
  file: SlotPath,
  mode: "exclusive" | "shared",
  act: (raw: RawFile) => Promise<void> | void,
): Promise<boolean> {
  using raw = new RawFile(file.path);
  const lock = (mode === "exclusive" ? LOCK_EX : LOCK_SH) | LOCK_NB;
  // Writers hold it for microseconds, but often.
  for (let n = 0; n < LOCK_ATTEMPTS; n++) {
    if (raw.tryLock(lock)) {
      await act(raw);
      return true;
    }
    await sleep(1);
  }
  return false;
}

async function allFollow(stage: Stage): Promise<void> {
  await stage.follows("alpha", stage.alphaRanks);
}

/** Starts the engine anew with another number of ranks. */
async function restartEngine(stage: Stage, ranks: number, ours: "first" | "last"): Promise<void> {
  await Promise.all(stage.writersOf("alpha").map((name) => stage.kill(name)));
  stage.alphaRanks = ranks;
  const writers = stage.writersOf("alpha");
  if (ours === "first") writers.reverse();
  for (const name of writers) await stage.start(name);
}

export const ALPHA_FAULTS: readonly FaultKind[] = [
  {
    name: "writer killed",
    weight: 8,
    async run(stage, random) {
      await killAndRestart(stage, random, pick(random, stage.writersOf("alpha")));
      await allFollow(stage);
    },
  },
  {
    name: "writer stopped",
    weight: 4,
    async run(stage, random) {
      const name = pick(random, stage.writersOf("alpha"));
      await stopAndContinue(stage, name, random.between(100, 2000));
      await allFollow(stage);
    },
  },
  {
    name: "everybody hot",
    weight: 3,
    async run(stage, random) {
      // Reads and writes meet all the time.
      const hotMs = random.between(100, 400);
      const readers = ["stopped", "poor"];
      for (const name of [...stage.writersOf("alpha"), ...readers]) {
        stage.actor(name).tell({ hotMs });
      }
      await sleep(hotMs);
      await allFollow(stage);
    },
  },
  {
    name: "path unlinked",
    weight: 2,
    async run(stage, random) {
      stage.alpha.unlink();
      await sleep(random.between(0, 400));
      await restartSglangWriters(stage);
      await allFollow(stage);
    },
  },
  {
    name: "file replaced",
    weight: 2,
    async run(stage, random) {
      const slots = Array.from({ length: ALPHA_RANKS }, () => null);
      stage.alpha.replace(slotFileBytes({ slots }));
      await sleep(random.between(0, 400));
      await restartSglangWriters(stage);
      await allFollow(stage);
    },
  },
  {
    name: "restart with fewer ranks",
    weight: 2,
    async run(stage, random) {
      const order = random.chance(0.5) ? "first" : "last";
      // One rank is SGLang's alone: it cuts the file off in place, under its readers.
      await restartEngine(stage, pick(random, [1, 2, 3]), order);
      await sleep(random.between(200, 1000));
      await allFollow(stage);
      await restartEngine(stage, ALPHA_RANKS, random.chance(0.5) ? "first" : "last");
      await allFollow(stage);
    },
  },
  {
    name: "lock held",
    weight: 3,
    async run(stage, random) {
      const ms = random.between(50, 2000);
      await underLock(stage.alpha, random.chance(0.6) ? "exclusive" : "shared", () => sleep(ms));
      await allFollow(stage);
    },
  },
  {
    name: "write stuck half way, lock kept",
    weight: 3,
    async run(stage, random) {
      const ms = random.between(50, 1500);
      const at = HEADER_SIZE + random.index(stage.alphaRanks) * SLOT_SIZE;
      // CPython stores a length byte by byte: a part of one stands there, as if for good.
      await underLock(stage.alpha, "exclusive", async (raw) => {
        const slot = raw.read(at, SLOT_SIZE);
        raw.write(at, Uint8Array.of(slot[0]! | 1, 0, 0, 0));
        await sleep(ms);
        raw.write(at, slot);
      });
      await allFollow(stage);
    },
  },
  {
    name: "hostile bytes in a slot",
    weight: 5,
    async run(stage, random) {
      const writers = stage.writersOf("alpha");
      const dpRank = random.index(writers.length);
      // Of a writer that stands still, so that they stay; or of one that writes over them.
      const isStopped = random.chance(0.5);
      const actor = stage.actor(writers[dpRank]!);
      if (isStopped) actor.signal("SIGSTOP");
      try {
        await underLock(stage.alpha, "exclusive", (raw) => {
          const at = HEADER_SIZE + dpRank * SLOT_SIZE;
          raw.write(at, hostileBytes(random, raw.read(at, SLOT_SIZE)));
        });
        await sleep(random.between(20, 500));
      } finally {
        actor.signal("SIGCONT");
      }
      await allFollow(stage);
    },
  },
  {
    name: "hostile header",
    weight: 1,
    async run(stage, random) {
      await underLock(stage.alpha, "exclusive", async (raw) => {
        const header = raw.read(0, HEADER_SIZE);
        const hostile = header.slice();
        const at = pick(random, FRAGILE);
        hostile[at] = hostile[at]! ^ (1 + random.index(255));
        raw.write(0, hostile);
        await sleep(random.between(10, 300));
        raw.write(0, header);
      });
      await allFollow(stage);
    },
  },
  {
    name: "clock of a writer stepped",
    weight: 3,
    async run(stage, random) {
      const skewMs = pick(random, [-3_600_000, -60_000, -1500, 1500, 60_000, 3_600_000]);
      const actor = stage.actor(pick(random, stage.writersOf("alpha")));
      actor.tell({ skewMs });
      await sleep(random.between(300, 1500));
      actor.tell({ skewMs: 0 });
      await allFollow(stage);
    },
  },
  {
    name: "no descriptors left",
    weight: 2,
    async run(stage, random) {
      const pid = stage.actor("poor").pid;
      const before = await limitDescriptors(pid, lowestFree(pid));
      try {
        stage.alpha.unlink();
        await sleep(random.between(100, 600));
        await restartSglangWriters(stage);
        await allFollow(stage);
      } finally {
        await limitDescriptors(pid, before);
      }
      await stage.follows("alpha", stage.alphaRanks, "poor");
    },
  },
];

/** The number that a process's next descriptor would have. */
function lowestFree(pid: number): number {
  const open = new Set(Array.from(Deno.readDirSync(`/proc/${pid}/fd`), ({ name }) => name));
  let number = 0;
  while (open.has(String(number))) number++;
  return number;
}

/** Sets how many descriptors a process may have; gives how many it could have before. */
async function limitDescriptors(pid: number, count: number): Promise<number> {
  const prlimit = async (...args: readonly string[]) => {
    const { success, stdout, stderr } = await new Deno.Command("prlimit", {
      args: [`--pid=${pid}`, ...args],
    }).output();
    if (!success) throw new Error(`Cannot limit: ${new TextDecoder().decode(stderr)}`);
    return new TextDecoder().decode(stdout);
  };
  const before = await prlimit("--nofile", "--noheadings", "--output=SOFT", "--raw");
  await prlimit(`--nofile=${count}:`);
  return Number(before);
}
