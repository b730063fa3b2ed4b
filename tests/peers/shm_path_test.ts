/** Paths against SGLang's own `shm_path_for`, and alphanumerics against Python's. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { shmPathFor } from "../../src/slotfile/shm_path.ts";
import { batches, SEED } from "./generated.ts";
import { peerTests } from "./peer_tests.ts";
import { ensurePeers } from "./setup.ts";

const COUNT = 2_000;

/**
 * Prints the ranges of characters that this Python knows: all that are assigned but surrogates.
 *
 * Python and JavaScript have the Unicode of different years. A letter that only one of them knows is
 * alphanumeric to that one only, and its name has two paths; so only what both know is compared.
 */
const RANGES = `
import json, sys, unicodedata
ranges, start = [], None
for code in range(sys.maxunicode + 2):
    known = code <= sys.maxunicode and unicodedata.category(chr(code)) not in ("Cn", "Cs")
    if known and start is None:
        start = code
    elif not known and start is not None:
        ranges.append((start, code - 1))
        start = None
print(json.dumps(ranges))
`;

type Range = readonly [first: number, last: number];

const test = await peerTests();

test(`both derive ${COUNT} paths alike (seed ${SEED})`, async (peer) => {
  const ranges = await knownRanges();
  const character = fc.oneof(
    fc.constantFrom(...ranges.slice(0, 40)).chain(characterIn),
    fc.constantFrom(...ranges).chain(characterIn),
    fc.constantFrom("/", ".", "_", "-", ":", " ", "\0", "\n", "0", "a", "Z"),
  );
  const name = fc.oneof(
    fc.string({ unit: character }),
    fc.string({ unit: character, maxLength: 4 }),
    fc.uuid(),
    fc.webUrl(),
    fc.array(fc.string({ unit: character, maxLength: 5 })).map((parts) => parts.join("/")),
  );
  for (const names of batches(name, COUNT)) {
    assert.deepEqual(names.map(shmPathFor), await peer.shmPathFor(names));
  }
});

test("every character that both know is alphanumeric to both or to neither", async (peer) => {
  const characters = (await knownRanges())
    .flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, n) => first + n))
    // It would end the part of the name that is shown.
    .filter((code) => code !== 0x2f)
    .map((code) => String.fromCodePoint(code));
  assert(characters.length > 280_000);
  const names = Array.from(
    { length: Math.ceil(characters.length / 4096) },
    (_, number) => characters.slice(number * 4096, (number + 1) * 4096).join(""),
  );
  const theirs = await peer.shmPathFor(names);
  names.forEach((name, at) => assert.equal(shmPathFor(name), theirs[at]));
});

function characterIn([first, last]: Range): fc.Arbitrary<string> {
  return fc.integer({ min: first, max: last }).map((code) => String.fromCodePoint(code));
}

/** The ranges of the characters that Python knows; JavaScript's Unicode is not older. */
async function knownRanges(): Promise<Range[]> {
  const peers = await ensurePeers();
  assert(peers.state === "ready");
  const { success, stdout } = await new Deno.Command(peers.python, {
    args: ["-E", "-s", "-c", RANGES],
  }).output();
  assert(success);
  return JSON.parse(new TextDecoder().decode(stdout));
}
