/**
 * One simulated scheduler: requests arrive, wait, are prefilled in chunks and decoded step by step,
 * in a KV pool that can run full.
 *
 * It works from event to event on a clock of its own, so what happens depends on the seed alone and
 * not on how the time is cut into calls.
 */

import type { LoadSnapshot } from "../../mod.ts";
import { Accelerator } from "./accelerator.ts";
import { KvPool } from "./kv_pool.ts";
import { LIMITS, QUIET } from "./limits.ts";
import { loadOf } from "./load_of.ts";
import { LoraSlots } from "./lora_slots.ts";
import { DecodeMeter, PrefillMeter } from "./meters.ts";
import { Random } from "./random.ts";
import * as requests from "./request.ts";
import type { Request, TokenListener } from "./request.ts";
import { type Arrival, type Arrivals, Workload } from "./workload.ts";

/** Where a scheduler tells its load: a writer of shared memory or ZeroMQ, or a test's list. */
export interface SnapshotPublisher {
  publish(make: () => LoadSnapshot, options?: { readonly force?: boolean }): unknown;
}

/** What a {@linkcode SimulatedScheduler} needs to know. */
export interface SchedulerOptions {
  readonly dpRank: number;
  readonly seed: number;
  readonly publisher: SnapshotPublisher;
  /** The Unix time in seconds of a moment on the scheduler's clock. */
  readonly unixTime: (clockMs: number) => number;
  /**
   * The requests that come by themselves.
   * @default {a seeded `Workload`}
   */
  readonly arrivals?: Arrivals | undefined;
}

interface PrefillBatch {
  readonly kind: "prefill";
  readonly durationMs: number;
  /** Those whose prompt is complete with this batch. */
  readonly complete: readonly Request[];
  readonly cachedTokens: number;
  readonly uncachedTokens: number;
}

interface DecodeBatch {
  readonly kind: "decode";
  readonly durationMs: number;
}

/** One data-parallel rank of the engine. */
export class SimulatedScheduler {
  readonly dpRank: number;
  readonly pool = new KvPool(LIMITS.maxTotalTokens);
  readonly lora = new LoraSlots(LIMITS.loraSlots);
  readonly prefill = new PrefillMeter();
  readonly decode = new DecodeMeter();
  readonly #options: SchedulerOptions;
  readonly #arrivals: Arrivals;
  readonly #random: Random;
  readonly #accelerator: Accelerator;

  #grammar: Request[] = [];
  #waiting: Request[] = [];
  #running: Request[] = [];
  #chunked: Request | null = null;

  #clockMs = 0;
  /** When the loop turns next: the batch ends, or sleep does. */
  #wakeMs = 0;
  #batch: PrefillBatch | DecodeBatch | null = null;
  #decodeStepsSincePrefill = 0;
  /** How much of a usual answer is kept free per running request; a full pool raises it. */
  #reserveRatio = 0.5;
  #pauseMs = { start: 0, end: 0 };
  #resting = false;
  #restPublishedMs = -Infinity;

  constructor(options: SchedulerOptions) {
    this.dpRank = options.dpRank;
    this.#options = options;
    this.#arrivals = options.arrivals ?? new Workload(options.seed, options.dpRank);
    this.#random = new Random(options.seed, options.dpRank * 4 + 3);
    this.#accelerator = new Accelerator(this.#random);
    this.#planPause();
  }

  /** Requests that wait for their grammar. */
  get grammar(): readonly Request[] {
    return this.#grammar;
  }

  /** Requests that wait to be prefilled, in their order; retracted ones stand first. */
  get waiting(): readonly Request[] {
    return this.#waiting;
  }

  /** Requests that decode. */
  get running(): readonly Request[] {
    return this.#running;
  }

  /** The request whose prompt takes more than one batch, if there is one. */
  get chunked(): Request | null {
    return this.#chunked;
  }

  /** Whether generation is on hold, as for an update of the weights. */
  get paused(): boolean {
    return this.#clockMs >= this.#pauseMs.start && this.#clockMs < this.#pauseMs.end;
  }

