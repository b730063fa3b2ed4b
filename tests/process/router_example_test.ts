/** The reverse proxy as a user runs it, with an embedded engine and in front of other servers. */

import assert from "node:assert/strict";
import { ShmLoadSnapshotReader } from "../../mod.ts";
import { SimulatedEngine } from "../../examples/engine.ts";
import { NO_ARRIVALS } from "../../examples/engine/workload.ts";
import { TempShm } from "../peers/temp_shm.ts";
import { ExampleProcess, exists, until } from "./fixtures/example_process.ts";

/** What the example asks for, and nothing else. */
const FLAGS = [
  "--unstable-no-legacy-abort",
  "--allow-ffi",
  "--allow-read",
  "--allow-net=127.0.0.1",
];
const HELLO = [{ role: "user", content: "Hello" }];
/** So many tokens that no test sees the end. */
const ENDLESS = 8_192;

/** A router that answers. */
class Router extends ExampleProcess {
  constructor(...args: readonly string[]) {
    super("router.ts", ["--port", "0", ...args], FLAGS);
  }

  get url(): string {
    return /curl \S+ \S+ (http:\/\/127\.0\.0\.1:\d+)\//.exec(this.stdout)![1]!;
  }

  get path(): string {
    return /^Routing by (\S+)$/m.exec(this.stdout)![1]!;
  }

  static async start(...args: readonly string[]): Promise<Router> {
    const router = new Router(...args);
    try {
      await router.printed("start.ts --path");
      return router;
    } catch (error) {
      await router[Symbol.asyncDispose]();
      throw error;
    }
  }

  post(path: string, body: unknown, signal: AbortSignal | null = null): Promise<Response> {
    return fetch(this.url + path, { method: "POST", body: JSON.stringify(body), signal });
  }

  async outstanding(): Promise<number> {
    return (await (await fetch(`${this.url}/ranks`)).json()).outstanding;
  }

  /** Ends it as an operator does. It complains of nothing and leaves nothing. */
  async end(): Promise<void> {
    this.kill("SIGTERM");
    const { code, stderr } = await this.outcome;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  }
}

function rankOf(response: Response): number {
  const header = response.headers.get("x-dp-rank");
  assert.match(header ?? "none", /^\d+$/);
  return Number(header);
}

/** Requests that run or wait, over all ranks of a slot file. */
function requestsIn(reader: ShmLoadSnapshotReader): number {
  return reader.readAll().reduce((sum, it) => sum + it.numRunningReqs + it.numWaitingReqs, 0);
}

Deno.test("answers come streamed and whole, and name their rank", async () => {
  await using router = await Router.start("--ranks", "4");
  const asked = { messages: HELLO, max_tokens: 7 };

  const streamed = await router.post("/v1/chat/completions", { ...asked, stream: true });
  assert.equal(streamed.headers.get("content-type"), "text/event-stream");
  assert.ok(rankOf(streamed) < 4);
  const events = (await streamed.text()).trimEnd().split("\n\n").map((it) => it.slice(6));
  assert.equal(events.pop(), "[DONE]");
  const choices = events.map((event) => JSON.parse(event).choices[0]);
  assert.equal(choices.pop().finish_reason, "length");
  const text = choices.map(({ delta }) => delta.content).join("");

  const whole = await router.post("/v1/chat/completions", asked);
  assert.ok(rankOf(whole) < 4);
  const { choices: [choice], usage } = await whole.json();
  assert.equal(choice.message.content, text);
  assert.deepEqual(usage, { prompt_tokens: 2, completion_tokens: 7, total_tokens: 9 });

  const old = await router.post("/v1/completions", { prompt: "Hello", max_tokens: 7 });
  assert.equal((await old.json()).choices[0].text, text);
  const models = await fetch(`${router.url}/v1/models`);
  assert.ok(rankOf(models) < 4);
  assert.equal((await models.json()).data[0].id, "simulated");
  assert.equal(await router.outstanding(), 0);
  await router.end();
  assert.equal(await exists(router.path), false);
});

