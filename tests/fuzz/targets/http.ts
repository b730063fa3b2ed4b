/** Requests: path, query, and the headers that are looked at. */

import assert from "node:assert/strict";
import { createLoadHandler } from "../../../src/http/mod.ts";
import { MemoryReader } from "../../support/memory_reader.ts";
import { bytesOf, NOTHING_HELD, type Target, textOf } from "../target.ts";

const TOKEN = "s3cret";
const STATUSES = [200, 204, 304, 308, 400, 401, 404, 405, 414, 422];

/** A request as lines: path and query, authorization, last event, origin, encodings, method. */
export function httpTarget(): Target {
  const reader = MemoryReader.live(3);
  const handler = createLoadHandler(reader, {
    token: TOKEN,
    maxStreams: 4,
    cors: { origins: ["https://board.example"] },
  });
  return {
    ...NOTHING_HELD,
    name: "http",
    seeds: [
      "/v1/loads?dp_rank=1&include=core\nBearer s3cret\n\n\n\nGET",
      "/v1/loads?format=prometheus&freshness=1\nBearer s3cret\n\nhttps://board.example\ngzip\nGET",
      "/v1/loads/stream\nBearer s3cret\n0123456789ab-17\nnull\nbr, gzip;q=0\nGET",
      "/get_load?dp_rank=0\nbearer  s3cret\n\n\n\nHEAD",
      "/metrics\nBearer s3cre\n\n\n\nGET",
      "/healthz\nBasic s3cret\n\n\n\nPOST",
      "/openapi.json\nBearer s3cret s3cret\n\n\n\nOPTIONS",
      "/\n\n\n\n*\nGET",
      "/%2e%2e/v1//loads/?&&%00\n\n\n\n\nDELETE",
    ].map(bytesOf),
    share: 0.1,
    async execute(input) {
      const request = requestOf(textOf(input));
      if (request === null) return "not a request";
      const response = await handler.fetch(request);
      await response.body?.cancel();
      const { status } = response;
      assert(STATUSES.includes(status), `answered ${status}`);
      const { pathname } = new URL(request.url);
      if (status === 200 && /^\/(v1|get_load|metrics|healthz|openapi)/.test(pathname)) {
        assert.match(request.headers.get("authorization") ?? "", /^bearer +s3cret$/i);
      }
      const origin = response.headers.get("access-control-allow-origin");
      assert(origin === null || origin === "https://board.example");
      return `${request.method} ${status} ${response.headers.get("content-type")} ${origin} ` +
        `${request.headers.has("authorization")} ${Math.min(pathname.length, 30)}`;
    },
  };
}

/** `null` where no client could send it. */
function requestOf(text: string): Request | null {
  const [path = "", authorization = "", last = "", origin = "", encodings = "", method = "GET"] =
    text.split("\n");
  try {
    return new Request(`http://engine.example${path.startsWith("/") ? "" : "/"}${path}`, {
      method,
      headers: {
        authorization,
        "last-event-id": last,
        origin,
        "accept-encoding": encodings,
        "if-none-match": last,
      },
    });
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}
