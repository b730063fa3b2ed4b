/**
 * One decoder for all payloads of a rank: what it has seen before must not show in what it says now.
 */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { SnapshotDecodeError } from "../../src/errors.ts";
import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { SnapshotChecker } from "../../src/snapshot/checker.ts";
import { SnapshotDecoder } from "../../src/snapshot/decoder.ts";
import { PAYLOAD_AT } from "../../src/snapshot/image.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShapeCache } from "../../src/snapshot/shape_cache.ts";
import { Workspace } from "../../src/snapshot/workspace.ts";
import {
  Inbox,
  kindOf,
  type Outcome,
  outcomeOf,
  outcomeOfAnyone,
  outcomeWith,
} from "../support/outcome.ts";
import { aStep, payloadsOf, someEntries } from "../support/payload_arbitraries.ts";
import { assertSame } from "../support/same.ts";
import { aSnapshot } from "../support/snapshot_arbitraries.ts";

/** A decoder, and what its payloads come in. */
type SetUp = () => { readonly decoder: SnapshotDecoder; readonly inbox: Inbox };

/** In memory of its own each, as a collector's. */
const plain: SetUp = () => ({ decoder: new SnapshotDecoder(), inbox: new Inbox() });

/** In a workspace, as a reader's. */
const inWorkspace: SetUp = () => {
  const workspace = new Workspace(16);
  assert.notEqual(workspace.compare, null);
  const decoder = new SnapshotDecoder(new ShapeCache(workspace));
  return { decoder, inbox: new Inbox(workspace) };
};

function bothWays(name: string, test: (setUp: SetUp) => void): void {
  Deno.test(name, () => test(plain));
  Deno.test(`in a workspace, ${name}`, () => test(inWorkspace));
}

const someSteps = fc.array(aStep, { minLength: 1, maxLength: 12, size: "max" });

bothWays("any sequence of payloads is decoded like each one alone", (setUp) => {
  fc.assert(
    fc.property(someEntries, someSteps, (entries, steps) => {
      const payloads = payloadsOf(entries, steps);
      const outcomes = decodeAll(setUp, payloads);
      // Only now: a later payload must not change an earlier snapshot either.
      payloads.forEach((payload, at) =>
        assertSame(kindOf(outcomes[at]!), kindOf(outcomeOf(payload)), `payload ${at}`)
      );
      const anyones = payloads.map((payload) => outcomeOfAnyone(payload));
      anyones.forEach((outcome, at) => assertSame(kindOf(outcome), kindOf(outcomes[at]!)));
    }),
    { numRuns: 1500 },
  );
});

Deno.test("check finds the fault that decode finds, and names the rank", () => {
  const withChecks = fc.tuple(someEntries, someSteps, fc.array(fc.boolean(), { minLength: 13 }));
  fc.assert(
    fc.property(withChecks, ([entries, steps, checks]) => {
      const { decoder, inbox } = plain();
      const checker = new SnapshotChecker();
      payloadsOf(entries, steps).forEach((payload, at) => {
        const expected = outcomeOf(payload);
        const end = inbox.put(payload);
        if (checks[at]) {
          if (expected.ok) {
            assert.equal(checker.check(inbox.image, end), expected.snapshot.dpRank);
          } else {
            assert.throws(() => checker.check(inbox.image, end), SnapshotDecodeError);
          }
        } else {
          assertSame(kindOf(outcomeWith(decoder, inbox, payload)), kindOf(expected));
        }
      });
    }),
    { numRuns: 1000 },
  );
});

bothWays(
  "snapshots of every kind, one after the other, are decoded like each one alone",
  (setUp) => {
    fc.assert(fc.property(fc.array(aSnapshot, { minLength: 2, maxLength: 8 }), (snapshots) => {
      const outcomes = decodeAll(setUp, snapshots.map((snapshot) => encodeLoadSnapshot(snapshot)));
      assertSame(outcomes, snapshots.map((snapshot) => ({ ok: true, snapshot })));
    }));
  },
);

