/** The routes that SGLang lacks: the live stream, whether the engine is ready, and metrics. */

import type { GuardedReader } from "./guarded_reader.ts";
import { ref } from "./json_schema.ts";
import { freshness } from "./load_json.ts";
import { UNREADABLE } from "./load_routes.ts";
import type { LoadMetrics } from "./metrics.ts";
import { MEDIA, refuse, reply } from "./replies.ts";
import type { Asking, Route } from "./route.ts";
import type { LoadFeed } from "./stream/load_feed.ts";

/** Makes `GET /v1/loads/stream`: every change, as it happens, as Server-Sent Events. */
export function streamRoute(feed: LoadFeed): Route {
  return {
    path: "/v1/loads/stream",
    operationId: "streamLoads",
    summary: "Loads as they change, as Server-Sent Events: loads, health and, at the end, bye",
    parameters: [{
      name: "Last-Event-ID",
      in: "header",
      description: "The id of the last event seen: only ranks that changed since are told",
      schema: { type: "string" },
    }],
    answers: {
      200: { description: "The events", content: { [MEDIA.events]: { type: "string" } } },
      503: {
        ...UNREADABLE,
        description: `${UNREADABLE.description}, or too many streams are open`,
      },
    },
    answer({ request, delivered }: Asking): Response {
      if (request.method === "HEAD") return reply(200, MEDIA.events, null);
      const stream = feed.open(request.headers.get("last-event-id"), delivered);
      switch (stream.state) {
        case "ok":
          return reply(200, MEDIA.events, stream.body);
        case "full":
          return refuse(503, "Too many streams are open", { "retry-after": "5" });
        case "closed":
          return refuse(503, "The server closes");
        case "failed":
          return refuse(503, stream.reason);
      }
    },
  };
}

/** Makes `GET /healthz`, which is 200 only when every rank is live. */
export function healthRoute(reader: GuardedReader): Route {
  const content = { [MEDIA.json]: ref("Health") };
  return {
    path: "/healthz",
    operationId: "getHealth",
    summary: "Whether every rank is live",
    parameters: [],
    answers: {
      200: { description: "Every rank is live", content },
      503: { description: "Some rank is not, or none was ever seen; which is told", content },
    },
    answer(): Response {
      const health = reader.health();
      const ranks = health.state === "ok" ? health.value : [];
      const notLive = ranks.filter(({ state }) => state !== "live").length;
      const reason = health.state === "failed"
        ? health.reason
        : ranks.length === 0
        ? "No engine was seen yet"
        : notLive > 0
        ? `${notLive} of ${ranks.length} ranks not live`
        : null;
      const list = ranks.map((rank) => `{"dp_rank":${rank.dpRank},${freshness(rank)}}`);
      const text = `{"status":"${reason === null ? "ready" : "not ready"}",` +
        `"reason":${JSON.stringify(reason)},"dp_size":${reader.dpSize},"ranks":[${list.join()}]}`;
      return reply(reason === null ? 200 : 503, MEDIA.json, text);
    },
  };
}

/** Makes `GET /metrics`, for Prometheus to scrape. */
export function metricsRoute(metrics: LoadMetrics): Route {
  return {
    path: "/metrics",
    operationId: "getMetrics",
    summary: "Loads, states and ages of all ranks as metrics",
    parameters: [],
    answers: {
      200: {
        description: "Prometheus's text format; loadslots_up is 0 when load cannot be read",
        content: { [MEDIA.prometheus]: { type: "string" } },
      },
    },
    answer: async () => reply(200, MEDIA.prometheus, await metrics.text()),
  };
}
