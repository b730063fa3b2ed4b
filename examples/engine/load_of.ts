/** The load that a simulated scheduler tells, value by value. */

import { createLoadSnapshot, type LoadSnapshot } from "../../mod.ts";
import { LIMITS, MEMORY } from "./limits.ts";
import { type Request, sequenceTokens, uncachedTokens } from "./request.ts";
import type { SimulatedScheduler } from "./scheduler.ts";

/**
 * Measures a scheduler.
 *
 * @param scheduler The rank to measure.
 * @param timestamp The Unix time of the measurement, in seconds.
 * @returns Its load as an engine with `--enable-metrics` would tell it.
 */
export function loadOf(scheduler: SimulatedScheduler, timestamp: number): LoadSnapshot {
  const { chunked, decode, grammar, lora, pool, prefill, running, waiting } = scheduler;
  const queued = [...waiting, ...grammar];
  const totalTokens = pool.used + sum(queued, sequenceTokens);
  const usage = pool.used / pool.size;
  const occupancy = Math.max(running.length / LIMITS.maxRunningRequests, usage);
  return createLoadSnapshot({
    timestamp,
    dpRank: scheduler.dpRank,
    numRunningReqs: running.length,
    numWaitingReqs: queued.length,
    numWaitingUncachedTokens: sum(queued, uncachedTokens) + (chunked ? uncachedTokens(chunked) : 0),
    numUsedTokens: pool.used,
    numTotalTokens: totalTokens,
    numActiveTokens: totalTokens, // all KV is here: nothing is disaggregated
    maxTotalNumTokens: pool.size,
    maxRunningRequests: LIMITS.maxRunningRequests,
    tokenUsage: round(usage, 4),
    genThroughput: round(decode.tokensPerSecond, 2),
    cacheHitRate: round(prefill.hitRate, 4),
    utilization: round(occupancy, 4),
    totalPrefillUncachedTokens: prefill.uncachedTokens,
    totalPrefillBusyUs: prefill.busyUs,
    decodeMoments: decode.moments,
    memory: { ...MEMORY, tokenCapacity: pool.size },
    speculative: decode.acceptLength === null
      ? null
      : { acceptLength: decode.acceptLength, acceptRate: decode.acceptRate },
    lora: {
      slotsUsed: lora.used,
      slotsTotal: lora.total,
      utilization: lora.used / lora.total,
    },
    disaggregation: { mode: "null" },
    queues: {
      waiting: waiting.length,
      grammar: grammar.length,
      paused: scheduler.paused ? running.length : 0,
      retracted: waiting.filter((request) => request.retracted).length,
    },
  });
}

function sum(requests: readonly Request[], tokens: (request: Request) => number): number {
  return requests.reduce((total, request) => total + tokens(request), 0);
}

function round(value: number, places: number): number {
  return Number(value.toFixed(places));
}
