/** The memory that images and masks share with WebAssembly: it only makes faster. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { Scratch } from "../../src/slotfile/slot.ts";
import { SnapshotDecoder } from "../../src/snapshot/decoder.ts";
import { imageOf, PAYLOAD_AT } from "../../src/snapshot/image.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { RawMsgpack } from "../../src/snapshot/raw_msgpack.ts";
import { changedSections, fits, type Mask } from "../../src/snapshot/shape.ts";
import { ShapeCache } from "../../src/snapshot/shape_cache.ts";
import { Workspace } from "../../src/snapshot/workspace.ts";
import { Inbox, outcomeWith } from "../support/outcome.ts";
import { assertSame } from "../support/same.ts";

const aWord = fc.oneof(fc.constantFrom(0, -1, 1, 0x80, -(2 ** 31)), fc.integer());

const someWords = fc.array(
  fc.record({
    now: aWord,
    // Mostly as now, which null says.
    before: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, aWord),
    bits: fc.oneof(fc.constantFrom(0, -1), aWord),
    owner: fc.constantFrom(0, 1, 2, 4, 8, 16),
  }),
  { minLength: 1, maxLength: 60, size: "max" },
);

Deno.test("sixteen bytes at a time give what word by word gives", () => {
  const seen = new Set<number>();
  fc.assert(
    fc.property(someWords, fc.nat(3), fc.boolean(), (words, stale, strict) => {
      const workspace = new Workspace(2);
      const end = PAYLOAD_AT + 4 * words.length - stale;
      const [image, before] = [0, 1].map(() => imageOf(new Uint8Array(end), workspace));
      assert(image !== undefined && before !== undefined);
      const { buffer, start, size, compare } = workspace.createWords(end);
      const [bits, owners, template] = [0, 1, 2].map((n) =>
        new Int32Array(buffer, start + n * size, (end + 3) >> 2)
      );
      assert(bits !== undefined && owners !== undefined && template !== undefined);
      words.forEach((word, n) => {
        if (n + 1 >= bits.length) return;
        image.words[n + 1] = word.now;
        before.words[n + 1] = word.before ?? word.now;
        template[n + 1] = word.before ?? word.now;
        bits[n + 1] = strict ? word.bits : 0;
        owners[n + 1] = word.owner;
      });
      const mask: Mask = { bits, owners, template, start, size, compare };
      assert.notEqual(compare, null);
      const slow: Mask = { ...mask, compare: null };
      const changed = changedSections(image, before, slow);
      assert.equal(changedSections(image, before, mask), changed);
      assert.equal(fits(image, slow), changed >= 0);
      assert.equal(fits(image, mask), changed >= 0);
      seen.add(changed);
    }),
    { numRuns: 1000 },
  );
  assert(seen.has(-1) && seen.has(0) && seen.size > 10, "all kinds of outcomes came up");
});

Deno.test("what finds no room in a workspace is decoded all the same", () => {
  const workspace = new Workspace(1);
  const shapes = new ShapeCache(workspace);
  const decoders = Array.from({ length: 4 }, () => new SnapshotDecoder(shapes));
  const inbox = new Inbox(workspace);
  const moments = Array.from({ length: 400 }, (_, n) => n / 3);
  for (let n = 0; n < 3000; n++) {
    const snapshot = createLoadSnapshot({
      timestamp: n,
      decodeMoments: n % 7 === 0 ? moments.slice(0, n % 400) : null,
      numRunningReqs: n % 300,
      queues: n % 3 === 0 ? { waiting: n } : null,
    });
    const outcome = outcomeWith(decoders[n % 4]!, inbox, encodeLoadSnapshot(snapshot));
    assertSame(outcome, { ok: true, snapshot });
  }
});

Deno.test("an image that a long payload took the place of is used again", () => {
  const workspace = new Workspace(1);
  const scratch = new Scratch(workspace);
  const { at } = scratch.image;
  assert(at >= 0);
  scratch.reserve(5_000, 0);
  assert.equal(scratch.image.at, -1);
  assert(scratch.image.bytes.length >= 5_000);
  scratch.image.bytes.fill(7, 0, 20);
  scratch.reserve(600, 20);
  assert.equal(scratch.image.at, at);
  assert(scratch.image.bytes.subarray(0, 20).every((byte) => byte === 7));
});

Deno.test("shapes of long payloads do not fill the memory", () => {
  const shapes = new ShapeCache();
  const decoder = new SnapshotDecoder(shapes);
  const inbox = new Inbox();
  let most = 0;
  for (let n = 0; n < 60; n++) {
    // Ever new keys in payloads of two lengths.
    const extra = {
      [`key_${100 + n}`]: RawMsgpack.from("x".repeat(n % 2 === 0 ? 50_000 : 80_000)),
    };
    const outcome = outcomeWith(decoder, inbox, encodeLoadSnapshot(createLoadSnapshot({ extra })));
    assert(outcome.ok && outcome.snapshot.extra !== null);
    most = Math.max(most, shapes.byteLength);
  }
  assert(most > 1_000_000 && most <= 4 * 1024 * 1024, `${most} bytes`);
});

Deno.test("a workspace of no images compares nothing, and makes images all the same", () => {
  const workspace = new Workspace(0);
  assert.equal(workspace.compare, null);
  const image = workspace.createImage(100);
  assert.equal(image.at, -1);
  assert(image.bytes.length >= 100);
});
