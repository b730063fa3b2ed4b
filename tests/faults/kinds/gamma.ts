/** Faults of the engine on a small file system, and faults of readers. */

import { sleep } from "../../support/wait.ts";
import type { Stage } from "../stage.ts";
import { type FaultKind, killAndRestart, pick, stopAndContinue } from "./fault.ts";

const RANKS = 2;

/** Takes all space that is left; whoever calls gives it back. */
function fill(folder: string): Disposable {
  const path = `${folder}/filler`;
  using file = Deno.openSync(path, { write: true, create: true, truncate: true });
  try {
    for (;;) file.writeSync(new Uint8Array(1024));
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes("os error 28")) throw error;
  }
  return { [Symbol.dispose]: () => Deno.removeSync(path) };
}

const whyNotFull = (stage: Stage): string | null =>
  stage.options.smallFolder === null ? "no file system could be mounted" : null;

export const GAMMA_FAULTS: readonly FaultKind[] = [
  {
    name: "no space, path unlinked",
    weight: 2,
    whyNot: whyNotFull,
    async run(stage, random) {
      {
        // Full first: the pages of an unlinked file stay with the processes that have them mapped.
        using _full = fill(stage.options.smallFolder!);
        stage.gamma.unlink();
        await sleep(random.between(100, 1000));
      }
      await stage.follows("gamma", RANKS);
    },
  },
  {
    name: "no space, writer restarted",
    weight: 2,
    whyNot: whyNotFull,
    async run(stage, random) {
      const [name = ""] = stage.writersOf("gamma");
      {
        await stage.kill(name);
        using _full = fill(stage.options.smallFolder!);
        stage.gamma.unlink();
        await stage.start(name);
        await sleep(random.between(100, 1000));
      }
      await stage.follows("gamma", RANKS);
    },
  },
  {
    name: "writer killed",
    weight: 1,
    async run(stage, random) {
      await killAndRestart(stage, random, pick(random, stage.writersOf("gamma")));
      await stage.follows("gamma", RANKS);
    },
  },
];

export const READER_FAULTS: readonly FaultKind[] = [
  {
    name: "reader killed",
    weight: 3,
    async run(stage, random) {
      await killAndRestart(stage, random, "killed");
      await stage.follows("gamma", RANKS, "killed");
    },
  },
  {
    name: "reader stopped",
    weight: 3,
    async run(stage, random) {
      await stopAndContinue(stage, "stopped", random.between(100, 3000));
      await stage.follows("gamma", RANKS, "stopped");
    },
  },
  {
    name: "reader's isolate busy",
    weight: 2,
    async run(stage, random) {
      const blockMs = random.between(50, 1500);
      stage.actor("stopped").tell({ blockMs });
      await sleep(blockMs);
      await stage.follows("gamma", RANKS, "stopped");
    },
  },
  {
    name: "clock of a reader stepped",
    weight: 3,
    whyNot: (stage) => stage.options.clockLibrary === null ? "libfaketime is not there" : null,
    async run(stage, random) {
      const seconds = pick(random, [-3600, -60, -1.5, 1.5, 60, 3600]);
      const say = (offset: string) => {
        // Renamed into place: it is read at any moment.
        Deno.writeTextFileSync(`${stage.clockFile}.new`, `${offset}\n`);
        Deno.renameSync(`${stage.clockFile}.new`, stage.clockFile);
      };
      say(seconds < 0 ? `${seconds}` : `+${seconds}`);
      await sleep(random.between(300, 2000));
      say("+0");
      await stage.follows("gamma", RANKS, "misled");
    },
  },
];
