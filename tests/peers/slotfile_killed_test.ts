/** Writers killed in the middle of their work: readers lose nothing, and the next writer goes on. */

import assert from "node:assert/strict";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { SLOT_SIZE } from "../../src/slotfile/layout.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { Child } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";
import { LoadCheck, MOMENTS, readHot } from "../support/checked_loads.ts";
import { PythonPeer } from "./peer.ts";
import { peerTests } from "./peer_tests.ts";

const WRITE_LOOP = new URL("./fixtures/write_loop.ts", import.meta.url).href;
const KILLS = 100;
const LONGEST_MS = 12;
/** So large that storing takes most of a writer's time: it will be killed right then. */
const LARGE_SLOT = 1024 * 1024;

/** A process that writes to rank 0 from `begin` on, until it is killed. */
interface Victim extends AsyncDisposable {
  readonly status: Promise<Deno.CommandStatus>;
  begin(): Promise<void>;
  kill(signal: "SIGKILL"): void;
}

async function pythonVictim(path: string): Promise<Victim> {
  const peer = await PythonPeer.start();
  return {
    status: peer.status,
    async begin() {
      const writer = await peer.openWriter(path, { dpSize: 2, dpRank: 0 });
      await writer.writeLoop(createLoadSnapshot(), { moments: MOMENTS });
    },
    kill: (signal) => peer.kill(signal),
    [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose](),
  };
}

async function denoVictim(path: string): Promise<Victim> {
  const child = Child.deno(["--allow-ffi", "--allow-read", WRITE_LOOP, path, "2", `${LARGE_SLOT}`]);
  assert.equal(await child.line(), "ready");
  return {
    status: child.status,
    async begin() {
      await child.say("go");
      assert.equal(await child.line(), "writing");
    },
    kill: (signal) => child.kill(signal),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** Kills one writer after the other under a hot reader; tells how often a write was cut in two. */
async function killAll(
  file: SlotPath,
  slotSize: number,
  start: (path: string) => Promise<Victim>,
): Promise<number> {
  using reader = new ShmLoadSnapshotReader(file.path);
  using beside = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1, slotSize });
  beside.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: 1 }));
  const check = new LoadCheck();
  let cut = 0;
  // The next one starts up while this one writes.
  let next = start(file.path);
  try {
    for (let kill = 1; kill <= KILLS; kill++) {
      await using victim = await next;
      if (kill < KILLS) next = start(file.path);
      await victim.begin();
      const seen = check.seen;
      let dead = false;
      const ended = victim.status.then(() => dead = true);
      setTimeout(() => victim.kill("SIGKILL"), Math.random() * LONGEST_MS);
      await readHot(() => check.take(reader.read(0)), () => dead);
      await ended;

      assert(file.isFree(), "the lock of a dead writer is free");
      const last = reader.read(0);
      check.take(last);
      assert.equal(reader.read(0), last);
      const isCut = new DataView(file.bytes().buffer).getUint32(12, true) === 0;
      if (isCut) cut++;
      assert(check.seen > seen || isCut, "the reader followed this writer");
      const [health, other] = reader.health();
      // The first writers may all have died before a step of theirs was whole.
      assert.equal(health?.state, check.step === 0 || check.step === null ? "unreported" : "live");
      assert.equal(other?.state, "live");
      beside.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: kill }));
      assert.equal(reader.read(1)?.numRunningReqs, kill);
    }
  } finally {
    await using _last = await next;
  }
  // Ours goes on where the last one was cut off.
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 0, slotSize });
  writer.write(createLoadSnapshot({ numRunningReqs: 5 }));
  assert.equal(reader.read(0)?.numRunningReqs, 5);
  assert.equal(reader.stats().attaches, 1);
  return cut;
}

const test = await peerTests();

test("a hundred killed writers of SGLang's cost a reader nothing", async (peer) => {
  using file = new SlotPath();
  await killAll(file, SLOT_SIZE, pythonVictim);
  const reader = await peer.openReader(file.path, { dpSize: 2 });
  const loads = await reader.readAll();
  assert.deepEqual(loads.map(({ snapshot }) => snapshot.numRunningReqs), [5, KILLS]);
});

Deno.test("a hundred killed writers of ours cost a reader nothing", async () => {
  using file = new SlotPath();
  const cut = await killAll(file, LARGE_SLOT, denoVictim);
  assert(cut > 0, "some were killed in the middle of a write");
});
