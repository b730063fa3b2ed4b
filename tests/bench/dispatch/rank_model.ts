/**
 * One data-parallel rank as a model: a loop that takes in requests, prefills them in batches and
 * decodes them step by step, within the most that may run and a token pool.
 *
 * The speeds are those of the embedded engine of examples/engine/. As in SGLang's scheduler, a
 * prefill that fits goes before decoding, and what arrives while a batch runs is taken in after it.
 * Load is published at the end of each prefill batch, every 15 decode steps, and all the time while
 * the rank is idle. A request is let in when its whole sequence fits the pool, so none is retracted.
 */

import { createLoadSnapshot, type LoadSnapshot } from "../../../src/snapshot/load_snapshot.ts";
import type { EventQueue } from "./event_queue.ts";

/** Sizes of a rank. */
export const RANK_LIMITS = {
  maxRunning: 96,
  poolTokens: 262_144,
  chunkTokens: 8_192,
  publishInterval: 15,
  /** An idle rank publishes this often, in ms. */
  idlePublishMs: 1,
  /** From router to rank, in ms. */
  transitMs: 1,
} as const;

/** A request on its way through the simulation. */
export interface SimRequest {
  readonly arrivedMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly router: number;
  dpRank: number;
  ticket: number;
  /** Prompt tokens that are not prefilled yet. */
  remaining: number;
  /** When its prefill began; NaN before. */
  startedMs: number;
  /** The decode step with which it is complete. */
  lastStep: number;
}

/** Who is told what happens to requests. */
export interface RankListener {
  onStart(request: SimRequest): void;
  onComplete(request: SimRequest): void;
}

interface Publication {
  readonly atMs: number;
  readonly load: LoadSnapshot;
  /** Until then the same is said again and again, with the time of the saying. */
  idleUntilMs: number;
}

/** The model. */
export class RankModel {
  readonly dpRank: number;
  isAlive = true;
  readonly #events: EventQueue;
  readonly #listener: RankListener;
  readonly #slowness: number;
  readonly #unixMs: number;
  #onTheWay: SimRequest[] = [];
  #inbox: SimRequest[] = [];
  #waiting: SimRequest[] = [];
  /** A heap by their last step. */
  #running: SimRequest[] = [];
  #prefilling: SimRequest[] = [];
  /** Tokens of whole sequences that were let in. */
  #reserved = 0;
  /** Tokens in the pool. */
  #used = 0;
  #step = 0;
  #stepsSincePublication = 0;
  #batchEndsMs = 0;
  #isBusy = false;
  #prefilledTokens = 0;
  #busyUs = 0;
  #publications: Publication[] = [];
  #life = 0;

  constructor(
    dpRank: number,
    events: EventQueue,
    listener: RankListener,
    options: { readonly slowness: number; readonly unixMs: number },
  ) {
    this.dpRank = dpRank;
    this.#events = events;
    this.#listener = listener;
    this.#slowness = options.slowness;
    this.#unixMs = options.unixMs;
    this.#publish();
  }

  /** Requests that it has in any state. */
  get requests(): number {
    return this.#onTheWay.length + this.#inbox.length + this.#waiting.length +
      this.#running.length +
      this.#prefilling.length;
  }

  /** How full it is: the shares of its places and of its pool. */
  fill(): number {
    return this.requests / RANK_LIMITS.maxRunning + this.#reserved / RANK_LIMITS.poolTokens;
  }

  /** Sends it a request, which takes a moment; one for a dead rank is lost. */
  send(request: SimRequest): void {
    if (!this.isAlive) return;
    const life = this.#life;
    this.#onTheWay.push(request);
    this.#events.at(this.#events.nowMs + RANK_LIMITS.transitMs, () => {
      if (life !== this.#life) return;
      this.#inbox.push(this.#onTheWay.shift()!);
      if (!this.#isBusy) this.#turn();
    });
  }

