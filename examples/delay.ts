/** Waiting that can be called off. */

/**
 * @param ms How long to wait.
 * @param signal Ends the wait early.
 * @returns When the time is over or the signal is aborted. It never rejects.
 */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener("abort", finish);
  });
}
