/** A request on its way through one scheduler. */

import type { Arrival } from "./workload.ts";

/** Is told how many answer tokens are new. */
export type TokenListener = (tokens: number) => void;

/** What the scheduler knows of a request that it has taken in. */
export interface Request {
  readonly arrival: Arrival;
  /** When its grammar is ready. */
  readonly readyMs: number;
  /** Answer tokens so far. They stay when the request is retracted. */
  generatedTokens: number;
  /** How much of its sequence the prefix cache is known to hold while it waits. */
  cachedTokens: number;
  /** Tokens that it holds in the KV pool; 0 while it waits. */
  heldTokens: number;
  /** Whether it waits because the pool was full, not because it is new. */
  retracted: boolean;
  /** Whether nobody wants the answer any more; it leaves when the loop turns next. */
  aborted: boolean;
  /** Who gets the answer, if anybody does. */
  readonly onTokens: TokenListener | null;
}

/** @returns The request that an arrival becomes. */
export function requestFor(arrival: Arrival, onTokens: TokenListener | null = null): Request {
  return {
    arrival,
    readyMs: arrival.atMs + arrival.grammarMs,
    generatedTokens: 0,
    cachedTokens: arrival.cachedTokens,
    heldTokens: 0,
    retracted: false,
    aborted: false,
    onTokens,
  };
}

/** @returns The tokens that have to be in the pool before the request can decode. */
export function sequenceTokens(request: Request): number {
  return request.arrival.promptTokens + request.generatedTokens;
}

/** @returns The tokens of the request's sequence that still have to be prefilled. */
export function uncachedTokens(request: Request): number {
  return sequenceTokens(request) - Math.max(request.cachedTokens, request.heldTokens);
}

/** @returns Whether the answer is complete, or given up. */
export function isFinished(request: Request): boolean {
  return request.aborted || request.generatedTokens === request.arrival.outputTokens;
}

/** @returns Which request loses least when it has to start over: fewest answer tokens, longest prompt. */
export function cheapestToRetract(running: readonly Request[]): Request | undefined {
  return running.toSorted((a, b) =>
    a.generatedTokens - b.generatedTokens || b.arrival.promptTokens - a.arrival.promptTokens
  )[0];
}