Deno.test("many requests at once spread over all ranks but a drained one", async () => {
  await using router = await Router.start("--ranks", "4");
  const drain = `${router.url}/ranks/2/drain`;
  assert.equal((await fetch(drain, { method: "PUT" })).status, 204);
  const spread = async (): Promise<number[]> => {
    const ranks = await Promise.all(Array.from({ length: 40 }, async (_, at) => {
      const answer = await router.post("/v1/completions", {
        prompt: `Question ${at}`,
        stream: true,
      });
      assert.match(await answer.text(), /\[DONE\]\n\n$/);
      return rankOf(answer);
    }));
    return [...new Set(ranks)].sort();
  };
  assert.deepEqual(await spread(), [0, 1, 3]);
  assert.equal(await router.outstanding(), 0);
  assert.equal((await fetch(drain, { method: "DELETE" })).status, 204);
  assert.deepEqual(await spread(), [0, 1, 2, 3]);
  await router.end();
});

for (const stream of [true, false]) {
  const how = stream ? "amidst its answer" : "before its answer";
  Deno.test(`a client that leaves ${how} frees the rank`, async () => {
    await using router = await Router.start("--ranks", "2");
    using reader = new ShmLoadSnapshotReader(router.path);
    assert.equal(requestsIn(reader), 0);
    const client = new AbortController();
    const body = { prompt: "Hello", stream, max_tokens: ENDLESS };
    const answer = router.post("/v1/completions", body, client.signal);
    if (stream) await (await answer).body!.getReader().read();
    await until(() => requestsIn(reader) === 1, () => `${requestsIn(reader)} requests`);
    assert.equal(await router.outstanding(), 1);

    client.abort();
    if (!stream) await assert.rejects(answer, { name: "AbortError" });
    await until(() => requestsIn(reader) === 0, () => `${requestsIn(reader)} requests`);
    assert.deepEqual(reader.readAll().map((it) => it.numUsedTokens), [0, 0]);
    assert.equal(await router.outstanding(), 0);
    await router.end();
  });
}

Deno.test("what is no request for a model is refused as OpenAI's clients expect", async () => {
  await using router = await Router.start("--ranks", "1");
  const refusal = async (path: string, init: RequestInit): Promise<unknown[]> => {
    const answer = await fetch(router.url + path, init);
    return [answer.status, (await answer.json()).error.code, answer.headers.get("allow")];
  };
  const body = "not JSON";
  const post = { method: "POST" };
  assert.deepEqual(await refusal("/", {}), [404, "not_found", null]);
  assert.deepEqual(await refusal("/ranks/1/drain", { method: "PUT" }), [404, "not_found", null]);
  assert.deepEqual(await refusal("/v1/models", post), [405, "method_not_allowed", "GET"]);
  assert.deepEqual(await refusal("/v1/completions", {}), [405, "method_not_allowed", "POST"]);
  const chat = "/v1/chat/completions";
  assert.deepEqual(await refusal(chat, { ...post, body }), [400, "invalid_body", null]);
  const long = JSON.stringify({ prompt: "x".repeat(300_000) });
  const tooLong = await refusal(chat, { ...post, body: long });
  assert.deepEqual(tooLong, [400, "context_length_exceeded", null]);

  assert.equal((await fetch(`${router.url}/ranks/0/drain`, { method: "PUT" })).status, 204);
  const none = await router.post(chat, { messages: HELLO });
  assert.deepEqual([none.status, none.headers.get("retry-after")], [503, "1"]);
  assert.equal((await none.json()).error.code, "no_rank_available");
  await router.end();
});

Deno.test("SIGTERM ends it amidst answers, and nothing stays in shared memory", async () => {
  await using router = await Router.start("--ranks", "2");
  using reader = new ShmLoadSnapshotReader(router.path);
  const asked = { prompt: "Hello", stream: true, max_tokens: ENDLESS };
  const streamed = [1, 2, 3].map(() => router.post("/v1/completions", asked));
  const whole = router.post("/v1/completions", { ...asked, stream: false });
  const texts = [...streamed, whole].map(async (answer) => await (await answer).text());
  const ended = Promise.allSettled(texts);
  await until(() => requestsIn(reader) === 4, () => `${requestsIn(reader)} requests`);
  assert.equal(await exists(router.path), true);

  await router.end();
  for (const { status } of (await ended).slice(0, 3)) assert.equal(status, "rejected");
  assert.equal(await exists(router.path), false);
});

