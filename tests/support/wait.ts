/** Waiting in tests: for a condition, with a limit that only a hang reaches. */

/** Longest that anything is waited for; generous, as it is no assertion about speed. */
export const HANG_MS = 20_000;

/** Waits for some time. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Asks again and again, until the answer is true.
 *
 * @throws {Error} If that never comes; `what` says what was waited for.
 */
export async function until(what: string, isTrue: () => boolean, everyMs = 5): Promise<void> {
  const deadline = performance.now() + HANG_MS;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`Waited in vain until ${what}`);
    await sleep(everyMs);
  }
}
