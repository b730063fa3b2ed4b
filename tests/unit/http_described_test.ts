/** What describes the service: its metrics, and its OpenAPI document, against what it answers. */

import assert from "node:assert/strict";
import { Ajv2020 } from "npm:ajv@8.20.0/dist/2020.js";
import fc from "npm:fast-check@4.11.0";
import { createLoadHandler, type LoadHandlerOptions } from "../../src/http/mod.ts";
import { CORE_FIELDS, SECTIONS } from "../../src/snapshot/fields.ts";
import { MemoryReader } from "../support/memory_reader.ts";
import { aSnapshot } from "../support/snapshot_arbitraries.ts";

interface Document {
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
  readonly [key: string]: unknown;
}

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: unknown }>> }>
  >;
}

async function ask(reader: MemoryReader, path: string, options: LoadHandlerOptions = {}) {
  await using handler = createLoadHandler(reader, options);
  const response = await handler.fetch(new Request(`http://x${path}`));
  return { response, text: path.endsWith("stream") ? "" : await response.text() };
}

async function documentOf(options: LoadHandlerOptions = {}): Promise<Document> {
  return JSON.parse((await ask(MemoryReader.live(1), "/openapi.json", options)).text);
}

/** Checks that an answer is one that the document announces. */
async function checkAnswer(document: Document, reader: MemoryReader, path: string) {
  const { response, text } = await ask(reader, path);
  const operation = document.paths[path.split("?")[0]!]!.get;
  const announced = operation.responses[response.status];
  assert(announced !== undefined, `${path}: ${response.status} is not announced`);
  const media = response.headers.get("content-type")!;
  const schema = announced.content?.[media]?.schema;
  assert(schema !== undefined, `${path}: ${media} is not announced`);
  if (media !== "application/json") return;
  const ajv = new Ajv2020({ strict: false });
  const check = ajv.compile({ ...schema as object, components: document.components });
  assert(check(JSON.parse(text)), `${path}: ${ajv.errorsText(check.errors)}\n${text}`);
}

Deno.test("the document names every route, and they answer as it says", async () => {
  const document = await documentOf();
  assert.equal(document["openapi"], "3.1.0");
  assert.deepEqual(Object.keys(document.paths).sort(), [
    "/get_load",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/v1/loads",
    "/v1/loads/stream",
  ]);
  const closed = MemoryReader.live(1);
  closed.close();
  for (const path of Object.keys(document.paths).filter((path) => !path.endsWith("stream"))) {
    await checkAnswer(document, MemoryReader.live(2), path);
    await checkAnswer(document, new MemoryReader(0), path);
    await checkAnswer(document, closed, path);
  }
  for (const query of ["include=gpu", "dp_rank=x", "dp_rank=9", "format=prometheus"]) {
    await checkAnswer(document, MemoryReader.live(2), `/v1/loads?${query}`);
  }
});

Deno.test("whatever an engine sends, its load is as the document says", async () => {
  const document = await documentOf();
  await fc.assert(
    fc.asyncProperty(aSnapshot, fc.boolean(), async (snapshot, isFresh) => {
      const reader = new MemoryReader(1);
      reader.put({ ...snapshot, dpRank: 0 });
      await checkAnswer(document, reader, `/v1/loads?freshness=${isFresh ? 1 : 0}`);
      await checkAnswer(document, reader, "/get_load");
    }),
    { numRuns: 50 },
  );
});

Deno.test("every parameter that the document names changes the answer", async () => {
  const document = await documentOf();
  const named = document.paths["/v1/loads"]!.get.parameters.map(({ name }) => name);
  const changing: Record<string, string> = {
    dp_rank: "1",
    include: "core",
    format: "prometheus",
    freshness: "1",
  };
  assert.deepEqual(named, Object.keys(changing));
  const reader = MemoryReader.live(2);
  reader.put({ queues: {} });
  const loadsIn = (text: string) => text.slice(text.indexOf('"loads"'));
  const plain = loadsIn((await ask(reader, "/v1/loads")).text);
  for (const [name, value] of Object.entries(changing)) {
    assert.notEqual(loadsIn((await ask(reader, `/v1/loads?${name}=${value}`)).text), plain, name);
  }
});