  /** Dies: what it had is lost, and what it said stays. */
  die(): void {
    this.isAlive = false;
    this.#life++;
    this.#isBusy = false;
    this.#endIdling();
  }

  /** Comes back, empty. */
  restart(): void {
    this.isAlive = true;
    this.#onTheWay = [];
    this.#inbox = [];
    this.#waiting = [];
    this.#running = [];
    this.#prefilling = [];
    this.#reserved =
      this.#used =
      this.#step =
      this.#prefilledTokens =
      this.#busyUs =
        0;
    this.#publish();
  }

  /** The load that had been published by a time, as of now; `null` if none had. */
  publishedBy(atMs: number): LoadSnapshot | null {
    const list = this.#publications;
    // Nobody asks for earlier times than before.
    while (list.length > 1 && list[1]!.atMs <= atMs) list.shift();
    const newest = list[0];
    if (newest === undefined || newest.atMs > atMs) return null;
    const step = RANK_LIMITS.idlePublishMs;
    const idleMs = Math.floor((Math.min(atMs, newest.idleUntilMs) - newest.atMs) / step) * step;
    if (idleMs <= 0) return newest.load;
    return { ...newest.load, timestamp: (this.#unixMs + newest.atMs + idleMs) / 1000 };
  }

  /** What a request that came now would wait for its prefill, all things known. */
  trueWaitMs(promptTokens: number, outputTokens: number): number {
    const now = this.#events.nowMs;
    let waitMs = this.#isBusy ? Math.max(0, this.#batchEndsMs - now) : 0;
    let queued = 0;
    let tokens = promptTokens + outputTokens;
    let ahead = 0;
    for (const list of [this.#waiting, this.#inbox, this.#onTheWay]) {
      for (const request of list) {
        queued += request.remaining;
        tokens += request.promptTokens + request.outputTokens;
        ahead++;
      }
    }
    if (queued > 0) waitMs += this.#batchMs(queued);
    // A place, and room in the pool, come free as those who run complete.
    const places = this.#running.length + this.#prefilling.length + ahead + 1 -
      RANK_LIMITS.maxRunning;
    const room = this.#reserved + tokens - RANK_LIMITS.poolTokens;
    if (places > 0 || room > 0) waitMs = Math.max(waitMs, this.#untilFree(places, room));
    return waitMs;
  }

  /** The prefill of one prompt by itself, in ms. */
  prefillMs(promptTokens: number): number {
    return promptTokens / 30 * this.#slowness;
  }

  /** When so many places and so much room come free, by what those who run still have to say. */
  #untilFree(places: number, room: number): number {
    const stepMs = this.#decodeMs();
    let freed = 0;
    let last = this.#step;
    for (const request of this.#running.toSorted((a, b) => a.lastStep - b.lastStep)) {
      if (places <= 0 && freed >= room) break;
      places--;
      freed += request.promptTokens + request.outputTokens;
      last = request.lastStep;
    }
    return (last - this.#step) * stepMs;
  }

  #turn(): void {
    for (const request of this.#inbox) this.#waiting.push(request);
    this.#inbox.length = 0;
    const tokens = this.#planPrefill();
    const durationMs = tokens > 0
      ? this.#batchMs(tokens)
      : this.#running.length > 0
      ? this.#decodeMs()
      : 0;
    if (durationMs === 0) {
      this.#isBusy = false;
      this.#publish();
      return;
    }
    this.#isBusy = true;
    this.#endIdling();
    this.#batchEndsMs = this.#events.nowMs + durationMs;
    const life = this.#life;
    this.#events.at(this.#batchEndsMs, () => {
      if (life !== this.#life) return;
      if (tokens > 0) this.#endPrefill(tokens, durationMs);
      else this.#endDecode();
      this.#turn();
    });
  }

  /** Fills a batch with prompts, in their order; returns its tokens. */
  #planPrefill(): number {
    let budget: number = RANK_LIMITS.chunkTokens;
    let taken = 0;
    for (const request of this.#waiting) {
      if (budget === 0) break;
      if (Number.isNaN(request.startedMs)) {
        const whole = request.promptTokens + request.outputTokens;
        const places = this.#running.length + this.#prefilling.length;
        const fits = this.#reserved + whole <= RANK_LIMITS.poolTokens &&
          places + 1 <= RANK_LIMITS.maxRunning;
        if (!fits) break;
        this.#reserved += whole;
        request.startedMs = this.#events.nowMs;
        this.#listener.onStart(request);
      }
      const tokens = Math.min(budget, request.remaining);
      budget -= tokens;
      request.remaining -= tokens;
      this.#used += tokens;
      if (request.remaining > 0) break;
      this.#prefilling.push(request);
      taken++;
    }
    this.#waiting.splice(0, taken);
    return RANK_LIMITS.chunkTokens - budget;
  }

  #endPrefill(tokens: number, durationMs: number): void {
    this.#prefilledTokens += tokens;
    this.#busyUs += Math.round(durationMs * 1000);
    for (const request of this.#prefilling) {
      request.lastStep = this.#step + request.outputTokens;
      this.#used++;
      pushByLastStep(this.#running, request);
    }
    this.#prefilling = [];
    this.#publish(false);
  }

  #endDecode(): void {
    this.#step++;
    this.#used += this.#running.length;
    while (this.#running.length > 0 && this.#running[0]!.lastStep <= this.#step) {
      const request = popFirst(this.#running);
      const whole = request.promptTokens + request.outputTokens;
      this.#reserved -= whole;
      this.#used -= whole + 1;
      this.#listener.onComplete(request);
    }
    if (++this.#stepsSincePublication >= RANK_LIMITS.publishInterval) this.#publish(false);
  }

  #batchMs(tokens: number): number {
    return (7 + tokens / 30) * this.#slowness;
  }

  #decodeMs(): number {
    return (9 + this.#running.length * 0.16 + this.#used * 6e-5) * this.#slowness;
  }

  #endIdling(): void {
    const last = this.#publications.at(-1)!;
    last.idleUntilMs = Math.min(last.idleUntilMs, this.#events.nowMs);
  }

  /** Publishes what stands now; an idle rank goes on with that. */
  #publish(isIdle = true): void {
    this.#stepsSincePublication = 0;
    let pending = 0;
    for (const request of this.#waiting) pending += request.remaining;
    const atMs = this.#events.nowMs;
    const load = createLoadSnapshot({
      timestamp: (this.#unixMs + atMs) / 1000,
      dpRank: this.dpRank,
      numRunningReqs: this.#running.length,
      numWaitingReqs: this.#waiting.length,
      numWaitingUncachedTokens: pending,
      numUsedTokens: this.#used,
      numTotalTokens: this.#used + pending,
      maxTotalNumTokens: RANK_LIMITS.poolTokens,
      maxRunningRequests: RANK_LIMITS.maxRunning,
      totalPrefillUncachedTokens: this.#prefilledTokens,
      totalPrefillBusyUs: this.#busyUs,
    });
    this.#publications.push({ atMs, load, idleUntilMs: isIdle ? Infinity : atMs });
  }
}

function pushByLastStep(heap: SimRequest[], request: SimRequest): void {
  let at = heap.length;
  heap.push(request);
  while (at > 0) {
    const above = (at - 1) >> 1;
    if (heap[above]!.lastStep <= request.lastStep) break;
    heap[at] = heap[above]!;
    at = above;
  }
  heap[at] = request;
}

function popFirst(heap: SimRequest[]): SimRequest {
  const first = heap[0]!;
  const last = heap.pop()!;
  if (heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    if (below >= heap.length) break;
    if (below + 1 < heap.length && heap[below + 1]!.lastStep < heap[below]!.lastStep) below++;
    if (heap[below]!.lastStep >= last.lastStep) break;
    heap[at] = heap[below]!;
    at = below;
  }
  heap[at] = last;
  return first;
}