/** A payload with all sections, and values of many forms. */
const WHOLE = encodeLoadSnapshot(createLoadSnapshot({
  timestamp: 1_764_547_200.5,
  dpRank: 1,
  numRunningReqs: 200,
  numWaitingReqs: 70_000,
  numUsedTokens: Number.MAX_SAFE_INTEGER,
  numTotalTokens: Number.MIN_SAFE_INTEGER,
  numActiveTokens: -5,
  maxRunningRequests: -200,
  decodeMoments: [1.5, 2.5],
  memory: { weightGb: 1.5, tokenCapacity: 500_000 },
  speculative: {},
  lora: { slotsUsed: 127, slotsTotal: 128, utilization: -0 },
  disaggregation: { mode: "decode", decodeRetractedQueueReqs: -33 },
  queues: { waiting: 1, grammar: 2 ** 32, paused: -1, retracted: 65_536 },
}));

bothWays(
  "every change of one byte gives what it gives alone, and so does the way back",
  (setUp) => {
    const { decoder, inbox } = setUp();
    const expected = outcomeOf(WHOLE);
    const payload = WHOLE.slice();
    for (let at = 0; at < payload.length; at++) {
      for (const byte of bytesNear(WHOLE[at]!)) {
        payload[at] = byte;
        const changed = outcomeWith(decoder, inbox, payload);
        assertSame(kindOf(changed), kindOf(outcomeOf(payload)), `byte ${at} as ${byte}`);
      }
      payload[at] = WHOLE[at]!;
      assertSame(outcomeWith(decoder, inbox, payload), expected, `byte ${at}`);
    }
  },
);

bothWays("the image is that of the last payload, whatever became of it", (setUp) => {
  fc.assert(
    fc.property(someEntries, someSteps, (entries, steps) => {
      const { decoder, inbox } = setUp();
      for (const payload of payloadsOf(entries, steps)) {
        outcomeWith(decoder, inbox, payload);
        const { image, end } = decoder;
        assert.equal(end, PAYLOAD_AT + payload.length);
        assert.deepEqual(image.bytes.slice(PAYLOAD_AT, end), Uint8Array.from(payload));
        assert.equal(image.view.getUint32(0, true), payload.length);
      }
    }),
    { numRuns: 100 },
  );
});

bothWays("a payload that was refused for one value leaves no trace of its others", (setUp) => {
  const { decoder, inbox } = setUp();
  const good = outcomeOf(WHOLE);
  assert(good.ok && good.snapshot.queues !== null);
  const changed = { ...good.snapshot, queues: { ...good.snapshot.queues, waiting: 2 } };
  const next = encodeLoadSnapshot(changed);
  const refused = next.slice();
  // Makes 2^53 - 1 of the core 2^54 - 1; the bytes of the sections stay.
  const at = refused.toHex().indexOf("cf001fffffffffffff") / 2;
  refused[at + 2] = 0x3f;
  for (const payload of [WHOLE, refused, next, refused, refused, WHOLE, next]) {
    assertSame(kindOf(outcomeWith(decoder, inbox, payload)), kindOf(outcomeOf(payload)));
  }
  assert.equal(outcomeOf(refused).ok, false);
  assertSame(outcomeOf(next), { ok: true, snapshot: changed });
});

bothWays(
  "a section in which nothing changed may be the same object, and is then equal",
  (setUp) => {
    const { decoder, inbox } = setUp();
    const first = outcomeWith(decoder, inbox, WHOLE);
    assert(first.ok);
    const expected = { ...first.snapshot, dpRank: 2 };
    const second = outcomeWith(decoder, inbox, encodeLoadSnapshot(expected));
    assertSame(second, { ok: true, snapshot: expected });
  },
);

function decodeAll(setUp: SetUp, payloads: readonly Uint8Array[]): Outcome[] {
  const { decoder, inbox } = setUp();
  return payloads.map((payload) => outcomeWith(decoder, inbox, payload));
}

/** The bytes that lie at a border of MessagePack, differ in one bit, or are next to a byte. */
function bytesNear(byte: number): Set<number> {
  const borders = [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xdc, 0xdf, 0xe0, 0xff];
  const tags = Array.from({ length: 20 }, (_, n) => 0xc0 + n);
  const bits = Array.from({ length: 8 }, (_, n) => byte ^ (1 << n));
  return new Set([...borders, ...tags, ...bits, (byte + 1) & 0xff, (byte - 1) & 0xff]);
}
