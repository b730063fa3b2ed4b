/** The HTTP service of load as a fetch handler: to be served alone, or mounted in another. */

import { type Context, Hono } from "npm:hono@4.13.19";
import { getLogger } from "npm:@logtape/logtape@2.4.2";
import type { LoadReader } from "../load_reader.ts";
import { corsHeaders, type CorsOptions, METHODS, PREFLIGHT_HEADERS, TokenCheck } from "./access.ts";
import { GuardedReader } from "./guarded_reader.ts";
import { healthRoute, metricsRoute, streamRoute } from "./live_routes.ts";
import { type EngineDescription, LoadJson } from "./load_json.ts";
import { loadsRoute, oldLoadRoute } from "./load_routes.ts";
import { LoadMetrics } from "./metrics.ts";
import { openApiDocument } from "./openapi.ts";
import { PAGE_PATHS } from "./page/assets.ts";
import { pageReply } from "./page_reply.ts";
import { MEDIA, refuse, reply } from "./replies.ts";
import type { Route } from "./route.ts";
import { LoadFeed, type StreamCounts } from "./stream/load_feed.ts";

/** What a request brings along through Hono. */
interface Environment {
  readonly Bindings: { readonly info: unknown };
}

/** The longest address that is answered, in characters. */
const MAX_URL = 8192;

/** Options of {@linkcode createLoadHandler}. */
export interface LoadHandlerOptions {
  /**
   * Where the handler is mounted, such as `/engine`: what its routes begin with in the requests that
   * it gets. @default {""}
   */
  readonly basePath?: string;
  /** The bearer token that every route but the page's files asks for. Without one, none does. */
  readonly token?: string;
  /** Which pages of other origins may read the answers. Without it, none. */
  readonly cors?: CorsOptions;
  /** What `/v1/loads` says of the engine besides its load. */
  readonly engine?: EngineDescription;
  /**
   * Whether `/v1/loads` tells age and state of each rank without being asked by `freshness=1`.
   *
   * @default {false}
   */
  readonly freshness?: boolean;
  /** Most streams at once; 1 or more. One more is refused with 503. @default {512} */
  readonly maxStreams?: number;
  /**
   * How long a stream's client may leave news waiting, in milliseconds, until the stream is ended.
   *
   * @default {10_000}
   */
  readonly slowAfterMs?: number;
  /** How long a stream may last, in milliseconds; its client then comes back. @default {3_600_000} */
  readonly maxStreamMs?: number;
}

/** What a handler has done so far. */
export interface LoadHandlerStats {
  /** Requests that were answered, whatever the answer. */
  readonly requests: number;
  /** The live streams. */
  readonly streams: StreamCounts;
}

/** Serves the load of one reader; see {@linkcode createLoadHandler}. */
export interface LoadHandler extends AsyncDisposable {
  /**
   * Answers a request. It never throws, and needs no `this`.
   *
   * @param request The request.
   * @param info What `Deno.serve` tells of it, if that is who asks: a stream that is not read keeps
   *   its place until the `completed` in it settles. Anything else is passed over.
   * @returns The answer.
   */
  readonly fetch: (request: Request, info?: unknown) => Response | Promise<Response>;
  /** Tells what the handler has done so far. */
  stats(): LoadHandlerStats;
  /**
   * Ends all streams with a last word, and the watching of the reader, which stays open and is the
   * caller's. Streams are refused from then on. Twice is fine.
   */
  close(): Promise<void>;
}

/**
 * Makes a handler that serves the load of a reader: `/v1/loads` and `/get_load` as SGLang does,
 * `/v1/loads/stream`, `/metrics`, `/healthz`, `/openapi.json`, and a page at `/`.
 *
 * The reader is watched only while a stream is open; all else reads when it is asked. A reader that
 * is closed or fails is told with 503, never with 500.
 *
 * @param reader Whose load is served. It stays the caller's, who closes it after the handler.
 * @param options Who may ask, and how much.
 * @returns The handler.
 * @throws {RangeError} If an option cannot be used.
 *
 * @example
 * ```ts
 * import { ShmLoadSnapshotReader, shmPathFor } from "./mod.ts";
 * import { createLoadHandler } from "./src/http/mod.ts";
 *
 * using reader = new ShmLoadSnapshotReader(shmPathFor("my-engine"));
 * await using handler = createLoadHandler(reader);
 * const response = await handler.fetch(new Request("http://localhost/healthz"));
 * console.log(response.status); // 503: there is no such engine
 * ```
 */
