/** Who may ask what, and how requests that are none are refused. */

import assert from "node:assert/strict";
import { Hono } from "npm:hono@4.13.19";
import { createLoadHandler, type LoadHandlerOptions, serveLoad } from "../../src/http/mod.ts";
import { MemoryReader } from "../support/memory_reader.ts";

const ROUTES = [
  "/v1/loads",
  "/v1/loads/stream",
  "/get_load",
  "/metrics",
  "/healthz",
  "/openapi.json",
];

async function ask(
  path: string,
  init: RequestInit = {},
  options: LoadHandlerOptions = {},
): Promise<Response> {
  await using handler = createLoadHandler(MemoryReader.live(1), options);
  const response = await handler.fetch(new Request(`http://engine.example${path}`, init));
  await response.body?.cancel();
  return response;
}

Deno.test("another method is refused with those that there are", async () => {
  for (const path of [...ROUTES, "/"]) {
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
      const response = await ask(path, { method, body: "x" });
      assert.equal(response.status, 405, `${method} ${path}`);
      assert.equal(response.headers.get("allow"), "GET, HEAD, OPTIONS");
    }
    const options = await ask(path, { method: "OPTIONS" });
    assert.deepEqual([options.status, options.headers.get("allow")], [204, "GET, HEAD, OPTIONS"]);
  }
});

Deno.test("HEAD answers like GET without a body, and opens no stream", async () => {
  await using handler = createLoadHandler(MemoryReader.live(1));
  for (const path of ROUTES) {
    const response = await handler.fetch(new Request(`http://x${path}`, { method: "HEAD" }));
    assert.equal(response.status, 200, path);
    assert.equal(response.body, null);
  }
  assert.equal(handler.stats().streams.opened, 0);
});

Deno.test("other paths are not found, however they are written", async () => {
  for (
    const path of [
      "/v1",
      "/v1/loads/",
      "//v1/loads",
      "/v1//loads",
      "/V1/LOADS",
      "/v1/loads/..%2f..%2fetc%2fpasswd",
      "/..%2f..%2fetc/passwd",
      "/v1/loads%00",
      "/%zz",
      "/assets/",
      "/assets/../page.html",
      "/assets/..%2fassets.ts",
      "/assets/page.css%00.html",
      "/__proto__",
      "/assets/constructor",
    ]
  ) {
    const response = await ask(path);
    assert.equal(response.status, 404, path);
  }
});

Deno.test("an address that is too long is refused, and one that is not is answered", async () => {
  assert.equal((await ask(`/v1/loads?x=${"a".repeat(8000)}`)).status, 200);
  assert.equal((await ask(`/v1/loads?x=${"a".repeat(9000)}`)).status, 414);
});

Deno.test("with a token every route asks for it, and the page's files do not", async () => {
  const options = { token: "s3cret" };
  const status = async (path: string, authorization?: string) => {
    const headers: HeadersInit = authorization === undefined ? {} : { authorization };
    return (await ask(path, { headers }, options)).status;
  };
  for (const path of ROUTES) {
    assert.equal(await status(path, "Bearer s3cret"), 200, path);
    assert.equal(await status(path, "bearer  s3cret"), 200, path);
    for (
      const wrong of [
        undefined,
        "",
        "Bearer",
        "Bearer ",
        "Bearer s3cre",
        "Bearer s3cret!",
        "Bearer S3CRET",
        "Basic s3cret",
        "s3cret",
        `Bearer ${"s".repeat(5000)}`,
      ]
    ) assert.equal(await status(path, wrong), 401, `${path} ${wrong}`);
  }
  assert.equal(await status("/"), 200);
  assert.equal(await status("/assets/page.css"), 200);
  const refusal = await ask("/v1/loads", {}, options);
  assert.equal(refusal.headers.get("www-authenticate"), "Bearer");
  assert.throws(() => createLoadHandler(MemoryReader.live(1), { token: "" }), RangeError);
  assert.throws(() => createLoadHandler(MemoryReader.live(1), { token: "a b" }), RangeError);
});

