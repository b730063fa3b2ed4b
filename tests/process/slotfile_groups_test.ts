/** The writers of a group that start, or write, at the same moment. */

import assert from "node:assert/strict";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { Child } from "../support/child.ts";
import { LoadCheck, readHot } from "../support/checked_loads.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";
import { SlotPath } from "../support/slot_path.ts";
import type { WorkerOrder } from "./fixtures/rank_worker.ts";

const RANK_WRITER = new URL("./fixtures/rank_writer.ts", import.meta.url).href;
const RANK_WORKER = new URL("./fixtures/rank_worker.ts", import.meta.url);
const DP_SIZE = 6;
const RANKS = Array.from({ length: DP_SIZE }, (_, dpRank) => dpRank);

Deno.test("writers that start at once make one file, whatever they find there", async () => {
  await using stack = new AsyncDisposableStack();
  const children = RANKS.map(() =>
    stack.use(Child.deno(["--allow-ffi", "--allow-read", RANK_WRITER]))
  );
  for (const child of children) assert.equal(await child.line(), "ready");
  const found = {
    "nothing": null,
    "an empty file": new Uint8Array(0),
    "another group": slotFileBytes({ slots: [loadSlot({ numRunningReqs: 99 })] }),
    "a broken file": slotFileBytes({ slots: RANKS.map(() => null) }).subarray(0, 5000).slice(),
    "their own file": slotFileBytes({ slots: RANKS.map((dpRank) => loadSlot({ dpRank })) }),
  };
  for (let step = 1; step <= 8; step++) {
    for (const [what, bytes] of Object.entries(found)) {
      using file = new SlotPath();
      if (bytes !== null) file.put(bytes);
      await Promise.all(
        children.map((child, dpRank) => child.say(`${file.path} ${DP_SIZE} ${dpRank} ${step}`)),
      );
      const answers = await Promise.all(children.map((child) => child.line()));
      assert.deepEqual(answers, RANKS.map(() => "done"), what);
      using after = new ShmLoadSnapshotReader(file.path, { dpSize: DP_SIZE });
      const steps = after.readAll().map(({ numRunningReqs }) => numRunningReqs);
      assert.deepEqual(steps, RANKS.map(() => step), what);
      assert.deepEqual(file.all(), [file.path], what);
      assert.equal(file.bytes().length, 12 + DP_SIZE * 16_384);
    }
  }
  for (const child of children) assert.equal((await child.end()).code, 0);
});

Deno.test("isolates of one process exclude each other, and read each other", async () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path, { dpSize: 2 });
  const steps = 20_000;
  const workers = [0, 1].map((dpRank) => {
    const worker = new Worker(RANK_WORKER, { type: "module" });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    worker.onmessage = (event: MessageEvent<string>) => resolve(event.data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
    worker.postMessage({ path: file.path, dpSize: 2, dpRank, steps } satisfies WorkerOrder);
    return promise;
  });
  let isDone = false;
  const done = Promise.all(workers).finally(() => isDone = true);
  const checks = [new LoadCheck(), new LoadCheck()];
  await readHot(() => {
    for (const load of reader.readAll()) checks[load.dpRank]!.take(load);
  }, () => isDone);
  assert.deepEqual(await done, ["done", "done"]);
  for (const dpRank of [0, 1]) {
    checks[dpRank]!.take(reader.read(dpRank));
    assert.equal(checks[dpRank]!.step, steps);
  }
  assert(file.isFree());
});
