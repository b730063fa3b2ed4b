/** What the routes answer, without a network. */

import assert from "node:assert/strict";
import { createLoadHandler, type LoadHandlerOptions } from "../../src/http/mod.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { toDict } from "../../src/snapshot/to_dict.ts";
import { MemoryReader } from "../support/memory_reader.ts";
import { SlotPath } from "../support/slot_path.ts";

const SECTIONS = { memory: {}, speculative: {}, lora: {}, disaggregation: {}, queues: {} } as const;

/** Asks a handler of its own once. */
async function ask(
  reader: MemoryReader | ShmLoadSnapshotReader,
  path: string,
  options: LoadHandlerOptions = {},
  init: RequestInit = {},
): Promise<Response> {
  await using handler = createLoadHandler(reader, options);
  return await handler.fetch(new Request(`http://engine.example${path}`, init));
}

Deno.test("/v1/loads is SGLang's object, with the loads in order of rank", async () => {
  const reader = MemoryReader.live(2);
  const zero = reader.put({ dpRank: 0, numRunningReqs: 7, ...SECTIONS });
  const response = await ask(reader, "/v1/loads", {
    engine: { version: "0.5.23", accelerator: "NVIDIA GB300", numAccelerators: 4 },
  });
  assert.equal(response.headers.get("content-type"), "application/json");
  const answer = await response.json();
  assert.deepEqual(
    Object.keys(answer),
    ["timestamp", "version", "accelerator", "num_accelerators", "loads"],
  );
  assert.match(answer.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/);
  assert.deepEqual(
    [answer.version, answer.accelerator, answer.num_accelerators],
    ["0.5.23", "NVIDIA GB300", 4],
  );
  assert.deepEqual(answer.loads, [toDict(zero), toDict(reader.read(1)!)]);
});

Deno.test("an answer follows each publication, and is the same text until the next", async () => {
  const reader = MemoryReader.live(2);
  await using handler = createLoadHandler(reader);
  const loads = async () => {
    const text = await (await handler.fetch(new Request("http://x/v1/loads"))).text();
    return text.slice(text.indexOf('"loads"'));
  };
  const first = await loads();
  assert.equal(await loads(), first);
  reader.put({ dpRank: 1, numRunningReqs: 99 });
  const second = await loads();
  assert.notEqual(second, first);
  assert.match(second, /"dp_rank":1,"num_running_reqs":99/);
});

Deno.test("include chooses the sections, and those alone", async () => {
  const reader = new MemoryReader(1);
  const snapshot = reader.put({ ...SECTIONS });
  for (
    const [query, parts] of [
      ["include=core", ["core"]],
      ["include=queues,memory", ["queues", "memory"]],
      ["include=%20spec%20,+lora", ["spec", "lora"]],
      ["include=all,unheard", ["all"]],
      ["include=", ["all"]],
      ["include=core&include=disagg", ["disagg"]],
    ] as const
  ) {
    const { loads: [load] } = await (await ask(reader, `/v1/loads?${query}`)).json();
    assert.deepEqual(load, toDict(snapshot, parts), query);
  }
});

Deno.test("an unknown section is refused with those that are known", async () => {
  for (const query of ["gpu", "core,gpu", "Core", "speculative", ",", "core,"]) {
    const response = await ask(MemoryReader.live(1), `/v1/loads?include=${query}`);
    assert.equal(response.status, 400, query);
    const { detail } = await response.json();
    assert.match(detail, /: all, core, disagg, lora, memory, queues, spec$/);
  }
});

Deno.test("dp_rank chooses one rank; one that is not there gives an empty list", async () => {
  const reader = MemoryReader.live(2);
  reader.resize(3);
  const ranks = async (text: string) => {
    const response = await ask(reader, `/v1/loads?dp_rank=${text}`);
    assert.equal(response.status, 200, text);
    const { loads } = await response.json();
    return loads.map((load: { dp_rank: number }) => load.dp_rank);
  };
  for (const text of ["1", "%2B1", "01", "%201%20", "1.0"]) {
    assert.deepEqual(await ranks(text), [1]);
  }
  for (const text of ["2", "3", "-1", "99999999999999999999"]) {
    assert.deepEqual(await ranks(text), []);
  }
  assert.deepEqual(await ranks("x&dp_rank=0"), [0]);
});

Deno.test("a dp_rank that is no integer is refused as FastAPI does", async () => {
  for (const text of ["x", "", "1.5", "0x1", "1e3", "NaN", "1,2", "1__0"]) {
    const response = await ask(MemoryReader.live(1), `/v1/loads?dp_rank=${text}`);
    assert.equal(response.status, 422, text);
    assert.deepEqual(await response.json(), {
      detail: [{
        type: "int_parsing",
        loc: ["query", "dp_rank"],
        msg: "Input should be a valid integer, unable to parse string as an integer",
        input: text,
      }],
    });
  }
});

