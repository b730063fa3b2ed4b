/** The HTTP answers against SGLang's own: its `to_dict`, its text, its route under FastAPI. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { createLoadHandler } from "../../src/http/mod.ts";
import { INCLUDE_NAMES } from "../../src/snapshot/fields.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { MemoryReader } from "../support/memory_reader.ts";
import { assertSame } from "../support/same.ts";
import { aPlainSnapshot } from "../support/snapshot_arbitraries.ts";
import { batches, SEED } from "./generated.ts";
import { LoadRoute } from "./load_route.ts";
import type { MetricFamily, PythonPeer } from "./peer.ts";
import { peerTests } from "./peer_tests.ts";
import { TempShm } from "./temp_shm.ts";

const COUNT = 500;
const RANKS = 10;

const test = await peerTests();

/** Groups of ranks, and the sections that are asked for. */
const aGroup = fc.tuple(
  fc.array(aPlainSnapshot, { minLength: RANKS, maxLength: RANKS }),
  fc.option(fc.subarray(INCLUDE_NAMES, { minLength: 1 }), { freq: 3 }),
);

function groups(): { reader: MemoryReader; loads: LoadSnapshot[]; include: string[] | null }[] {
  return batches(aGroup, COUNT / RANKS).flat().map(([snapshots, include]) => {
    const reader = new MemoryReader(RANKS);
    const loads = snapshots.map((load, dpRank) => reader.put({ ...load, dpRank }));
    return { reader, loads, include };
  });
}

async function get(reader: MemoryReader, path: string): Promise<string> {
  await using handler = createLoadHandler(reader);
  const response = await handler.fetch(new Request(`http://x${path}`));
  assert.equal(response.status, 200);
  return await response.text();
}

function query(include: readonly string[] | null): string {
  return include === null ? "" : `include=${include.join()}`;
}

/** What JSON makes of a value: it has no NaN, no infinity and no -0. */
function inJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

test(`the JSON of ${COUNT} snapshots is SGLang's to_dict (seed ${SEED})`, async (peer) => {
  for (const { reader, loads, include } of groups()) {
    const theirs = await peer.toDict(loads.map((load) => [load, include] as const));
    const ours = JSON.parse(await get(reader, `/v1/loads?${query(include)}`)).loads;
    assert.equal(ours.length, RANKS);
    theirs.forEach((result, dpRank) => {
      assert(result.ok);
      assertSame(ours[dpRank], inJson(result.dict), `${include}`);
      assert.deepEqual(Object.keys(ours[dpRank]), Object.keys(result.dict));
    });
  }
});

/** All samples by name and labels. */
function samplesOf(families: readonly MetricFamily[]): Record<string, number> {
  const samples = families.flatMap(({ type, samples }) => {
    assert(type === "gauge" || type === "counter", type);
    return samples.map(([name, labels, value]) => [`${name}${JSON.stringify(labels)}`, value]);
  });
  // Python's int 0 and float 0.0, and 0.0 and -0.0, are one value to Prometheus.
  return Object.fromEntries(samples.map(([name, value]) => [name, value === 0 ? 0 : value]));
}

async function parsed(peer: PythonPeer, text: string): Promise<Record<string, number>> {
  return samplesOf(await peer.parsePrometheus(text));
}

test(`the Prometheus text of ${COUNT} snapshots says what SGLang's says (seed ${SEED})`, async (peer) => {
  for (const { reader, loads, include } of groups()) {
    const ours = await get(reader, `/v1/loads?format=prometheus&${query(include)}`);
    const theirs = await peer.prometheusText(loads, include);
    assertSame(await parsed(peer, ours), await parsed(peer, theirs), `${include}`);
  }
});

test(`/metrics passes Python's parser with the values of ${COUNT} snapshots (seed ${SEED})`, async (peer) => {
  for (const { reader, loads } of groups()) {
    const families = await peer.parsePrometheus(await get(reader, "/metrics"));
    for (const { name, help } of families) assert.notEqual(help, "", name);
    const ours = Object.entries(samplesOf(families)).filter(([name]) => name.startsWith("sglang_"));
    const theirs = await parsed(peer, await peer.prometheusText(loads, null));
    assertSame(Object.fromEntries(ours), theirs);
  }
});

const QUERIES = [
  ...["", "dp_rank=0", "dp_rank=1", "dp_rank=2", "dp_rank=3", "dp_rank=-1", "dp_rank=999999999999"],
  ...["dp_rank=", "dp_rank=x", "dp_rank=1.5", "dp_rank=1.0", "dp_rank=1.", "dp_rank=0x1"],
  ...["dp_rank=%2B1", "dp_rank=+1", "dp_rank=%201%20", "dp_rank=01", "dp_rank=1_0", "dp_rank=1__0"],
  ...["dp_rank=1e0", "dp_rank=--1", "dp_rank=%00", "dp_rank=%zz", "dp_rank=true", "dp_rank=_1"],
  ...["dp_rank=x&dp_rank=1", "dp_rank=1&dp_rank=x", "DP_RANK=x", "dp_rank=%D9%A1"],
  ...["include=", "include=core", "include=all", "include=queues,memory", "include=spec,%20lora"],
  ...["include=all,gpu", "include=core,core", "include=disagg&include=queues", "include=+core"],
  ...["format=json", "format=", "format=Prometheus", "unheard=1", "include=core&dp_rank=1"],
];

test("the route answers each query as SGLang's own does under FastAPI", async () => {
  using shm = new TempShm();
  const { path } = shm;
  const sections = { memory: {}, speculative: {}, lora: {}, disaggregation: {}, queues: {} };
  using zero = new ShmLoadSnapshotWriter(path, { dpSize: 3, dpRank: 0 });
  using one = new ShmLoadSnapshotWriter(path, { dpSize: 3, dpRank: 1 });
  zero.write(createLoadSnapshot({ dpRank: 0, timestamp: 1.5, numRunningReqs: 3, ...sections }));
  one.write(createLoadSnapshot({ dpRank: 1, tokenUsage: 0.25, decodeMoments: [1, 2.5] }));
  await using theirs = await LoadRoute.start(path, 3);
  using reader = new ShmLoadSnapshotReader(path);
  await using handler = createLoadHandler(reader, {
    engine: { version: "0.5.23", numAccelerators: 1 },
  });
  const ask = (query: string) => handler.fetch(new Request(`http://x/v1/loads?${query}`));
  for (const query of QUERIES) {
    const expected = await fetch(new URL(`v1/loads?${query}`, theirs.url));
    const response = await ask(query);
    assert.equal(response.status, expected.status, query);
    assert.equal(response.headers.get("content-type"), expected.headers.get("content-type"), query);
    const [ours, other] = [await response.json(), await expected.json()];
    if (response.ok) {
      for (const answer of [ours, other]) {
        assert.match(answer.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/);
        delete answer.timestamp;
      }
    }
    assert.deepEqual(ours, other, query);
  }
  const [ours, other] = await Promise.all([
    ask("format=prometheus"),
    fetch(new URL("v1/loads?format=prometheus", theirs.url)),
  ]);
  assert.equal(ours.headers.get("content-type"), other.headers.get("content-type"));
  const lines = async (response: Response) => (await response.text()).split("\n").length;
  assert.equal(await lines(ours), await lines(other));
  // What SGLang fails at is refused.
  const failed = await fetch(new URL("v1/loads?include=gpu", theirs.url));
  await failed.body?.cancel();
  assert.equal(failed.status, 500);
  assert.equal((await ask("include=gpu")).status, 400);
});
