/** The checks of the harness themselves: what is broken on purpose has to be found. */

import assert from "node:assert/strict";
import { Random } from "../../examples/engine/random.ts";
import { SnapshotDecodeError } from "../../src/errors.ts";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ensurePeers } from "../peers/setup.ts";
import { slotOf } from "../support/slot_bytes.ts";
import { MemoryReader } from "../support/memory_reader.ts";
import { Tally } from "./actors/lines.ts";
import { SourceCheck } from "./actors/source_check.ts";
import { hostileBytes } from "./kinds/hostile_bytes.ts";
import { isWhole, type Publication, PublicationCheck, snapshotOf } from "./publication.ts";
import { ResourceLog } from "./resource_log.ts";

function publication(number: number, more: Partial<Publication> = {}): Publication {
  const micros = Date.now() * 1000 + number;
  return { dpRank: 0, incarnation: 1, number, micros, firstMicros: micros - 5, ...more };
}

Deno.test("a snapshot of one publication is whole, by way of the wire too", () => {
  for (let number = 1; number <= 100; number++) {
    const snapshot = snapshotOf(publication(number));
    assert(isWhole(snapshot));
    assert(isWhole(decodeLoadSnapshot(encodeLoadSnapshot(snapshot))));
  }
});

Deno.test("a mixture of two publications is torn, whichever value is the other's", () => {
  const [one, two] = [snapshotOf(publication(7)), snapshotOf(publication(13, { micros: 5e9 }))];
  let mixtures = 0;
  for (const name of Object.keys(one) as (keyof LoadSnapshot)[]) {
    if (JSON.stringify(one[name]) === JSON.stringify(two[name])) continue;
    mixtures++;
    const mixed = { ...one, [name]: two[name] };
    assert.match(new PublicationCheck(false).take(mixed, 0) ?? "", /^torn/, name);
  }
  assert(mixtures >= 10);
});

Deno.test("the same publications come from Python", async (context) => {
  const peers = await ensurePeers();
  if (peers.state === "missing") {
    await context.step({ name: `left out: ${peers.reason}`, ignore: true, fn: () => {} });
    return;
  }
  const folders = ["../peers", "."].map((folder) => new URL(folder, import.meta.url).pathname);
  const program = `import sys, json
sys.path[:0] = ${JSON.stringify(folders)}
import sglang_load
from publication import snapshot_of, is_whole
sglang = sglang_load.load(sys.argv[1])
for values in json.loads(sys.argv[2]):
    snapshot = snapshot_of(sglang, *values)
    assert is_whole(sglang, snapshot)
    snapshot.num_used_tokens += 1
    assert not is_whole(sglang, snapshot)
    snapshot.num_used_tokens -= 1
    print(sglang.snapshot_encoder.encode(snapshot).hex())
`;
  const all = Array.from(
    { length: 40 },
    (_, index) => publication(index + 1, { dpRank: index % 3 }),
  );
  const values = all.map((
    { dpRank, incarnation, number, micros, firstMicros },
  ) => [dpRank, incarnation, number, micros, firstMicros]);
  const { stdout, stderr } = await new Deno.Command(peers.python, {
    args: ["-E", "-s", "-B", "-c", program, peers.moduleDir, JSON.stringify(values)],
  }).output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  assert.equal(lines.length, all.length, new TextDecoder().decode(stderr));
  lines.forEach((line, index) => {
    assert.deepEqual(decodeLoadSnapshot(Uint8Array.fromHex(line)), snapshotOf(all[index]!));
  });
});

Deno.test("what goes back, is lost or is another rank's is found", () => {
  const check = new PublicationCheck(false);
  assert.equal(check.take(null, 0), null);
  assert.equal(check.take(createLoadSnapshot(), 0), null);
  assert.equal(check.take(snapshotOf(publication(2)), 0), null);
  assert.equal(check.take(createLoadSnapshot(), 0), null, "a writer that starts");
  assert.equal(check.take(snapshotOf(publication(2)), 0), null, "read from another file");
  assert.match(check.take(snapshotOf(publication(1)), 0)!, /came after/);
  assert.equal(check.take(snapshotOf(publication(1, { incarnation: 2 })), 0), null);
  assert.match(check.take(snapshotOf(publication(9)), 0)!, /came after/);
  assert.match(check.take(null, 0)!, /lost/);
  assert.match(check.take(snapshotOf(publication(3, { dpRank: 1 })), 0)!, /says that it is rank 1/);
});

Deno.test("over a network only the last words of a dead writer may come late", () => {
  const check = new PublicationCheck(true);
  assert.equal(check.take(snapshotOf(publication(5)), 0), null);
  assert.equal(check.take(snapshotOf(publication(1, { incarnation: 2 })), 0), null);
  assert.equal(check.take(snapshotOf(publication(6)), 0), null);
  assert.equal(check.late, 1);
  assert.match(
    check.take(snapshotOf(publication(4)), 0)!,
    /came after number 6 of the same writer/,
  );
});

Deno.test("ages and states that are wrong are found", () => {
  const reader = new MemoryReader(1);
  const broken: string[] = [];
  const check = new SourceCheck(
    { name: "engine", path: "", isRemote: false },
    reader,
    new Tally(),
    { broken: (invariant) => broken.push(invariant), followed: () => {} },
  );
  const judged = (state: "live" | "stale" | "corrupt" | "unreported", ageMs: number | null) => {
    reader.judge(0, state, ageMs);
    broken.length = 0;
    check.judgeHealth();
    return broken.slice();
  };
  assert.deepEqual(judged("unreported", null), []);
  assert.deepEqual(judged("live", 0), ["age"], "nothing was told");
  const { micros } = publication(1);
  reader.put(snapshotOf(publication(1, { micros: micros - 3e6 })));
  assert.deepEqual(judged("live", 3000), []);
  assert.deepEqual(judged("live", 2000), ["age"]);
  assert.deepEqual(judged("live", 4000), ["age"]);
  assert.deepEqual(judged("stale", 3000), ["age"]);
  assert.deepEqual(judged("live", null), ["age"]);
  assert.deepEqual(judged("corrupt", 3000), []);
  reader.put(snapshotOf(publication(2, { micros: micros + 3600e6 })));
  assert.deepEqual(judged("live", 0), [], "a timestamp of the future counts from when it was seen");
  assert.deepEqual(judged("live", 5000), ["age"]);
  reader.put(snapshotOf(publication(3, { micros: micros - 60e6 })));
  assert.deepEqual(judged("stale", 60_000), []);
});

Deno.test("no hostile bytes are a snapshot", () => {
  const random = new Random(1, 1);
  const slot = new Uint8Array(16_384);
  slot.set(slotOf(encodeLoadSnapshot(snapshotOf(publication(3)))));
  for (let n = 0; n < 500; n++) {
    const bytes = hostileBytes(random, slot);
    const length = new DataView(bytes.buffer).getUint32(0, true);
    if (length > slot.length - 4) continue;
    assert.throws(() => decodeLoadSnapshot(bytes.subarray(4, 4 + length)), SnapshotDecodeError);
  }
});

Deno.test("a process that opens more and more is found", async () => {
  const log = new ResourceLog();
  const files: Deno.FsFile[] = [];
  try {
    for (let n = 0; n < 30; n++) {
      log.sample(new Map([["this", Deno.pid]]), n);
      files.push(await Deno.open("/dev/null"));
    }
  } finally {
    for (const file of files) file.close();
  }
  assert.match(log.growth()[0] ?? "", /^this: descriptors went from/);
});
