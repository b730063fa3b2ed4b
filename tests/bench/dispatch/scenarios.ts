/** What is simulated: the loads, the delays, the faults and the routers, each with several seeds. */

import type { Bursts } from "./arrivals.ts";
import { POLICIES, type PolicyMaker } from "./policies.ts";
import { type Outcome, percentile, type Scenario, simulate } from "./simulation.ts";

/** A scenario without its seed. */
export type Case = Omit<Scenario, "seed">;

/** Three in five requests come in bursts of six per rank. */
const BURSTS: Bursts = { share: 0.6, perRank: 6, lengthMs: 200 };

/** The seeds that are run and counted together. */
export const SEEDS = [1, 2, 3, 4] as const;

/** The publication delays, in ms. */
export const DELAYS_MS = [0, 20, 50, 100, 200, 500] as const;

/** How many routers choose at once, not seeing each other. */
export const ROUTERS = [1, 2, 4, 8] as const;

const BASE = {
  seconds: 60,
  ranks: 8,
  routers: 1,
  perRank: 5,
  bursts: BURSTS as Bursts | null,
  delayMs: 100,
} as const;

/** Bursts on eight ranks with one router, by publication delay. */
export const BY_DELAY: readonly Case[] = DELAYS_MS.map((delayMs) => ({
  ...BASE,
  name: `8 ranks, bursts of 200 ms, delay ${delayMs} ms`,
  delayMs,
}));

/** Shorter and longer bursts, and other groups. */
export const BY_LOAD: readonly Case[] = [
  ...[20, 200].map((delayMs) => ({
    ...BASE,
    name: `8 ranks, bursts of 50 ms, delay ${delayMs} ms`,
    bursts: { ...BURSTS, lengthMs: 50 },
    delayMs,
  })),
  ...[20, 200].map((delayMs) => ({
    ...BASE,
    name: `8 ranks, bursts of 600 ms, delay ${delayMs} ms`,
    bursts: { ...BURSTS, lengthMs: 600 },
    delayMs,
  })),
  { ...BASE, name: "2 ranks, bursts of 200 ms, delay 100 ms", ranks: 2 },
  { ...BASE, name: "64 ranks, bursts of 200 ms, delay 100 ms", ranks: 64, seconds: 20 },
  { ...BASE, name: "8 ranks, steady, delay 100 ms", bursts: null },
];

/** Blind routers. */
export const BY_ROUTERS: readonly Case[] = [
  ...ROUTERS.filter((routers) => routers > 1).map((routers) => ({
    ...BASE,
    name: `8 ranks, bursts of 200 ms, delay 100 ms, ${routers} routers`,
    routers,
  })),
  { ...BASE, name: "8 ranks, bursts of 200 ms, delay 500 ms, 8 routers", routers: 8, delayMs: 500 },
  { ...BASE, name: "8 ranks, steady, delay 100 ms, 8 routers", routers: 8, bursts: null },
  {
    ...BASE,
    name: "64 ranks, bursts of 200 ms, delay 100 ms, 8 routers",
    ranks: 64,
    routers: 8,
    seconds: 20,
  },
];

/** Ranks with faults. */
export const BY_FAULT: readonly Case[] = [
  { ...BASE, name: "8 ranks, bursts of 200 ms, one 3 times as slow", slowness: 3 },
  {
    ...BASE,
    name: "8 ranks, bursts of 200 ms, one dies for 20 s",
    death: { atMs: 15_000, backMs: 35_000 },
  },
  {
    ...BASE,
    name: "8 ranks, steady and light, one dies for 20 s",
    bursts: null,
    perRank: 1,
    death: { atMs: 15_000, backMs: 35_000 },
  },
];

/** Runs a case with all its seeds; the times are counted together. */
export function runCase(which: Case, make: PolicyMaker, seeds: readonly number[] = SEEDS): Outcome {
  const outcomes = seeds.map((seed) => simulate({ ...which, seed }, make));
  const sum = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const times = new Float64Array(sum(({ queueingMs }) => queueingMs.length));
  let at = 0;
  for (const { queueingMs } of outcomes) {
    times.set(queueingMs, at);
    at += queueingMs.length;
  }
  return {
    queueingMs: times.sort(),
    imbalance: sum(({ imbalance }) => imbalance) / outcomes.length,
    deadBefore: sum(({ deadBefore }) => deadBefore),
    deadAfter: sum(({ deadAfter }) => deadAfter),
    lost: sum(({ lost }) => lost),
    leastShare: Math.min(...outcomes.map(({ leastShare }) => leastShare)),
  };
}

/** The 99th percentile of the queueing time, in ms, by name of the policy. */
export function p99Of(which: Case, name: keyof typeof POLICIES, seeds?: readonly number[]): number {
  return percentile(runCase(which, POLICIES[name], seeds).queueingMs, 0.99);
}
