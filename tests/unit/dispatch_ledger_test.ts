/** The ledger against a plain model of it, over random lives. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { DispatchLedger } from "../../src/balance/dispatch_ledger.ts";
import { makeMoment, NOW_MS } from "../../src/balance/moment.ts";

interface Entry {
  readonly ticket: number;
  readonly dpRank: number;
  readonly tokens: number;
  readonly atMs: number;
  isReported: boolean;
}

/** The same in the plainest way. */
class Model {
  entries: Entry[] = [];
  last = 0;
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add(dpRank: number, tokens: number, atMs: number): void {
    this.last++;
    this.entries = this.entries.filter(({ ticket }) => ticket > this.last - this.#capacity);
    this.entries.push({ ticket: this.last, dpRank, tokens, atMs, isReported: false });
  }

  complete(ticket: number): boolean {
    const before = this.entries.length;
    this.entries = this.entries.filter((entry) => entry.ticket !== ticket);
    return this.entries.length < before;
  }

  settle(dpRank: number, untilMs: number, untilTicket: number, nowMs: number): void {
    for (const entry of this.pending(dpRank)) {
      const { atMs, ticket } = entry;
      if (!(atMs <= untilMs || ticket <= untilTicket || atMs > nowMs)) return;
      entry.isReported = true;
    }
  }

  pending(dpRank: number): Entry[] {
    return this.entries.filter((entry) => entry.dpRank === dpRank && !entry.isReported);
  }

  reported(dpRank: number): number {
    return this.entries.filter((entry) => entry.dpRank === dpRank && entry.isReported).length;
  }
}

const RANKS = 3;

const aRank = fc.nat(RANKS - 1);

const aStep = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("add" as const), dpRank: aRank, tokens: fc.nat(9) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("complete" as const), back: fc.nat(30) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      dpRank: aRank,
      agoMs: fc.nat(30),
      backTickets: fc.nat(40),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("clock" as const),
      ms: fc.integer({ min: -20, max: 20 }),
    }),
  },
);

Deno.test("a ledger does what its model does", () => {
  const lives = fc.array(aStep, { maxLength: 200, size: "max" });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 17 }), lives, (capacity, steps) => {
      const moment = makeMoment();
      const ledger = new DispatchLedger(RANKS, capacity, moment);
      const model = new Model(capacity);
      let nowMs = 1_000;
      for (const step of steps) {
        nowMs += 1;
        if (step.do === "add") {
          moment[NOW_MS] = nowMs;
          ledger.add(step.dpRank, step.tokens);
          model.add(step.dpRank, step.tokens, nowMs);
        } else if (step.do === "complete") {
          const ticket = model.last - step.back;
          assert.equal(ledger.complete(ticket) >= 0, model.complete(ticket));
        } else if (step.do === "settle") {
          const untilTicket = model.last - step.backTickets;
          ledger.settle(step.dpRank, nowMs - step.agoMs, untilTicket, nowMs);
          model.settle(step.dpRank, nowMs - step.agoMs, untilTicket, nowMs);
        } else nowMs += step.ms;
        for (let rank = 0; rank < RANKS; rank++) {
          const pending: number[] = [];
          for (let at = ledger.firstPending(rank); at >= 0; at = ledger.nextPending(at)) {
            pending.push(ledger.sentAtMs[at]!);
          }
          assert.deepEqual(pending, model.pending(rank).map(({ atMs }) => atMs));
          assert.equal(ledger.pending[rank], pending.length);
          assert.equal(
            ledger.pendingTokens[rank],
            model.pending(rank).reduce((sum, { tokens }) => sum + tokens, 0),
          );
          assert.equal(ledger.reported[rank], model.reported(rank));
        }
      }
    }),
    { numRuns: 500 },
  );
});
