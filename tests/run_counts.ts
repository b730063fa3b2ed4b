/** How many tests passed: read from what `deno test` prints at its end. */

/** What became of the tests of one run, or of several. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** What the numbers do not tell by themselves. */
  readonly problems: readonly string[];
}

/** No tests at all. */
export const NOTHING: Counts = { passed: 0, failed: 0, skipped: 0, problems: [] };

/** Steps stand in parentheses; they are parts of a test, not tests. */
const SUMMARY =
  /^(?:ok|FAILED) \| (\d+) passed(?: \([^)]*\))? \| (\d+) failed(?: \([^)]*\))?(?: \| (\d+) ignored)?/;

// deno-lint-ignore no-control-regex -- colours start with a control character
const COLOUR = /\x1b\[[0-9;]*m/g;

/**
 * Reads the numbers of one run.
 *
 * A run that failed without a failed test (it did not compile, or was killed) counts as one failure,
 * so that no sum can hide it.
 *
 * @param output What `deno test` printed.
 * @param status How it ended.
 * @returns The numbers.
 */
export function countsOf(output: string, status: Deno.CommandStatus): Counts {
  const summary = output.replaceAll(COLOUR, "").split("\n")
    .findLast((line) => SUMMARY.test(line))
    ?.match(SUMMARY);
  const [passed, failed, skipped] = [1, 2, 3].map((group) => Number(summary?.[group] ?? 0));
  const counts = { passed: passed ?? 0, failed: failed ?? 0, skipped: skipped ?? 0 };
  if (status.success || counts.failed > 0) return { ...counts, problems: [] };
  const end = status.signal === null ? `with exit code ${status.code}` : `by ${status.signal}`;
  const told = summary ? "after its summary" : "without a summary, so nothing in it counts";
  return { ...counts, failed: 1, problems: [`deno test ended ${end} ${told}`] };
}

/** Adds up two runs. */
export function addCounts(a: Counts, b: Counts): Counts {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
    problems: [...a.problems, ...b.problems],
  };
}

/** The last line of a test run. */
export function summaryLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed` + (skipped > 0 ? `, ${skipped} skipped` : "");
}