Deno.test("pages of other origins may read the answers only when they are named", async () => {
  const origin = "https://board.example";
  const allowed = async (options: LoadHandlerOptions, from = origin, path = "/v1/loads") => {
    const response = await ask(path, { headers: { origin: from } }, options);
    return response.headers.get("access-control-allow-origin");
  };
  assert.equal(await allowed({}), null);
  assert.equal(await allowed({ cors: { origins: [origin] } }), origin);
  assert.equal(await allowed({ cors: { origins: [origin] } }, origin, "/metrics"), origin);
  assert.equal(await allowed({ cors: { origins: [origin] } }, "https://evil.example"), null);
  assert.equal(await allowed({ cors: { origins: "*" } }, "https://evil.example"), "*");
  const preflight = await ask("/v1/loads", { method: "OPTIONS", headers: { origin } }, {
    cors: { origins: [origin] },
    token: "s3cret",
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-origin"), origin);
  assert.match(preflight.headers.get("access-control-allow-headers")!, /authorization/);
  // A page has to be able to read why it is refused.
  const refused = await ask("/v1/loads", { headers: { origin } }, {
    cors: { origins: [origin] },
    token: "s3cret",
  });
  assert.equal(refused.headers.get("access-control-allow-origin"), origin);
});

Deno.test("every answer forbids what a browser might do beyond showing it", async () => {
  for (const path of [...ROUTES, "/nowhere", "/"]) {
    const { headers } = await ask(path);
    assert.equal(headers.get("x-content-type-options"), "nosniff", path);
    assert.match(headers.get("content-security-policy")!, /default-src 'none'/);
    assert.match(headers.get("content-security-policy")!, /frame-ancestors 'none'/);
    assert.match(headers.get("cache-control")!, path === "/" ? /no-cache/ : /no-store/);
  }
});

Deno.test("it is mounted below a path, in a service of Hono too", async () => {
  const reader = MemoryReader.live(1);
  await using below = createLoadHandler(reader, { basePath: "/engine/a" });
  const get = async (fetch: typeof below.fetch, path: string) =>
    (await fetch(new Request(`http://x${path}`))).status;
  assert.equal(await get(below.fetch, "/engine/a/v1/loads"), 200);
  assert.equal(await get(below.fetch, "/engine/a/"), 200);
  assert.equal(await get(below.fetch, "/engine/a"), 308);
  assert.equal(await get(below.fetch, "/v1/loads"), 404);
  await using top = createLoadHandler(reader);
  const app = new Hono();
  app.all("/engine/a/*", (context) => below.fetch(context.req.raw));
  app.mount("/engine/b", top.fetch);
  app.get("/", (context) => context.text("mine"));
  const fetch = (request: Request) => app.fetch(request);
  assert.equal(await get(fetch, "/engine/a/healthz"), 200);
  assert.equal(await get(fetch, "/engine/b/healthz"), 200);
  assert.equal(await get(fetch, "/engine/b/nowhere"), 404);
  for (const basePath of ["engine", "/engine/", "/a//b", "/a?b", "/*"]) {
    assert.throws(() => createLoadHandler(reader, { basePath }), RangeError, basePath);
  }
});

Deno.test("an address beyond loopback is refused without a token, before anything is bound", {
  // Also where everything else is allowed.
  permissions: { net: false },
}, () => {
  for (const hostname of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example", "engine"]) {
    assert.throws(() => serveLoad(MemoryReader.live(1), { hostname }), TypeError, hostname);
  }
  // Without --allow-net, which comes next.
  for (const options of [{ token: "s3cret" }, { allowInsecureBind: true }]) {
    assert.throws(
      () => serveLoad(MemoryReader.live(1), { hostname: "0.0.0.0", ...options }),
      Deno.errors.NotCapable,
    );
  }
  assert.throws(() => serveLoad(MemoryReader.live(1)), Deno.errors.NotCapable);
});

Deno.test("an answer that varies by its coding varies by its origin too", async () => {
  const headers = { "accept-encoding": "gzip", origin: "https://a.example" };
  const { headers: got } = await ask("/", { headers }, {
    cors: { origins: ["https://a.example"] },
  });
  assert.deepEqual([got.get("content-encoding"), got.get("vary")], [
    "gzip",
    "accept-encoding, Origin",
  ]);
});
