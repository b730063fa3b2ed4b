/** A source that fails to look: its watchers are told, and nothing hangs. */

import assert from "node:assert/strict";
import { AdaptiveWait } from "../../src/watch/adaptive_wait.ts";
import { LoadWatch } from "../../src/watch/load_watch.ts";

Deno.test("a look that fails is told to all who wait, and the next call looks again", async () => {
  const between = new AdaptiveWait(5);
  let looks = 0;
  const watch = new LoadWatch({
    isOpen: true,
    look(newest) {
      newest[0] = null;
      if (++looks === 3) throw new TypeError("gone for now");
    },
    ageMs: () => null,
    wait: () => between.wait(),
    wake: () => between.wake(),
  });
  const one = watch.iterate({});
  const two = watch.iterate({});
  const waiting = [one.next(), two.next()];
  for (const next of waiting) await assert.rejects(next, { message: "gone for now" });
  const again = one.next();
  await one.return();
  assert.deepEqual(await again, { done: true, value: undefined });
  await two.return();
});
