/** Which requests were sent where, until a rank has reported them and until they are complete. */

import { type Moment, NOW_MS } from "./moment.ts";

const FREE = 0;
/** Sent, and in no report yet. */
const PENDING = 1;
/** In the rank's own numbers. */
const REPORTED = 2;

/** The end of a list. */
const NONE = -1;

/**
 * A ring of the last dispatches. Its memory is taken at the start and never grows: when it is full,
 * the oldest request is forgotten, reported or not.
 *
 * A ticket is the number of a dispatch, from 1; its place is that number modulo the capacity. The
 * pending ones of each rank are linked in the order of their dispatch. One that completes before it
 * is reported stays linked, as free, until the list's head comes by: a place is only taken again by
 * a later lap, and then it stands at the head of its list.
 */
export class DispatchLedger {
  /** How many requests are remembered at most. */
  readonly capacity: number;
  /** When each was sent, by place, in ms. */
  readonly sentAtMs: Float64Array;
  /** What each was estimated at, by place. */
  readonly tokens: Float64Array;
  /** Requests that no report holds yet, by rank. */
  readonly pending: Float64Array;
  /** Their tokens, by rank. */
  readonly pendingTokens: Float64Array;
  /** Requests that a report holds and that are not complete, by rank. */
  readonly reported: Float64Array;
  /** The ticket of the last dispatch; 0 before the first. */
  lastTicket = 0;
  /** Tokens of all requests that no report holds yet. */
  allPendingTokens = 0;
  /** Tokens of all requests so far. */
  sentTokens = 0;
  /** Requests that gave way to newer ones. */
  forgotten = 0;
  readonly #moment: Moment;
  readonly #tickets: Float64Array;
  readonly #ranks: Uint16Array;
  readonly #states: Uint8Array;
  readonly #next: Int32Array;
  readonly #heads: Int32Array;
  readonly #tails: Int32Array;

  /**
   * @param dpSize How many ranks.
   * @param capacity How many requests to remember.
   * @param moment Tells the time of a dispatch.
   */
  constructor(dpSize: number, capacity: number, moment: Moment) {
    this.#moment = moment;
    this.capacity = capacity;
    this.sentAtMs = new Float64Array(capacity);
    this.tokens = new Float64Array(capacity);
    this.pending = new Float64Array(dpSize);
    this.pendingTokens = new Float64Array(dpSize);
    this.reported = new Float64Array(dpSize);
    this.#tickets = new Float64Array(capacity);
    this.#ranks = new Uint16Array(capacity);
    this.#states = new Uint8Array(capacity);
    this.#next = new Int32Array(capacity).fill(NONE);
    this.#heads = new Int32Array(dpSize).fill(NONE);
    this.#tails = new Int32Array(dpSize).fill(NONE);
  }

  /** Enters a request that is sent now. Its ticket is {@linkcode lastTicket}. */
  add(dpRank: number, tokens: number): void {
    this.lastTicket++;
    this.sentTokens += tokens;
    const place = this.lastTicket % this.capacity;
    this.#vacate(place);
    this.#tickets[place] = this.lastTicket;
    this.#ranks[place] = dpRank;
    this.#states[place] = PENDING;
    this.#next[place] = NONE;
    this.sentAtMs[place] = this.#moment[NOW_MS]!;
    this.tokens[place] = tokens;
    const tail = this.#tails[dpRank]!;
    if (tail === NONE) this.#heads[dpRank] = place;
    else this.#next[tail] = place;
    this.#tails[dpRank] = place;
    this.pending[dpRank]! += 1;
    this.pendingTokens[dpRank]! += tokens;
    this.allPendingTokens += tokens;
  }

  /**
   * Strikes out a request that is complete.
   *
   * @returns Its place, whose `tokens` and `sentAtMs` stay until the next {@linkcode add}; -1 if it
   *   is not known, or not any more.
   */
  complete(ticket: number): number {
    const place = ticket % this.capacity;
    if (this.#tickets[place] !== ticket || this.#states[place] === FREE) return NONE;
    this.#release(place);
    return place;
  }

  /** The rank of a place. */
  rankAt(place: number): number {
    return this.#ranks[place]!;
  }

  /** Whether the request with that ticket is in its rank's own numbers. */
  isReported(ticket: number): boolean {
    const place = ticket % this.capacity;
    return this.#tickets[place] === ticket && this.#states[place] === REPORTED;
  }

  /**
   * Takes it that a rank has reported what it was sent.
   *
   * @param dpRank The rank.
   * @param untilMs All that was sent up to this moment is in its report.
   * @param untilTicket So is everything up to this ticket.
   * @param nowMs What is dated later was entered before the clock was set back: it is old.
   */
  settle(dpRank: number, untilMs: number, untilTicket: number, nowMs: number): void {
    for (;;) {
      const place = this.#heads[dpRank]!;
      if (place === NONE) return;
      if (this.#states[place] === PENDING) {
        const sentAtMs = this.sentAtMs[place]!;
        const isReported = sentAtMs <= untilMs || this.#tickets[place]! <= untilTicket ||
          sentAtMs > nowMs;
        if (!isReported) return;
        this.#states[place] = REPORTED;
        this.pending[dpRank]! -= 1;
        this.pendingTokens[dpRank]! -= this.tokens[place]!;
        this.allPendingTokens -= this.tokens[place]!;
        this.reported[dpRank]! += 1;
      }
      this.#dropHead(dpRank, place);
    }
  }

  /** The place of a rank's oldest pending request, or -1. */
  firstPending(dpRank: number): number {
    return this.#skipComplete(this.#heads[dpRank]!);
  }

  /** The place of the pending request after that one, or -1. */
  nextPending(place: number): number {
    return this.#skipComplete(this.#next[place]!);
  }

  #skipComplete(from: number): number {
    let place = from;
    while (place !== NONE && this.#states[place] !== PENDING) place = this.#next[place]!;
    return place;
  }

  /** Makes room in a place that an earlier lap has taken. */
  #vacate(place: number): void {
    if (this.#tickets[place] === 0) return;
    if (this.#states[place] !== FREE) {
      this.#release(place);
      this.forgotten++;
    }
    const dpRank = this.#ranks[place]!;
    // Nothing in the list is older, so if it is linked at all it is the head.
    if (this.#heads[dpRank] === place) this.#dropHead(dpRank, place);
  }

  #release(place: number): void {
    const dpRank = this.#ranks[place]!;
    if (this.#states[place] === PENDING) {
      this.pending[dpRank]! -= 1;
      this.pendingTokens[dpRank]! -= this.tokens[place]!;
      this.allPendingTokens -= this.tokens[place]!;
    } else this.reported[dpRank]! -= 1;
    this.#states[place] = FREE;
  }

  #dropHead(dpRank: number, place: number): void {
    const next = this.#next[place]!;
    this.#heads[dpRank] = next;
    if (next === NONE) this.#tails[dpRank] = NONE;
  }
}
