/** Faults of the engine whose ranks are collected over a network. */

import { PushSocket } from "../../../src/zmq/socket.ts";
import { sleep } from "../../support/wait.ts";
import type { Stage } from "../stage.ts";
import { underLock } from "./alpha.ts";
import { type FaultKind, killAndRestart, pick, stopAndContinue } from "./fault.ts";
import { hostileBytes } from "./hostile_bytes.ts";

const RANKS = 4;

async function allFollow(stage: Stage): Promise<void> {
  await stage.follows("beta", RANKS);
}

export const BETA_FAULTS: readonly FaultKind[] = [
  {
    name: "ZeroMQ writer killed",
    weight: 5,
    async run(stage, random) {
      await killAndRestart(stage, random, pick(random, stage.writersOf("beta")));
      await allFollow(stage);
    },
  },
  {
    name: "ZeroMQ writer stopped",
    weight: 2,
    async run(stage, random) {
      const name = pick(random, stage.writersOf("beta"));
      await stopAndContinue(stage, name, random.between(100, 2000));
      await allFollow(stage);
    },
  },
  {
    name: "collector killed",
    weight: 4,
    async run(stage, random) {
      await killAndRestart(stage, random, "beta-collector");
      await allFollow(stage);
    },
  },
  {
    name: "collector stopped",
    weight: 2,
    async run(stage, random) {
      await stopAndContinue(stage, "beta-collector", random.between(100, 2000));
      await allFollow(stage);
    },
  },
  {
    name: "network cut",
    weight: 3,
    whyNot: (stage) => stage.network.canCut ? null : "there is no cable",
    async run(stage, random) {
      await stage.network.setUp(false);
      await sleep(random.between(100, 2000));
      await stage.network.setUp(true);
      await allFollow(stage);
    },
  },
  {
    name: "network delayed by tc netem",
    weight: 2,
    whyNot: (stage) => stage.network.canDelay ? null : "the kernel has no netem",
    async run(stage, random) {
      await stage.network.delay(Math.round(random.between(5, 300)));
      await sleep(random.between(500, 2000));
      await stage.network.delay(0);
      await allFollow(stage);
    },
  },
  {
    name: "network delayed by a relay",
    weight: 3,
    async run(stage, random) {
      stage.relay.delayMs = random.between(5, 300);
      await sleep(random.between(500, 2000));
      stage.relay.delayMs = 0;
      await allFollow(stage);
    },
  },
  {
    name: "connections reset",
    weight: 2,
    async run(stage) {
      stage.relay.reset();
      await allFollow(stage);
    },
  },
  {
    name: "hostile messages",
    weight: 3,
    async run(stage, random) {
      {
        // From within the machine, past the relay's cable but through the relay.
        using push = new PushSocket(stage.relay.endpoint);
        for (let n = 0; n < 200; n++) {
          const slot = hostileBytes(random, new Uint8Array(16_384));
          push.send(slot.subarray(random.index(8)));
          if (n % 20 === 0) await sleep(2);
        }
        push.send(new Uint8Array(100_000).fill(0x80));
        await sleep(100);
      }
      await allFollow(stage);
    },
  },
  {
    name: "collector's path unlinked",
    weight: 2,
    async run(stage) {
      stage.beta.unlink();
      await allFollow(stage);
    },
  },
  {
    name: "collector's lock held",
    weight: 2,
    async run(stage, random) {
      const ms = random.between(50, 2000);
      await underLock(stage.beta, random.chance(0.6) ? "exclusive" : "shared", () => sleep(ms));
      await allFollow(stage);
    },
  },
];
