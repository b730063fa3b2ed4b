/** Who comes when, with how long a prompt: the same for everybody who is compared. */

import { Random } from "../../../examples/engine/random.ts";

/** One request that comes. */
export interface Arrival {
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** The router that it comes to. */
  readonly router: number;
}

/** How requests come. */
export interface ArrivalPlan {
  readonly seed: number;
  readonly seconds: number;
  readonly ranks: number;
  readonly routers: number;
  /** Requests per second and rank, on average. */
  readonly perRank: number;
  /** `null` for an even stream; else the share that comes in bursts, their size and length. */
  readonly bursts: Bursts | null;
}

/** Bursts beside an even stream. */
export interface Bursts {
  /** The share of all requests that comes in bursts. */
  readonly share: number;
  /** Mean requests of a burst, per rank. */
  readonly perRank: number;
  /** How long a burst lasts on average, in ms. */
  readonly lengthMs: number;
}

/** Makes the arrivals of a plan, in order of time. */
export function arrivalsOf(plan: ArrivalPlan): Arrival[] {
  const { seed, seconds, ranks, routers, perRank, bursts } = plan;
  const times = new Random(seed, 1);
  const sizes = new Random(seed, 2);
  const endMs = seconds * 1000;
  const atMs: number[] = [];
  const evenPerMs = perRank * ranks * (1 - (bursts?.share ?? 0)) / 1000;
  for (let ms = times.exponential(1 / evenPerMs); ms < endMs;) {
    atMs.push(ms);
    ms += times.exponential(1 / evenPerMs);
  }
  if (bursts !== null) {
    const size = bursts.perRank * ranks;
    const betweenMs = size / (perRank * ranks * bursts.share / 1000);
    for (let ms = times.exponential(betweenMs); ms < endMs; ms += times.exponential(betweenMs)) {
      const count = Math.max(1, Math.round(size * times.between(0.5, 1.5)));
      for (let n = 0, at = ms; n < count && at < endMs; n++) {
        atMs.push(at);
        at += times.exponential(bursts.lengthMs / size);
      }
    }
  }
  return atMs.sort((a, b) => a - b).map((ms) => ({
    atMs: ms,
    // Heavy tails: one prompt in a hundred has more than 7,700 tokens, thirteen times the median.
    promptTokens: clamp(sizes.logNormal(600, 1.1), 16, 32_768),
    outputTokens: clamp(sizes.logNormal(100, 0.8), 4, 2_048),
    router: sizes.index(routers),
  }));
}

function clamp(value: number, least: number, most: number): number {
  return Math.round(Math.min(Math.max(value, least), most));
}
