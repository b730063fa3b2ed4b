/** What the property tests are fed with: a generator that leaves something out tests nothing of it. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { SnapshotDecoder } from "../../src/snapshot/decoder.ts";
import { CORE_FIELDS, SECTIONS } from "../../src/snapshot/fields.ts";
import type { LoadSnapshot, SectionTail } from "../../src/snapshot/load_snapshot.ts";
import { Inbox, outcomeWith } from "../support/outcome.ts";
import { aStep, payloadsOf, someEntries } from "../support/payload_arbitraries.ts";
import { aPlainSnapshot, aSnapshot } from "../support/snapshot_arbitraries.ts";

const SAMPLE = { seed: 1, numRuns: 3_000 };

const INTS = [0, 1, -1, 127, 128, 2 ** 32, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
const FLOATS = [0, -0, 0.1, NaN, Infinity, -Infinity, 5e-324, Number.MAX_VALUE];
const MODES = ["null", "prefill", "decode", "", "m".repeat(256)];

Deno.test("generated snapshots have every default and extreme in every field", () => {
  for (const arbitrary of [aPlainSnapshot, aSnapshot]) {
    const snapshots = fc.sample(arbitrary, SAMPLE);
    for (const { name, type } of CORE_FIELDS) {
      const values = snapshots.map((snapshot) => snapshot[name]);
      if (type !== "floats") assertSeen(values, type === "int" ? INTS : FLOATS, name);
    }
    for (const { name, fields } of SECTIONS) {
      const sections = snapshots.map((snapshot) => snapshot[name]);
      for (const field of fields) {
        const values = sections.map((one) => (one as Record<string, unknown> | null)?.[field.name]);
        const wanted = { int: INTS, float: FLOATS, string: MODES }[field.type];
        assertSeen(values, wanted, `${name}.${field.name}`);
      }
    }
  }
});

Deno.test("generated snapshots have each section, and lack it, and so with the moments", () => {
  const snapshots = fc.sample(aPlainSnapshot, SAMPLE);
  for (const { name } of SECTIONS) {
    assertBoth(snapshots.map((snapshot) => snapshot[name] !== null), name);
  }
  const moments = snapshots.map((snapshot) => snapshot.decodeMoments);
  for (const length of [undefined, 0, 1, 15, 16]) {
    assert(moments.some((list) => list?.length === length), `${length}`);
  }
});

Deno.test("generated snapshots have what no release knows, unless they are plain", () => {
  const snapshots = fc.sample(aSnapshot, SAMPLE);
  assertBoth(snapshots.map((snapshot) => snapshot.extra !== null), "extra");
  for (const { name } of SECTIONS) {
    assertBoth(
      snapshots.flatMap(({ [name]: section }) => section === null ? [] : [section.extra !== null]),
      name,
    );
  }
  assert(
    fc.sample(aPlainSnapshot, SAMPLE).every((snapshot) =>
      [snapshot, ...sectionsOf(snapshot)].every((part) => part.extra === null)
    ),
  );
});

Deno.test("most steps lead to a sound payload, and many to one of the same shape", () => {
  const sequences = fc.sample(
    fc.tuple(someEntries, fc.array(aStep, { minLength: 12, maxLength: 12 })),
    { seed: 1, numRuns: 100 },
  );
  let sound = 0;
  let alike = 0;
  for (const [entries, steps] of sequences) {
    const decoder = new SnapshotDecoder();
    const inbox = new Inbox();
    let last: LoadSnapshot | null = null;
    for (const payload of payloadsOf(entries, steps)) {
      const outcome = outcomeWith(decoder, inbox, payload);
      const next: LoadSnapshot | null = outcome.ok ? outcome.snapshot : null;
      if (next !== null) sound++;
      // A section is the same object only where the decoder took values without a scan.
      if (last !== null && next !== null) {
        const before = sectionsOf(last);
        if (sectionsOf(next).some((section) => before.includes(section))) alike++;
      }
      last = next;
    }
  }
  assert(sound > 1300 * 0.6 && sound < 1300 * 0.95, `${sound} of 1300 are sound`);
  assert(alike > 1300 * 0.1, `${alike} of 1300 are alike`);
});

function sectionsOf(snapshot: LoadSnapshot): SectionTail[] {
  return SECTIONS.map(({ name }): SectionTail | null => snapshot[name])
    .filter((section) => section !== null);
}

function assertSeen(values: readonly unknown[], wanted: readonly unknown[], name: string): void {
  for (const value of wanted) {
    assert(values.some((one) => Object.is(one, value)), `${name} is never ${value}`);
  }
}

function assertBoth(values: readonly boolean[], name: string): void {
  const share = values.filter((value) => value).length / values.length;
  assert(share > 0.2 && share < 0.8, `${name} is there in ${share} of all`);
}