Deno.test("age and state are told when asked for, and not otherwise", async () => {
  const reader = MemoryReader.live(2);
  reader.judge(1, "stale", 12_345.6);
  const fresh = [[0, "live"], [12_346, "stale"]];
  const seen = async (path: string, options: LoadHandlerOptions = {}) => {
    const { loads } = await (await ask(reader, path, options)).json();
    return loads.map((load: Record<string, unknown>) => [load["age_ms"], load["state"]]);
  };
  const none = [[undefined, undefined], [undefined, undefined]];
  assert.deepEqual(await seen("/v1/loads"), none);
  assert.deepEqual(await seen("/v1/loads?freshness=0"), none);
  assert.deepEqual(await seen("/v1/loads?freshness=1"), fresh);
  assert.deepEqual(await seen("/v1/loads", { freshness: true }), fresh);
});

Deno.test("values that JSON has not are null, and the answer stays JSON", async () => {
  const reader = new MemoryReader(1);
  reader.put({ genThroughput: NaN, tokenUsage: Infinity, decodeMoments: [1, -Infinity] });
  const { loads: [load] } = await (await ask(reader, "/v1/loads?freshness=1")).json();
  assert.deepEqual(
    [load.gen_throughput, load.token_usage, load.decode_moments, load.state],
    [null, null, [1, null], "live"],
  );
});

Deno.test("/get_load tells what older routers ask for", async () => {
  const reader = new MemoryReader(2);
  reader.put({
    dpRank: 1,
    timestamp: 12.5,
    numRunningReqs: 3,
    numWaitingReqs: 2,
    numTotalTokens: 100,
    numUsedTokens: 70,
  });
  assert.deepEqual(await (await ask(reader, "/get_load")).json(), [{
    dp_rank: 1,
    num_reqs: 5,
    num_waiting_reqs: 2,
    num_tokens: 100,
    num_pending_tokens: 30,
    ts_tic: 12.5,
  }]);
});

Deno.test("/healthz is 200 only when every rank is live, and says which is what", async () => {
  const reader = MemoryReader.live(2);
  const ready = await ask(reader, "/healthz");
  assert.equal(ready.status, 200);
  assert.deepEqual(await ready.json(), {
    status: "ready",
    reason: null,
    dp_size: 2,
    ranks: [{ dp_rank: 0, age_ms: 0, state: "live" }, { dp_rank: 1, age_ms: 0, state: "live" }],
  });
  for (const state of ["unreported", "stale", "corrupt"] as const) {
    reader.judge(1, state, null);
    const response = await ask(reader, "/healthz");
    assert.equal(response.status, 503);
    const { reason, ranks } = await response.json();
    assert.equal(reason, "1 of 2 ranks not live");
    assert.deepEqual(ranks[1], { dp_rank: 1, age_ms: null, state });
  }
});

Deno.test("an engine that is not there is served, and said", async () => {
  using file = new SlotPath();
  using reader = new ShmLoadSnapshotReader(file.path);
  assert.deepEqual((await (await ask(reader, "/v1/loads")).json()).loads, []);
  assert.deepEqual((await (await ask(reader, "/v1/loads?dp_rank=0")).json()).loads, []);
  assert.deepEqual(await (await ask(reader, "/get_load")).json(), []);
  const health = await ask(reader, "/healthz");
  assert.equal(health.status, 503);
  assert.equal((await health.json()).reason, "No engine was seen yet");
  assert.match(await (await ask(reader, "/metrics")).text(), /^loadslots_up 1$/m);
  assert.equal(await (await ask(reader, "/v1/loads?format=prometheus")).text(), "\n");
});

for (const kind of ["closed", "failed"] as const) {
  Deno.test(`a reader that has ${kind} is told with 503, and metrics say so`, async () => {
    const reader = MemoryReader.live(2);
    if (kind === "closed") reader.close();
    else reader.fail(new Error("Cannot receive any more: the worker crashed"));
    const reason = kind === "closed" ? "Cannot read load: the reader is closed" : /crashed/;
    for (const path of ["/v1/loads", "/v1/loads?dp_rank=7", "/get_load", "/v1/loads/stream"]) {
      const response = await ask(reader, path);
      assert.equal(response.status, 503, path);
      const { detail } = await response.json();
      if (typeof reason === "string") assert.equal(detail, reason);
      else assert.match(detail, reason);
    }
    const health = await ask(reader, "/healthz");
    assert.equal(health.status, 503);
    assert.deepEqual((await health.json()).ranks, []);
    const metrics = await ask(reader, "/metrics");
    assert.equal(metrics.status, 200);
    assert.match(await metrics.text(), /^loadslots_up 0$/m);
  });
}
