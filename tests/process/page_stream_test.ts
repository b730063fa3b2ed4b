/** The page's connection to the stream, without a browser: how it breaks, waits and goes on. */

import assert from "node:assert/strict";
import { LoadStream, type StreamPhase } from "../../src/http/page/client/load_stream.js";
import { PageServer } from "../support/page_server.ts";
import { until } from "../support/wait.ts";

/** A stream, and all that it told. */
class Listener implements AsyncDisposable {
  readonly told: string[] = [];
  readonly events: string[] = [];
  readonly stream: LoadStream;
  readonly #running: Promise<void>;

  constructor(url: string, options: { token?: string; silenceMs?: number } = {}) {
    this.stream = new LoadStream({
      ...options,
      url,
      onEvent: (type) => this.events.push(type),
      onPhase: (phase, reason) => {
        const text = reason === null ? phase : `${phase}: ${reason}`;
        if (this.told.at(-1) !== text) this.told.push(text);
      },
    });
    this.#running = this.stream.run();
  }

  /** Waits for a phase to be told. */
  async reaches(phase: StreamPhase): Promise<void> {
    await until(`it is ${phase}`, () => this.told.at(-1)?.split(":")[0] === phase);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stream.close();
    await this.#running;
  }
}

const streamOf = (server: PageServer) => `${server.url}v1/loads/stream`;

Deno.test("it is live when events arrive, and a server's last word is the reason of its end", async () => {
  await using server = new PageServer();
  await using listener = new Listener(streamOf(server));
  await listener.reaches("live");
  assert.deepEqual(listener.events, ["health", "loads"]);
  server.drop("the server closes");
  await listener.reaches("retrying");
  assert.deepEqual(listener.told, ["connecting", "live", "retrying: the server closes"]);
});

Deno.test("it comes back by itself, and goes on after the event that it saw last", async () => {
  await using server = new PageServer();
  await using listener = new Listener(streamOf(server));
  await listener.reaches("live");
  server.tell([]);
  await until("the event is there", () => listener.events.length === 3);
  const last = server.lastEventId;
  server.drop();
  await until("it was refused twice", () => server.requests.length >= 3);
  assert.ok(listener.told.includes("retrying: the server ended the stream"));
  assert.equal(listener.told.at(-1), "retrying: the server answers 503");
  server.accept();
  await listener.reaches("live");
  assert.deepEqual(server.requests.slice(1).map(({ lastEventId }) => lastEventId).at(-1), last);
});

Deno.test("a stream that is silent counts as broken, though its connection stands", async () => {
  await using server = new PageServer();
  await using listener = new Listener(streamOf(server), { silenceMs: 100 });
  await listener.reaches("live");
  await listener.reaches("retrying");
  assert.equal(listener.told.at(-1), "retrying: nothing is heard of the server");
});

Deno.test("comments keep a stream alive that has nothing else to say", async () => {
  await using server = new PageServer();
  const beat = setInterval(() => server.write(": still here\n\n"), 50);
  try {
    await using listener = new Listener(streamOf(server), { silenceMs: 500 });
    await listener.reaches("live");
    await new Promise((resolve) => setTimeout(resolve, 1200));
    assert.deepEqual(listener.told, ["connecting", "live"]);
  } finally {
    clearInterval(beat);
  }
});

Deno.test("a wrong token is not tried again and again; another one is, at once", async () => {
  await using server = new PageServer({ token: "right" });
  await using listener = new Listener(streamOf(server), { token: "wrong" });
  await listener.reaches("refused");
  await new Promise((resolve) => setTimeout(resolve, 400));
  assert.equal(server.requests.length, 1);
  listener.stream.useToken("right");
  await listener.reaches("live");
  assert.deepEqual(listener.told, ["connecting", "refused: the server wants a token", "live"]);
});

Deno.test("where nothing listens, or something else does, that is told", async () => {
  let url: string;
  {
    await using server = new PageServer();
    url = server.url;
    await using other = new Listener(server.url);
    await other.reaches("retrying");
    assert.equal(other.told.at(-1), "retrying: what answers is not the stream");
  }
  await using listener = new Listener(url);
  await listener.reaches("retrying");
  assert.equal(listener.told.at(-1), "retrying: the server cannot be reached");
});

Deno.test("closing ends it while it connects, listens, waits, and twice", async () => {
  await using server = new PageServer();
  for (const phase of ["connecting", "live", "retrying"] as const) {
    if (phase === "retrying") server.drop();
    await using listener = new Listener(streamOf(server));
    if (phase !== "connecting") await listener.reaches(phase);
    listener.stream.close();
  }
  await until("the server has no stream left", () => server.streams === 0);
});