  /** @returns The load at this moment of the scheduler's clock. */
  measure(): LoadSnapshot {
    return loadOf(this, this.#options.unixTime(this.#clockMs));
  }

  /**
   * Takes in a request from outside, now.
   *
   * @param asked What is asked for.
   * @param onTokens Is told of the answer as it grows, until `asked.outputTokens` are there.
   * @returns The request, for {@linkcode abort} and to look at.
   */
  submit(asked: Omit<Arrival, "atMs">, onTokens: TokenListener): Request {
    const request = requests.requestFor({ ...asked, atMs: this.#clockMs }, onTokens);
    this.#grammar.push(request);
    this.#wake();
    return request;
  }

  /** Gives a request up: it leaves as soon as the batch that it is in ends. */
  abort(request: Request): void {
    request.aborted = true;
    this.#wake();
  }

  /** Lets everything happen that is due up to a moment on the scheduler's clock. */
  advance(untilMs: number): void {
    while (this.#wakeMs <= untilMs) {
      this.#clockMs = this.#wakeMs;
      this.#turn();
    }
    this.#clockMs = Math.max(this.#clockMs, untilMs);
  }

  /** One round of the loop: settle the batch that ended, take in requests, start the next batch. */
  #turn(): void {
    if (this.#batch?.kind === "prefill") this.#finishPrefill(this.#batch);
    else if (this.#batch?.kind === "decode") this.#finishDecode(this.#batch);
    if (this.#clockMs >= this.#pauseMs.end) this.#planPause();
    this.#receive();
    this.#batch = this.paused ? null : this.#planPrefill() ?? this.#planDecode();
    if (this.#batch === null) return this.#rest();
    this.#resting = false;
    this.#wakeMs = this.#clockMs + this.#batch.durationMs;
  }

  #receive(): void {
    while (this.#arrivals.nextMs <= this.#clockMs) {
      this.#grammar.push(requests.requestFor(this.#arrivals.take()));
    }
    this.#dropAborted();
    this.#waiting.push(...this.#grammar.filter((request) => request.readyMs <= this.#clockMs));
    this.#grammar = this.#grammar.filter((request) => request.readyMs > this.#clockMs);
  }

  /** Whoever sleeps looks at once what has changed; a batch goes on to its end. */
  #wake(): void {
    if (this.#batch === null) this.#wakeMs = Math.min(this.#wakeMs, this.#clockMs);
  }

  #dropAborted(): void {
    const isWanted = (request: Request): boolean => !request.aborted;
    this.#grammar = this.#grammar.filter(isWanted);
    this.#waiting = this.#waiting.filter(isWanted);
    if (this.#chunked?.aborted) {
      this.#leave(this.#chunked);
      this.#chunked = null;
    }
  }

  /** Nothing can run: tell so, but not too often, and sleep until something may have changed. */
  #rest(): void {
    const idle = this.#chunked === null &&
      this.#grammar.length + this.#waiting.length + this.#running.length === 0;
    const betweenMs = idle ? QUIET.idleMs : QUIET.stalledMs;
    const fellIdle = idle && !this.#resting;
    if (fellIdle || this.#clockMs >= this.#restPublishedMs + betweenMs) {
      this.#restPublishedMs = this.#clockMs;
      this.#publish(true);
    }
    this.#wakeMs = Math.min(
      this.#restPublishedMs + betweenMs,
      this.#arrivals.nextMs,
      ...this.#grammar.map((request) => request.readyMs),
      this.paused ? this.#pauseMs.end : Infinity,
    );
    this.#resting = true;
  }

  #planPause(): void {
    const start = this.#clockMs + this.#random.exponential(240_000);
    this.#pauseMs = { start, end: start + this.#random.between(600, 2_000) };
  }

  /** Chooses prompts for one batch: first the one that is in chunks, then as many as fit. */
  #planPrefill(): PrefillBatch | null {
    const decodeIsDue = this.#running.length > 0 &&
      this.#decodeStepsSincePrefill < LIMITS.decodeStepsPerPrefill;
    if (decodeIsDue) return null;

    const complete: Request[] = [];
    let cached = 0;
    let budget: number = LIMITS.chunkTokens;
    const compute = (request: Request): void => {
      // One token stays free for the answer that begins with the prompt's end.
      const tokens = Math.min(requests.uncachedTokens(request), budget, this.pool.free - 1);
      this.pool.hold(request, Math.max(0, tokens));
      budget -= Math.max(0, tokens);
      this.#chunked = requests.uncachedTokens(request) > 0 ? request : null;
      if (this.#chunked === null) complete.push(request);
    };

    if (this.#chunked !== null) compute(this.#chunked);
    const blocked: Request[] = [];
    while (this.#chunked === null && budget > 0) {
      const request = this.#waiting[0];
      if (request === undefined || !this.#hasRoomFor(request, complete.length)) break;
      this.#waiting.shift();
      if (!this.lora.acquire(request.arrival.adapter)) {
        blocked.push(request);
        continue;
      }
      request.retracted = false;
      this.pool.hold(request, request.cachedTokens);
      cached += request.cachedTokens;
      compute(request);
    }
    this.#waiting.unshift(...blocked);

    const uncached = LIMITS.chunkTokens - budget;
    if (uncached === 0) return null;
    const durationMs = this.#accelerator.prefillMs(uncached);
    return {
      kind: "prefill",
      durationMs,
      complete,
      cachedTokens: cached,
      uncachedTokens: uncached,
    };
  }

  /** @returns Whether a prompt fits, with room for the answers that are under way. */
  #hasRoomFor(request: Request, joining: number): boolean {
    const runningThen = this.#running.length + joining + 1;
    const reserve = Math.ceil(runningThen * LIMITS.usualOutputTokens * this.#reserveRatio);
    return runningThen <= LIMITS.maxRunningRequests &&
      requests.sequenceTokens(request) + reserve <= this.pool.free;
  }

  #finishPrefill(batch: PrefillBatch): void {
    this.#decodeStepsSincePrefill = 0;
    this.prefill.record(batch.cachedTokens, batch.uncachedTokens, batch.durationMs);
    // The last prompt token gives the first answer token.
    for (const request of batch.complete) this.#answer(request, 1);
    this.#running.push(...batch.complete);
    this.#dropFinished();
    this.#publish(true);
  }

  /** Starts a decode step, after making sure that the pool takes all tokens that it may give. */
  #planDecode(): DecodeBatch | null {
    const mostPerRequest = LIMITS.draftTokens + 1;
    while (this.#running.length * mostPerRequest > this.pool.free) this.#retract();
    if (this.#running.length === 0) return null;
    const durationMs = this.#accelerator.decodeMs(this.#running.length, this.pool.used);
    return { kind: "decode", durationMs };
  }

  /** Sends one request back to wait. Most of what it held stays in the cache for a while. */
  #retract(): void {
    const request = requests.cheapestToRetract(this.#running);
    if (request === undefined) return;
    this.#running = this.#running.filter((it) => it !== request);
    this.#leave(request);
    request.retracted = true;
    const kept = this.#random.between(0.5, 0.9);
    request.cachedTokens = Math.floor(requests.sequenceTokens(request) * kept);
    this.#waiting.unshift(request);
    this.#reserveRatio = 0.9;
  }

  #finishDecode(batch: DecodeBatch): void {
    this.#decodeStepsSincePrefill++;
    this.#reserveRatio = Math.max(0.01, this.#reserveRatio - 0.001);
    const batchSize = this.#running.length;
    let tokens = 0;
    for (const request of this.#running) {
      tokens += this.#answer(request, this.#accelerator.acceptedTokens());
    }
    const logged = this.decode.record(batchSize, tokens, batch.durationMs, this.#clockMs);
    if (logged) this.prefill.hitRate = 0; // a decode log has no hit rate, and says 0
    this.#dropFinished();
    this.#publish(false);
  }

  /** Appends tokens to an answer. @returns How many it still wanted. */
  #answer(request: Request, tokens: number): number {
    const wanted = Math.min(tokens, request.arrival.outputTokens - request.generatedTokens);
    request.generatedTokens += wanted;
    this.pool.hold(request, wanted);
    if (wanted > 0 && !request.aborted) request.onTokens?.(wanted);
    return wanted;
  }

  #dropFinished(): void {
    this.#running.filter(requests.isFinished).forEach((request) => this.#leave(request));
    this.#running = this.#running.filter((request) => !requests.isFinished(request));
  }

  #leave(request: Request): void {
    this.pool.release(request);
    this.lora.release(request.arrival.adapter);
  }

  #publish(force: boolean): void {
    this.#options.publisher.publish(() => this.measure(), { force });
  }
}
