/** Sends each request to the rank that a router chooses, and its answer back, both as streams. */

import { type DispatchOptions, NoRankAvailableError } from "../../mod.ts";
import { completionKind, errorResponse } from "./openai.ts";
import { peekBody, type PeekedBody, readAsked, tokensOf } from "./prompt.ts";

/** What answers for a rank: it is sent the request that it would get from the client. */
export type Backend = (dpRank: number, request: Request) => Promise<Response>;

/** Who chooses a rank: a `DpRouter`, or a test. */
export interface RankChooser {
  /** @throws {NoRankAvailableError} If there is none. */
  dispatch(options: DispatchOptions): Routed;
}

/** A request that was given a rank. */
export interface Routed {
  readonly dpRank: number;
  /** Is called once, however it ends. */
  complete(): void;
}

/** How much of a body is read before a rank is chosen; the rest streams through. */
const PEEK_BYTES = 262_144;

/** Headers that are between two ends of one connection, and those that fetch sets itself. */
const NOT_PASSED_ON = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
  "content-length",
];

/** How the name of a header is spelt. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * A handler for `Deno.serve`.
 *
 * @param router Who chooses the ranks.
 * @param backend Who answers for them.
 * @param signal Ends what is under way.
 */
export function proxy(
  router: RankChooser,
  backend: Backend,
  signal: AbortSignal,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const refusal = refuse(request);
    if (refusal !== null) return refusal;
    let peeked: PeekedBody | null;
    try {
      peeked = request.body === null ? null : await peekBody(request.body, PEEK_BYTES);
    } catch {
      return errorResponse(400, "invalid_body", "The body ends too early");
    }
    const routed = choose(router, request, peeked?.head ?? null);
    if (routed instanceof Response) return routed;
    // A client can leave before there is an answer, or amidst one: both end the backend's work.
    const ended = new AbortController();
    const leave = (): void => ended.abort();
    request.signal.addEventListener("abort", leave);
    try {
      const passedOn = new Request(request.url, {
        method: request.method,
        headers: passable(request.headers),
        body: peeked?.body ?? null,
        signal: AbortSignal.any([signal, ended.signal]),
      });
      const answer = await backend(routed.dpRank, passedOn);
      const headers = passable(answer.headers);
      headers.set("x-dp-rank", String(routed.dpRank));
      return new Response(bodyUntilEnd(answer.body, routed, ended), {
        status: answer.status,
        statusText: answer.statusText,
        headers,
      });
    } catch (error) {
      routed.complete();
      if (signal.aborted) return errorResponse(503, "shutting_down", "The router ends");
      const message = `Rank ${routed.dpRank} does not answer: ${error}`;
      return errorResponse(502, "bad_gateway", message, { "x-dp-rank": String(routed.dpRank) });
    } finally {
      // From here on a client that leaves cancels the body; Deno aborts this signal at a good end too.
      request.signal.removeEventListener("abort", leave);
    }
  };
}

/** @returns The answer to what is not to be sent on, or `null`. */
function refuse({ method, url }: Request): Response | null {
  const { pathname } = new URL(url);
  const allowed = pathname === "/v1/models"
    ? "GET"
    : completionKind(pathname) === null
    ? null
    : "POST";
  if (allowed === null) return errorResponse(404, "not_found", `Nothing is at ${pathname}`);
  if (method === allowed) return null;
  const message = `${pathname} takes ${allowed}, not ${method}`;
  return errorResponse(405, "method_not_allowed", message, { allow: allowed });
}

/** @returns The rank for a request, or why there is none. */
function choose(
  router: RankChooser,
  request: Request,
  head: Uint8Array | null,
): Routed | Response {
  try {
    if (head === null) return router.dispatch({ estimatedTokens: 0 });
    const text = new TextDecoder().decode(head);
    const asked = readAsked(text);
    return router.dispatch({
      // A body that is longer than what was read says its length itself, or counts as that much.
      estimatedTokens: asked?.promptTokens ??
        tokensOf(Number(request.headers.get("content-length") ?? head.length)),
      prefixKey: asked?.prefixKey ?? undefined,
    });
  } catch (error) {
    if (!(error instanceof NoRankAvailableError)) throw error;
    return errorResponse(503, "no_rank_available", error.message, { "retry-after": "1" });
  }
}

function passable(headers: Headers): Headers {
  const passed = new Headers(headers);
  const named = headers.get("connection")?.split(",") ?? [];
  for (const name of [...NOT_PASSED_ON, ...named.map((it) => it.trim())]) {
    // What is no name of a header names none.
    if (TOKEN.test(name)) passed.delete(name);
  }
  return passed;
}

/**
 * A body that says when it is over, read no faster than the client takes it.
 *
 * @param body The backend's answer.
 * @param routed Is complete when the body ends, breaks or is given up.
 * @param ended Is aborted when the client gives the body up.
 */
function bodyUntilEnd(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  routed: Routed,
  ended: AbortController,
): ReadableStream<Uint8Array<ArrayBuffer>> | null {
  if (body === null) {
    routed.complete();
    return null;
  }
  const reader = body.getReader();
  let isGivenUp = false;
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (isGivenUp) return;
        if (!done) return controller.enqueue(value);
        controller.close();
      } catch (error) {
        if (isGivenUp) return;
        controller.error(error);
      }
      routed.complete();
    },
    async cancel(reason) {
      isGivenUp = true;
      routed.complete();
      ended.abort(reason);
      await reader.cancel(reason).catch(() => {}); // it is given up, however it ends
    },
  }, { highWaterMark: 0 });
}
