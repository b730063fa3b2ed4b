// deno-lint-ignore-file no-console -- the figures are printed
/** A receiver in a flood, good and hostile: memory stays flat, each refusal is counted by its kind. */

import assert from "node:assert/strict";
import { KvMetricsReceiver } from "../../src/kv_metrics/receiver.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Child } from "../support/child.ts";
import { messageOf } from "../support/kv_receiver.ts";
import { residentBytes } from "../support/own_resources.ts";
import { matches } from "../support/raw_libc.ts";
import { HANG_MS, sleep, until } from "../support/wait.ts";
import { hostileMessages, TRACE } from "./fixtures/kv_hostile.ts";

const FLOOD = new URL("./fixtures/kv_flood.ts", import.meta.url).href;
const LOOPBACK = "tcp://127.0.0.1:*";

function flood(endpoint: string, kind: "good" | "hostile"): Child {
  return Child.deno(["--allow-ffi", "--allow-read", FLOOD, endpoint, kind]);
}

/** Waits for messages, far longer than they should take. */
async function received(receiver: KvMetricsReceiver, count: number): Promise<void> {
  const deadline = performance.now() + 3 * HANG_MS;
  while (receiver.stats().received < count) {
    assert(performance.now() < deadline, `only ${receiver.stats().received} of ${count} came`);
    await sleep(20);
  }
}

for (const taker of ["nobody", "a slow loop"] as const) {
  Deno.test(`memory stays flat in a flood of which ${taker} takes messages`, async () => {
    await using receiver = await KvMetricsReceiver.open(LOOPBACK, { dpSize: 8 });
    await using _flood = flood(receiver.endpoint, "good");
    let taken = 0;
    let last = 0;
    const loop = taker === "nobody" ? null : (async () => {
      for await (const { sequence } of receiver) {
        assert(sequence > last);
        last = sequence;
        taken++;
        await sleep(5);
      }
    })();
    await received(receiver, 500_000);
    const early = residentBytes();
    await received(receiver, 2_000_000);
    const grown = residentBytes() - early;
    const { accepted, overtaken } = receiver.stats();
    console.log(`${taker}: ${(grown / 1e6).toFixed(1)} MB more after 1,500,000 messages`);
    assert(grown < 30_000_000, `${grown}`);
    assert(overtaken > 1_000_000 && overtaken < accepted);
    assert.deepEqual(receiver.health().map(({ state }) => state), Array(8).fill("live"));
    await receiver.close();
    await loop;
    if (loop !== null) assert(taken > 0 && last > taken);
  });
}

Deno.test("hostile messages among good ones are counted by kind, and nothing of them is executed", async () => {
  await using receiver = await KvMetricsReceiver.open(LOOPBACK, { dpSize: 9 });
  {
    await using _flood = flood(receiver.endpoint, "hostile");
    await received(receiver, 200_000);
  }
  const sumOf = (refused: Readonly<Record<string, number>>) =>
    Object.values(refused).reduce((sum, count) => sum + count, 0);
  // A message is counted when it comes, and again when it is known what it is.
  await until("all that came is told apart", () => {
    const { received, accepted, refused } = receiver.stats();
    return accepted + sumOf(refused) === received;
  });
  const { refused } = receiver.stats();
  const kinds = [...hostileMessages().keys()];
  const counted = Object.entries(refused).filter(([, count]) => count > 0).map(([kind]) => kind);
  assert.deepEqual(counted.sort(), kinds.toSorted());
  // They were sent in turn.
  const counts = kinds.map((kind) => refused[kind]);
  assert(Math.max(...counts) - Math.min(...counts) <= 1, `${counts}`);
  assert.deepEqual(matches(TRACE), []);
  using push = new PushSocket(receiver.endpoint);
  push.send(messageOf(8, 7));
  while (receiver.latest(8) === null) await sleep(5);
});
