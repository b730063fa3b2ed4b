/**
 * When an engine needs more workers, and when fewer: pure functions of what was seen.
 *
 * The thresholds are those of Dynamo's planner of 2025: it scaled up above 90 % of the KV cache or half
 * a waiting request per worker, and down below 50 % and a fifth, and decided every 30 seconds.
 */

/** What is known of one worker's load. */
export type WorkerLoad =
  | {
    readonly state: "live";
    /** Used share of the KV cache, 0..1. */
    readonly usage: number;
    /** Requests that wait. */
    readonly waiting: number;
  }
  /** It has not reported lately: it is idle, or it hangs. KvMetrics cannot tell which. */
  | { readonly state: "silent" }
  /** It never reported. */
  | { readonly state: "unreported" };

/** The mean load of the workers that were live. */
export interface MeanLoad {
  readonly usage: number;
  readonly waiting: number;
}

/** What was seen over one interval. */
export interface Interval {
  /** The end of it, in milliseconds on any clock. */
  readonly nowMs: number;
  /** `null` if no worker was live. */
  readonly load: MeanLoad | null;
  /** Whether every worker was live, or is known to be idle: only then may there be one too many. */
  readonly isComplete: boolean;
}

/** What the decision depends on. */
export interface PlannerRules {
  /** Above this share of the KV cache there are too few workers. */
  readonly usageUp: number;
  /** Below this one there may be too many. */
  readonly usageDown: number;
  /** Above so many waiting requests per worker there are too few. */
  readonly waitingUp: number;
  /** Below so many there may be too many. */
  readonly waitingDown: number;
  /** So many intervals in a row have to say "up" before the advice does. */
  readonly intervalsUp: number;
  /** So many have to say "down": taking a worker away is the dearer mistake. */
  readonly intervalsDown: number;
  /** After advice to change, so long nothing else is advised: a new worker has to load its weights. */
  readonly graceMs: number;
}

/** Thresholds of 2025. The rest is what keeps the advice from swinging. */
export const RULES_OF_2025: PlannerRules = {
  usageUp: 0.9,
  usageDown: 0.5,
  waitingUp: 0.5,
  waitingDown: 0.2,
  intervalsUp: 1,
  intervalsDown: 3,
  graceMs: 90_000,
};

/** What is remembered from one decision to the next. */
export interface PlannerState {
  /** Which way the last intervals pointed. */
  readonly leaning: Direction | "none";
  /** How many of them, in a row. */
  readonly intervals: number;
  /** Until when nothing is advised. */
  readonly graceUntilMs: number;
}

/** A change of the number of workers. */
export type Direction = "up" | "down";

/** What to do, and why. */
export interface Advice {
  readonly action: Direction | "hold";
  readonly reason: string;
}

/** The state before anything was seen. */
export const START: PlannerState = { leaning: "none", intervals: 0, graceUntilMs: -Infinity };

/**
 * Sums up what was seen of the workers in one interval.
 *
 * @param samples The workers' loads, at several moments of the interval.
 * @param nowMs The end of the interval.
 * @param options `silentIsIdle`: a worker that was heard before and is silent counts as idle.
 */
export function sumUp(
  samples: readonly (readonly WorkerLoad[])[],
  nowMs: number,
  options: { readonly silentIsIdle: boolean },
): Interval {
  let isComplete = samples.some((workers) => workers.length > 0);
  let count = 0;
  let usage = 0;
  let waiting = 0;
  for (const load of samples.flat()) {
    if (load.state === "live") {
      usage += load.usage;
      waiting += load.waiting;
      count++;
    } else if (load.state === "silent" && options.silentIsIdle) {
      count++;
    } else {
      isComplete = false;
    }
  }
  const load = count === 0 ? null : { usage: usage / count, waiting: waiting / count };
  return { nowMs, load, isComplete };
}

/**
 * Decides.
 *
 * @param state What the decision before left.
 * @param interval What was seen since.
 * @param rules The thresholds.
 * @returns The advice, and the state for the next decision.
 */
export function decide(
  state: PlannerState,
  interval: Interval,
  rules: PlannerRules = RULES_OF_2025,
): { readonly state: PlannerState; readonly advice: Advice } {
  const { direction, reason } = leaningOf(interval, rules);
  if (direction === "none") {
    const next = { ...state, leaning: direction, intervals: 0 };
    return { state: next, advice: { action: "hold", reason } };
  }
  const intervals = state.leaning === direction ? state.intervals + 1 : 1;
  const next = { ...state, leaning: direction, intervals };
  const needed = direction === "up" ? rules.intervalsUp : rules.intervalsDown;
  if (interval.nowMs < state.graceUntilMs) {
    const leftS = Math.ceil((state.graceUntilMs - interval.nowMs) / 1000);
    const text = `${reason}, but the last change has ${leftS} s more to show its effect`;
    return { state: next, advice: { action: "hold", reason: text } };
  }
  if (intervals < needed) {
    const text = `${reason}, in ${intervals} of ${needed} intervals`;
    return { state: next, advice: { action: "hold", reason: text } };
  }
  const graceUntilMs = interval.nowMs + rules.graceMs;
  return {
    state: { leaning: "none", intervals: 0, graceUntilMs },
    advice: { action: direction, reason },
  };
}

/** Which way one interval points. */
function leaningOf(
  { load, isComplete }: Interval,
  rules: PlannerRules,
): { readonly direction: Direction | "none"; readonly reason: string } {
  if (load === null) return { direction: "none", reason: "no worker reports" };
  const usage = `${(load.usage * 100).toFixed(0)} % of the KV cache is used`;
  const waiting = `${load.waiting.toFixed(1)} requests wait per worker`;
  if (load.usage > rules.usageUp) return { direction: "up", reason: usage };
  if (load.waiting > rules.waitingUp) return { direction: "up", reason: waiting };
  const isLow = load.usage < rules.usageDown && load.waiting < rules.waitingDown;
  const both = `${usage}, ${waiting}`;
  if (!isLow) return { direction: "none", reason: both };
  if (!isComplete) {
    return { direction: "none", reason: `${both}, but not every worker reports` };
  }
  return { direction: "down", reason: both };
}