Deno.test("requests of a real engine go to the server of their rank, bodies as streams", async () => {
  using file = new TempShm();
  using engine = SimulatedEngine.publishingTo(file.path, { dpSize: 2, arrivals: NO_ARRIVALS });
  engine.step(0);
  let received = 0;
  let gone = 0;
  const serve = (name: string) =>
    Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
      const { pathname } = new URL(request.url);
      assert.equal(request.headers.get("authorization"), "Bearer key");
      for await (const part of request.body ?? []) received += part.length;
      if (pathname === `/${name}/v1/models`) return new Response(name, { status: 418 });
      const endless = new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
        cancel: () => void gone++,
      });
      return new Response(endless);
    });
  await using zero = serve("zero");
  await using one = serve("one");
  await using router = await Router.start(
    ...["--path", file.path],
    ...["--backend", `http://127.0.0.1:${zero.addr.port}/zero`],
    ...["--backend", `http://127.0.0.1:${one.addr.port}/one/`],
  );
  const headers = { authorization: "Bearer key" };
  for (let asked = 0; asked < 4; asked++) {
    const answer = await fetch(`${router.url}/v1/models`, { headers });
    assert.equal(answer.status, 418);
    assert.equal(await answer.text(), ["zero", "one"][rankOf(answer)]);
  }

  const bytes = 3_000_000;
  const parts = Array.from({ length: 30 }, () => new Uint8Array(bytes / 30));
  const answer = await fetch(`${router.url}/v1/completions`, {
    ...{ method: "POST", headers, body: ReadableStream.from(parts) },
  });
  const reader = answer.body!.getReader();
  await reader.read();
  assert.equal(received, bytes);
  assert.equal(await router.outstanding(), 1);
  await reader.cancel();
  await until(() => gone === 1, () => "the backend was not told");
  assert.equal(await router.outstanding(), 0);

  await zero.shutdown();
  await one.shutdown();
  const lost = await fetch(`${router.url}/v1/models`, { headers });
  assert.deepEqual([lost.status, (await lost.json()).error.code], [502, "bad_gateway"]);
  assert.equal(await router.outstanding(), 0);
  await router.end();
});

Deno.test("curl sees the tokens and the rank", async () => {
  if (!(await exists("/usr/bin/curl"))) {
    assert.equal(Deno.env.get("CI"), undefined, "curl is missing");
    // deno-lint-ignore no-console -- the reason for a test that is left out is printed
    console.log("Not tried: there is no /usr/bin/curl");
    return;
  }
  await using router = await Router.start("--ranks", "2");
  const { code, stdout } = await new Deno.Command("/usr/bin/curl", {
    args: [
      ...["--noproxy", "*", "-sS", "-N", "-i", `${router.url}/v1/completions`],
      ...["-d", '{"prompt": "Hello", "stream": true}'],
    ],
    stdin: "null",
  }).output();
  assert.equal(code, 0);
  const text = new TextDecoder().decode(stdout);
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(text, /^x-dp-rank: [01]\r$/m);
  assert.match(text, /\ndata: \{.*"text":" one word.*\n\ndata: \[DONE\]\n\n$/s);
  await router.end();
});

for (
  const [what, args] of [
    ["an engine without its servers", ["--path", "a"]],
    ["servers without their engine", ["--backend", "http://127.0.0.1:1"]],
    ["no URL", ["--path", "a", "--backend", "127.0.0.1:1"]],
    ["a port that is none", ["--port", "65536"]],
  ] as const
) {
  Deno.test(`${what} is answered with the usage and exit code 2`, async () => {
    await using router = new ExampleProcess("router.ts", args, FLAGS);
    const { code, stdout, stderr } = await router.outcome;
    assert.deepEqual({ code, stdout }, { code: 2, stdout: "" });
    assert.ok(stderr.includes("deno task route [flags]"), stderr);
  });
}
