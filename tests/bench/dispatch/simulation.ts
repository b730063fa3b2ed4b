/** One run: a group of ranks, its routers, and what came of it. */

import { type Arrival, type ArrivalPlan, arrivalsOf } from "./arrivals.ts";
import { EventQueue } from "./event_queue.ts";
import type { Policy, PolicyMaker } from "./policies.ts";
import { RankModel, type SimRequest } from "./rank_model.ts";

/** What is simulated. */
export interface Scenario extends ArrivalPlan {
  readonly name: string;
  /** From a publication until routers can see it, in ms. */
  readonly delayMs: number;
  /** The last rank is so many times as slow as the others. */
  readonly slowness?: number;
  /** The first rank dies and comes back, in ms. */
  readonly death?: { readonly atMs: number; readonly backMs: number };
}

/** What came of it. */
export interface Outcome {
  /** From a request's arrival to the begin of its prefill, in ms; those that were lost have none. */
  readonly queueingMs: Float64Array;
  /** The mean over time of the fullest rank's requests beside the average rank's. */
  readonly imbalance: number;
  /** Requests sent to a dead rank while its last report was still young enough to be believed. */
  readonly deadBefore: number;
  /** Those sent later. */
  readonly deadAfter: number;
  /** Requests that died with their rank or were sent to a dead one. */
  readonly lost: number;
  /** What the rank that got the fewest requests got, beside an even share. */
  readonly leastShare: number;
}

/** A report is believed for so long, here. */
export const STALE_AFTER_MS = 2_000;

/** Virtual time begins here, in Unix ms: the timestamps look as they do in life. */
const UNIX_MS = 1_700_000_000_000;

const SAMPLE_MS = 50;

/** Time for what was sent last to be served, in ms. */
const DRAIN_MS = 120_000;

/** Runs a scenario with one policy. */
export function simulate(scenario: Scenario, make: PolicyMaker): Outcome {
  const { ranks, delayMs, death } = scenario;
  const events = new EventQueue();
  const policies: Policy[] = [];
  const started: number[] = [];
  const listener = {
    onStart: (request: SimRequest) => void started.push(request.startedMs - request.arrivedMs),
    onComplete: (request: SimRequest) => {
      events.at(events.nowMs + 1, () => policies[request.router]!.onComplete(request));
    },
  };
  const truth = Array.from({ length: ranks }, (_, dpRank) => {
    const slowness = dpRank === ranks - 1 ? scenario.slowness ?? 1 : 1;
    return new RankModel(dpRank, events, listener, { slowness, unixMs: UNIX_MS });
  });
  for (let router = 0; router < scenario.routers; router++) {
    policies.push(make({
      ranks,
      router,
      truth,
      seed: scenario.seed,
      staleAfterMs: STALE_AFTER_MS,
      unixMs: () => UNIX_MS + events.nowMs,
      readLoads: () => {
        const loads = truth.map((rank) => rank.publishedBy(events.nowMs - delayMs));
        return loads.filter((load) => load !== null);
      },
    }));
  }

  const sent = new Float64Array(ranks);
  let deadBefore = 0;
  let deadAfter = 0;
  const send = (arrival: Arrival): void => {
    const request: SimRequest = {
      arrivedMs: events.nowMs,
      promptTokens: arrival.promptTokens,
      outputTokens: arrival.outputTokens,
      router: arrival.router,
      dpRank: -1,
      ticket: 0,
      remaining: arrival.promptTokens,
      startedMs: NaN,
      lastStep: 0,
    };
    request.dpRank = policies[arrival.router]!.choose(request);
    const rank = truth[request.dpRank]!;
    sent[request.dpRank]! += 1;
    if (!rank.isAlive) {
      if (events.nowMs <= death!.atMs + STALE_AFTER_MS) deadBefore++;
      else deadAfter++;
    }
    rank.send(request);
  };
  // The first reports have to be there before the first request comes.
  const beginMs = delayMs + SAMPLE_MS;
  const arrivals = arrivalsOf(scenario);
  const endMs = beginMs + scenario.seconds * 1000;
  let next = 0;
  const arrive = (): void => {
    send(arrivals[next++]!);
    if (next < arrivals.length) events.at(beginMs + arrivals[next]!.atMs, arrive);
  };
  events.at(beginMs + arrivals[0]!.atMs, arrive);
  if (death !== undefined) {
    events.at(death.atMs, () => truth[0]!.die());
    events.at(death.backMs, () => truth[0]!.restart());
  }

  let samples = 0;
  let sumOfRatios = 0;
  const sample = (): void => {
    const counts = truth.filter((rank) => rank.isAlive).map((rank) => rank.requests);
    const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
    if (mean >= 1) {
      samples++;
      sumOfRatios += Math.max(...counts) / mean;
    }
    if (events.nowMs < endMs) events.at(events.nowMs + SAMPLE_MS, sample);
  };
  events.at(beginMs + SAMPLE_MS, sample);
  events.runUntil(endMs + DRAIN_MS);

  return {
    queueingMs: Float64Array.from(started).sort(),
    imbalance: sumOfRatios / samples,
    deadBefore,
    deadAfter,
    lost: arrivals.length - started.length,
    leastShare: Math.min(...sent) / (arrivals.length / ranks),
  };
}

/** The value below which a share of the sorted samples lies. */
export function percentile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
