/** What a watch says of a slot file: ranks, rate, and what is wrong in words. */

import assert from "node:assert/strict";
import { SimulatedEngine } from "../../examples/engine.ts";
import { explain, SlotWatch } from "../../examples/terminal/slot_view.ts";
import { SlotFileError, type SlotFileReason } from "../../mod.ts";

function uniquePath(): string {
  return `/dev/shm/loadslots_view_${crypto.randomUUID()}.shm`;
}

Deno.test("without a file there are no ranks, and the watch says why", () => {
  const path = uniquePath();
  using watch = new SlotWatch(path);
  watch.poll();
  assert.deepEqual(watch.view(), {
    path,
    rows: [],
    publicationsPerSecond: null,
    trouble: `No engine publishes at ${path}`,
  });
});

Deno.test("the ranks of a live engine are told without trouble", () => {
  const path = uniquePath();
  using engine = SimulatedEngine.publishingTo(path, { dpSize: 2 });
  engine.step(1_000);
  using watch = new SlotWatch(path);
  watch.poll();
  const { rows, trouble } = watch.view();
  assert.equal(trouble, null);
  assert.deepEqual(rows.map(({ dpRank, state, load }) => [dpRank, state, load?.dpRank]), [
    [0, "live", 0],
    [1, "live", 1],
  ]);
});

Deno.test("publications are counted from what is seen after the file was attached", async () => {
  const path = uniquePath();
  using engine = SimulatedEngine.publishingTo(path, { dpSize: 4, publishInterval: 1 });
  engine.step(10_000);
  using watch = new SlotWatch(path);
  watch.poll();
  assert.equal(watch.view().publicationsPerSecond, null);

  await new Promise((resolve) => setTimeout(resolve, 300));
  watch.poll();
  assert.equal(watch.view().publicationsPerSecond, 0);

  engine.step(1_000);
  watch.poll();
  // One of each rank at most: the others were overwritten before anybody looked.
  const rate = watch.view().publicationsPerSecond;
  assert.ok(rate !== null && rate > 0 && rate < 4 / 0.3);
});

Deno.test("an engine of the past is told as silent", () => {
  const path = uniquePath();
  using engine = SimulatedEngine.publishingTo(path, { dpSize: 2, startMs: Date.now() - 90_000 });
  engine.step(5_000);
  using watch = new SlotWatch(path);
  watch.poll();
  const { rows, trouble } = watch.view();
  assert.ok(rows.every(({ state }) => state === "stale"));
  assert.match(trouble!, /^The engine is gone or hangs: nothing was published for 8\ds$/);
});

Deno.test("the last values stay when the file is gone", async () => {
  const path = uniquePath();
  const engine = SimulatedEngine.publishingTo(path, { dpSize: 2 });
  engine.step(1_000);
  using watch = new SlotWatch(path);
  watch.poll();
  engine.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  watch.poll();
  const { rows, trouble } = watch.view();
  assert.ok(rows.length === 2 && rows.every(({ load }) => load !== null));
  assert.equal(
    trouble,
    `The engine is gone or restarts; these are its last values. No engine publishes at ${path}`,
  );
});

Deno.test("each reason has words that name the path", () => {
  const reasons: readonly SlotFileReason[] = [
    "absent",
    "unfinished",
    "permission",
    "foreign-owner",
    "magic",
    "truncated",
  ];
  const path = "/dev/shm/x.shm";
  const words = reasons.map((reason) =>
    explain(new SlotFileError(reason, path, `Cannot use ${path}: ${reason}`))
  );
  assert.ok(words.every((text) => text.includes(path)));
  assert.equal(new Set(words).size, reasons.length);
});