Deno.test("the document tells where it is mounted, and of the token", async () => {
  const open = await documentOf();
  assert.deepEqual(open["servers"], [{ url: "/" }]);
  assert.equal(open["security"], undefined);
  await using handler = createLoadHandler(MemoryReader.live(1), {
    basePath: "/engine",
    token: "s3cret",
  });
  const response = await handler.fetch(
    new Request("http://x/engine/openapi.json", { headers: { authorization: "Bearer s3cret" } }),
  );
  const closed = await response.json();
  assert.deepEqual(closed.servers, [{ url: "/engine" }]);
  assert.deepEqual(closed.security, [{ token: [] }]);
  assert.ok(closed.paths["/v1/loads"].get.responses[401]);
});

/** The samples of a scrape: name with labels, and value. */
function samplesOf(text: string): Map<string, string> {
  return new Map(
    text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), line.slice(line.lastIndexOf(" ") + 1)]),
  );
}

Deno.test("metrics name every number of the field table, with its help and unit", async () => {
  const reader = new MemoryReader(1);
  reader.put({ memory: {}, speculative: {}, lora: {}, disaggregation: {}, queues: {} });
  const { text } = await ask(reader, "/metrics");
  const samples = samplesOf(text);
  const fields = [
    ...CORE_FIELDS.map((field) => ["", field] as const),
    ...SECTIONS.flatMap(({ include, fields }) =>
      fields.map((field) => [`${include}_`, field] as const)
    ),
  ];
  for (const [prefix, { wire, type, help, unit }] of fields) {
    const name = `sglang_${prefix}${wire}`;
    const isShown = type !== "string" && type !== "floats" && wire !== "dp_rank";
    assert.equal(samples.has(`${name}{dp_rank="0"}`), isShown, name);
    const line = `# HELP ${name} ${help}${unit === "" ? "" : `, in ${unit}`}\n# TYPE ${name} gauge`;
    if (isShown) assert(text.includes(line), line);
  }
});

Deno.test("metrics tell a rank that never reported from one that is idle", async () => {
  const reader = new MemoryReader(3);
  reader.put({ dpRank: 0, numRunningReqs: 0 });
  reader.put({ dpRank: 1, numRunningReqs: 4 });
  reader.judge(1, "stale", 20_500);
  reader.put({ dpRank: 2 });
  reader.judge(2, "unreported", null); // what a writer leaves before it has measured anything
  const samples = samplesOf((await ask(reader, "/metrics")).text);
  assert.equal(samples.get('sglang_num_running_reqs{dp_rank="0"}'), "0");
  assert.equal(samples.get('sglang_num_running_reqs{dp_rank="1"}'), "4");
  assert.equal(samples.get('sglang_num_running_reqs{dp_rank="2"}'), undefined);
  assert.equal(samples.get('loadslots_rank_age_seconds{dp_rank="1"}'), "20.5");
  assert.equal(samples.get('loadslots_rank_age_seconds{dp_rank="2"}'), undefined);
  assert.equal(samples.get("loadslots_dp_size"), "3");
  for (const [dpRank, is] of ["live", "stale", "unreported"].entries()) {
    for (const state of ["unreported", "live", "stale", "corrupt"]) {
      const value = samples.get(`loadslots_rank_state{dp_rank="${dpRank}",state="${state}"}`);
      assert.equal(value, state === is ? "1" : "0");
    }
  }
});

Deno.test("a rank that is gone leaves no metrics behind, and scrapes at once do not mix", async () => {
  const reader = MemoryReader.live(2);
  await using handler = createLoadHandler(reader);
  const scrape = async () =>
    samplesOf(await (await handler.fetch(new Request("http://x/metrics"))).text());
  const [one, two] = await Promise.all([scrape(), scrape()]);
  assert.deepEqual(one, two);
  assert.equal(one.get('sglang_num_running_reqs{dp_rank="1"}'), "2");
  reader.resize(1);
  const after = await scrape();
  assert.equal([...after.keys()].filter((key) => key.includes('dp_rank="1"')).length, 0);
});
