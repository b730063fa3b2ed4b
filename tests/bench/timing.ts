/** Timing calls of JavaScript. The same is done in reference.py and limit.c. */

/** Makes calls; returns the nanoseconds that they took, without what was not to be timed. */
export type TimedCalls = (calls: number) => number;

/** Times calls that need nothing in between: the clock is read twice in all. */
export function backToBack(call: (step: number) => void): TimedCalls {
  let step = 0;
  return (calls) => {
    const begin = performance.now();
    for (let n = 0; n < calls; n++) call(step++);
    return (performance.now() - begin) * 1e6;
  };
}

/** Times each call by itself, and takes off what the clock costs: before each something is prepared. */
export function oneByOne(
  prepare: (step: number) => void,
  call: (step: number) => void,
): TimedCalls {
  const clockMs = clockCostMs();
  let step = 0;
  return (calls) => {
    let totalMs = 0;
    for (let n = 0; n < calls; n++) {
      prepare(step);
      const begin = performance.now();
      call(step);
      totalMs += performance.now() - begin;
      step++;
    }
    return (totalMs - calls * clockMs) * 1e6;
  };
}

/** What lies between two looks at the clock when nothing does: the median of many batches. */
function clockCostMs(): number {
  const costs = Array.from({ length: 301 }, () => {
    let totalMs = 0;
    for (let n = 0; n < 300; n++) {
      const begin = performance.now();
      totalMs += performance.now() - begin;
    }
    return totalMs / 300;
  });
  return costs.toSorted((a, b) => a - b)[150]!;
}

/**
 * Warms up until the compiler is done, and finds how many calls fill a round.
 *
 * @returns The calls of a round.
 */
export function warmUp(timed: TimedCalls, roundMs: number, warmMs: number): number {
  const end = performance.now() + warmMs;
  let calls = 16;
  let perCallMs = Infinity;
  while (performance.now() < end || calls * perCallMs < roundMs / 2) {
    const begin = performance.now();
    timed(calls);
    perCallMs = (performance.now() - begin) / calls;
    calls = Math.max(16, Math.ceil(Math.min(roundMs / perCallMs, calls * 2)));
  }
  return calls;
}
