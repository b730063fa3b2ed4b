/** The numbers that the test run ends with. */

import assert from "node:assert/strict";
import { addCounts, countsOf, NOTHING, summaryLine } from "../run_counts.ts";

const ENDED: Deno.CommandStatus = { success: true, code: 0, signal: null };
const FAILED: Deno.CommandStatus = { success: false, code: 1, signal: null };
const KILLED: Deno.CommandStatus = { success: false, code: 137, signal: "SIGKILL" };

Deno.test("tests are counted, steps are not", () => {
  const output = "FAILED | 2 passed (2 steps) | 3 failed (1 step) | 1 ignored (1 step) (73ms)\n";
  assert.deepEqual(countsOf(output, FAILED), { passed: 2, failed: 3, skipped: 1, problems: [] });
});

Deno.test("colours do not hide the summary", () => {
  const output = "\x1b[0m\x1b[32mok\x1b[0m | 2 passed | 0 failed | 4 filtered out (7ms)\n\n";
  assert.deepEqual(countsOf(output, ENDED), { ...NOTHING, passed: 2 });
});

Deno.test("the last summary counts: a test may print one of its own", () => {
  const output =
    "ok | 9 passed | 0 failed (1ms)\nmine ... ok (2ms)\nok | 1 passed | 0 failed (3ms)";
  assert.deepEqual(countsOf(output, ENDED), { ...NOTHING, passed: 1 });
});

Deno.test("a run without a summary is one failure", () => {
  const counts = countsOf("fine ... ok (1ms)\ndies ...", KILLED);
  assert.deepEqual(counts, {
    ...NOTHING,
    failed: 1,
    problems: ["deno test ended by SIGKILL without a summary, so nothing in it counts"],
  });
});

Deno.test("a run that fails with every test passed is one failure", () => {
  const counts = countsOf("ok | 3 passed | 0 failed (1ms)", FAILED);
  assert.deepEqual(counts, {
    passed: 3,
    failed: 1,
    skipped: 0,
    problems: ["deno test ended with exit code 1 after its summary"],
  });
});

Deno.test("runs add up, and only skipped tests are told besides", () => {
  const one = { ...NOTHING, passed: 2 };
  assert.equal(summaryLine(addCounts(one, one)), "4 passed, 0 failed");
  assert.equal(
    summaryLine(addCounts(one, { ...one, skipped: 1 })),
    "4 passed, 0 failed, 1 skipped",
  );
});
