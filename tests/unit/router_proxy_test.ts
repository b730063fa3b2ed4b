/** The proxy of examples/router.ts by itself: what it tells the router, and how bodies flow. */

import assert from "node:assert/strict";
import { type Backend, proxy, type RankChooser } from "../../examples/router/proxy.ts";
import { type DispatchOptions, NoRankAvailableError } from "../../mod.ts";

/** Says rank 3 to all, and writes down what it is told. */
class Chooser implements RankChooser {
  readonly asked: DispatchOptions[] = [];
  completed = 0;

  dispatch(options: DispatchOptions) {
    this.asked.push(options);
    return { dpRank: 3, complete: () => void this.completed++ };
  }
}

const NEVER = new AbortController().signal;
const ADDRESS = "http://127.0.0.1/v1/completions";

function post(body: BodyInit, signal: AbortSignal | null = null): Request {
  return new Request(ADDRESS, { method: "POST", body, signal });
}

/** Parts without end, and how many of them were asked for. */
function endless(): {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly pulled: () => number;
} {
  let pulled = 0;
  const body = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array([++pulled % 256])),
  }, { highWaterMark: 0 });
  return { body, pulled: () => pulled };
}

/** Lets everything run that is ready. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("an answer that ends is complete once, and not before its end", async () => {
  const chooser = new Chooser();
  const answer = await proxy(chooser, () => Promise.resolve(new Response("hi")), NEVER)(post("{}"));
  assert.equal(answer.headers.get("x-dp-rank"), "3");
  assert.equal(chooser.completed, 0);
  assert.equal(await answer.text(), "hi");
  assert.equal(chooser.completed, 1);
});

Deno.test("an answer that breaks, that has no body, or that never comes is complete once", async () => {
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error("lost")) });
  const chooser = new Chooser();
  const ask = (backend: Backend) => proxy(chooser, backend, NEVER)(post("{}"));

  await assert.rejects((await ask(() => Promise.resolve(new Response(broken)))).text(), /lost/);
  assert.equal(chooser.completed, 1);
  const empty = await ask(() => Promise.resolve(new Response(null, { status: 204 })));
  assert.deepEqual([empty.status, chooser.completed], [204, 2]);
  const lost = await ask(() => Promise.reject(new TypeError("refused")));
  assert.deepEqual([lost.status, lost.headers.get("x-dp-rank"), chooser.completed], [502, "3", 3]);
});

Deno.test("a client that gives an answer up ends the backend's request, and is counted once", async () => {
  const chooser = new Chooser();
  let backendSignal = NEVER;
  const silent = new ReadableStream<Uint8Array<ArrayBuffer>>({ pull: () => new Promise(() => {}) });
  const answer = await proxy(chooser, (_, request) => {
    backendSignal = request.signal;
    return Promise.resolve(new Response(silent));
  }, NEVER)(post("{}"));
  const reader = answer.body!.getReader();
  const read = reader.read();
  await settle();
  await reader.cancel();
  assert.equal((await read).done, true);
  await settle();
  assert.deepEqual([chooser.completed, backendSignal.aborted], [1, true]);
});

for (const who of ["client", "router"] as const) {
  Deno.test(`while there is no answer, the ${who}'s end is the backend's`, async () => {
    const chooser = new Chooser();
    const ended = new AbortController();
    const [client, router] = who === "client" ? [ended.signal, NEVER] : [NEVER, ended.signal];
    const answer = proxy(
      chooser,
      (_, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
      router,
    )(post("{}", client));
    await settle();
    assert.equal(chooser.completed, 0);
    ended.abort();
    assert.equal((await answer).status, who === "client" ? 502 : 503);
    assert.equal(chooser.completed, 1);
  });
}

Deno.test("an answer is read no faster than it is taken", async () => {
  const { body, pulled } = endless();
  const backend = () => Promise.resolve(new Response(body));
  const answer = await proxy(new Chooser(), backend, NEVER)(post("{}"));
  const reader = answer.body!.getReader();
  await settle();
  assert.equal(pulled(), 0);
  for (let taken = 0; taken < 5; taken++) await reader.read();
  await settle();
  assert.equal(pulled(), 5);
  await reader.cancel();
});

Deno.test("of a long body only the beginning is read before the backend takes it", async () => {
  const part = new Uint8Array(65_536).fill(32);
  let pulled = 0;
  const body = new ReadableStream({
    pull(controller) {
      if (pulled++ < 40) controller.enqueue(part);
      else controller.close();
    },
  }, { highWaterMark: 0 });
  const chooser = new Chooser();
  const answer = await proxy(chooser, async (_, request) => {
    await settle();
    assert.ok(pulled <= 5, `${pulled} parts`); // four are looked at
    let length = 0;
    for await (const some of request.body!) length += some.length;
    return Response.json(length);
  }, NEVER)(post(body));
  assert.equal(await answer.json(), 40 * part.length);
  assert.deepEqual(chooser.asked, [{ estimatedTokens: 65_536, prefixKey: undefined }]);
});

Deno.test("the router is told the prompt's length, and who or what it begins with", async () => {
  const chooser = new Chooser();
  const ask = (body: unknown) =>
    proxy(chooser, () => Promise.resolve(new Response()), NEVER)(post(JSON.stringify(body)));
  const system = { role: "system", content: "s".repeat(400) };
  await ask({ messages: [system, { role: "user", content: "u".repeat(40) }] });
  await ask({ messages: [system], user: "ann" });
  await ask({ prompt: "p".repeat(41) });
  await ask({ prompt: "" });
  assert.deepEqual(chooser.asked, [
    { estimatedTokens: 110, prefixKey: "s".repeat(256) },
    { estimatedTokens: 100, prefixKey: "user ann" },
    { estimatedTokens: 11, prefixKey: "p".repeat(41) },
    { estimatedTokens: 1, prefixKey: "" },
  ]);
});

Deno.test("without a rank the client is asked to come back", async () => {
  const none: RankChooser = {
    dispatch: () => {
      throw new NoRankAvailableError(["stale", "drained"]);
    },
  };
  const answer = await proxy(none, () => Promise.reject(new Error("asked")), NEVER)(post("{}"));
  assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
  const { error } = await answer.json();
  assert.deepEqual([error.code, error.type], ["no_rank_available", "server_error"]);
});

Deno.test("headers of the connection stay there, the others are passed on", async () => {
  const answer = await proxy(new Chooser(), (_, { headers }) => {
    assert.equal(headers.get("authorization"), "Bearer key");
    for (const name of ["te", "x-hop"]) assert.equal(headers.get(name), null);
    return Promise.resolve(new Response("", { headers: { "keep-alive": "5", "x-engine": "a" } }));
  }, NEVER)(
    new Request(ADDRESS, {
      method: "POST",
      headers: { authorization: "Bearer key", connection: "x-hop", "x-hop": "1", te: "trailers" },
      body: "{}",
    }),
  );
  assert.deepEqual([answer.status, answer.headers.get("x-engine")], [200, "a"]);
  assert.equal(answer.headers.get("keep-alive"), null);
  await answer.body?.cancel();
});

Deno.test("a Connection header that names no header is passed over, in requests and answers", async () => {
  const chooser = new Chooser();
  const passed: Request[] = [];
  const backend: Backend = (_, request) => {
    passed.push(request);
    return Promise.resolve(
      new Response("hi", { headers: { connection: "a b, x-hop", "x-hop": "1" } }),
    );
  };
  const headers = { connection: "foo bar, \u00ff, x-mine", "x-mine": "1", "x-other": "2" };
  const request = new Request(ADDRESS, { method: "POST", body: "{}", headers });
  const answer = await proxy(chooser, backend, NEVER)(request);
  assert.deepEqual([answer.status, await answer.text()], [200, "hi"]);
  assert.equal(answer.headers.get("x-hop"), null);
  assert.deepEqual(
    ["x-mine", "x-other"].map((name) => passed[0]!.headers.get(name)),
    [null, "2"],
  );
  assert.equal(chooser.completed, 1);
});