export function createLoadHandler(
  reader: LoadReader,
  options: LoadHandlerOptions = {},
): LoadHandler {
  const { basePath = "", token, cors, engine = {}, freshness = false } = options;
  const { maxStreams = 512, slowAfterMs = 10_000, maxStreamMs = 3_600_000 } = options;
  if (!/^(\/[\w.~-]+)*$/.test(basePath)) {
    throw new RangeError(`Cannot mount at ${JSON.stringify(basePath)}: not a path such as /engine`);
  }
  if (!(maxStreams >= 1)) throw new RangeError(`Cannot use maxStreams ${maxStreams}: less than 1`);
  for (const [name, ms] of Object.entries({ slowAfterMs, maxStreamMs })) {
    if (!(ms > 0)) throw new RangeError(`Cannot use ${name} ${ms}: not a time`);
  }
  const check = token === undefined ? null : new TokenCheck(token);
  const guarded = new GuardedReader(reader);
  const json = new LoadJson(engine);
  const feed = new LoadFeed(reader, guarded, json, {
    maxClients: maxStreams,
    slowAfterMs,
    maxStreamMs,
  });
  const metrics = new LoadMetrics(guarded, () => feed.counts);
  const routes = [
    loadsRoute(guarded, json, freshness),
    streamRoute(feed),
    oldLoadRoute(guarded),
    metricsRoute(metrics),
    healthRoute(guarded),
  ];
  const app = appOf([...routes, documentRoute(routes, basePath, check !== null)], basePath, check);
  let requests = 0;
  return {
    fetch: (request, info) => {
      requests++;
      const answer = app.fetch(request, { info });
      if (cors === undefined) return answer;
      const headers = corsHeaders(cors, request);
      return answer instanceof Promise
        ? answer.then((response) => withHeaders(response, headers))
        : withHeaders(answer, headers);
    },
    stats: () => ({ requests, streams: feed.counts }),
    close: () => feed.close(),
    [Symbol.asyncDispose]: () => feed.close(),
  };
}

/** Describes the routes, itself included. */
function documentRoute(routes: readonly Route[], basePath: string, needsToken: boolean): Route {
  const route: Route = {
    path: "/openapi.json",
    operationId: "getOpenApi",
    summary: "This document",
    parameters: [],
    answers: {
      200: { description: "OpenAPI 3.1", content: { [MEDIA.json]: { type: "object" } } },
    },
    answer: () => reply(200, MEDIA.json, text),
  };
  const text = JSON.stringify(openApiDocument([...routes, route], basePath, needsToken));
  return route;
}

function appOf(
  routes: readonly Route[],
  basePath: string,
  check: TokenCheck | null,
): Hono<Environment> {
  const app = new Hono<Environment>();
  for (const route of routes) {
    app.get(`${basePath}${route.path}`, ({ req, env }: Context<Environment>) => {
      const request = req.raw;
      if (request.url.length > MAX_URL) return refuse(414, `Longer than ${MAX_URL} characters`);
      const refusal = check?.refusalOf(request) ?? null;
      if (refusal !== null) return refusal;
      const at = request.url.indexOf("?");
      const query = at < 0 ? null : new URLSearchParams(request.url.slice(at));
      return route.answer({ request, query, delivered: deliveredOf(env.info) });
    });
  }
  // The page's files hold no load, and it cannot ask for a token before it is there.
  for (const path of PAGE_PATHS) {
    app.get(`${basePath}${path}`, ({ req }: Context) => pageReply(path, req.raw));
  }
  for (const below of [...routes.map(({ path }) => path), ...PAGE_PATHS]) {
    const path = `${basePath}${below}`;
    app.options(
      path,
      () => new Response(null, { status: 204, headers: { allow: METHODS, ...PREFLIGHT_HEADERS } }),
    );
    app.all(path, () => refuse(405, "Method Not Allowed", { allow: METHODS }));
  }
  // The page's files are named relative to it.
  if (basePath !== "") app.get(basePath, ({ redirect }: Context) => redirect(`${basePath}/`, 308));
  app.notFound(() => refuse(404, "Not Found"));
  app.onError((error) => {
    getLogger(["loadslots", "http"]).error("Cannot answer: {error}", { error });
    return refuse(503, "Cannot answer now");
  });
  return app;
}

function deliveredOf(info: unknown): Promise<unknown> | null {
  const completed = (info as { readonly completed?: unknown } | null | undefined)?.completed;
  return completed instanceof Promise ? completed : null;
}

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const [name, value] of Object.entries(headers)) {
    // What an answer varies by already, it still does.
    if (name === "vary") response.headers.append(name, value);
    else response.headers.set(name, value);
  }
  return response;
}
