/** The routes that SGLang has: `/v1/loads`, and its older `/get_load`. */

import { INCLUDE_NAMES } from "../snapshot/fields.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import type { GuardedReader } from "./guarded_reader.ts";
import { type JsonSchema, ref } from "./json_schema.ts";
import type { LoadJson } from "./load_json.ts";
import { prometheusText } from "./load_prometheus.ts";
import { ALL_SECTIONS, type LoadQuery, readLoadQuery } from "./load_query.ts";
import { MEDIA, refuse, reply } from "./replies.ts";
import type { Answer, Asking, Parameter, Route } from "./route.ts";

/** The answer of a route whose reader can tell nothing. */
export const UNREADABLE: Answer = {
  description: "Load cannot be read: the reader was closed, or failed",
  content: { [MEDIA.json]: ref("Refusal") },
};

const PARAMETERS: readonly Parameter[] = [
  parameter("dp_rank", "Only this rank; an empty list if there is none", { type: "integer" }),
  parameter("include", `Sections, with commas between: ${INCLUDE_NAMES.join(", ")}`, {
    type: "string",
    default: "all",
  }),
  parameter("format", "prometheus for gauges as text; all else is JSON", { type: "string" }),
  parameter("freshness", "1 adds age_ms and state to each load of the JSON", {
    type: "string",
    enum: ["0", "1", "false", "true"],
  }),
];

/** Makes `GET /v1/loads`, field for field as SGLang answers it. */
export function loadsRoute(reader: GuardedReader, json: LoadJson, isFresh: boolean): Route {
  const plain: LoadQuery = {
    state: "ok",
    dpRank: null,
    sections: ALL_SECTIONS,
    isPrometheus: false,
    withFreshness: false,
  };
  return {
    path: "/v1/loads",
    operationId: "getLoads",
    summary: "The load of each rank that ever reported",
    parameters: PARAMETERS,
    answers: {
      200: {
        description: "The loads, in order of rank",
        content: { [MEDIA.json]: ref("Loads"), [MEDIA.prometheus]: { type: "string" } },
      },
      400: {
        description: "include names what is no section; the text lists those that are",
        content: { [MEDIA.json]: ref("Refusal") },
      },
      422: { description: "dp_rank is no integer", content: { [MEDIA.json]: ref("Refusal") } },
      503: UNREADABLE,
    },
    answer({ query: given }: Asking): Response {
      const query = given === null ? plain : readLoadQuery(given);
      if (query.state === "refused") return refuse(query.status, query.detail);
      const { dpRank, sections, isPrometheus, withFreshness } = query;
      const loads = reader.loads(dpRank);
      if (loads.state === "failed") return refuse(503, loads.reason);
      if (isPrometheus) {
        return reply(200, MEDIA.prometheus, prometheusText(loads.value, sections));
      }
      if (!withFreshness && !isFresh) {
        return reply(200, MEDIA.json, json.answer(loads.value, sections));
      }
      const health = reader.health();
      if (health.state === "failed") return refuse(503, health.reason);
      return reply(200, MEDIA.json, json.freshAnswer(loads.value, sections, health.value));
    },
  };
}

/** Makes `GET /get_load`, which older routers ask. */
export function oldLoadRoute(reader: GuardedReader): Route {
  return {
    path: "/get_load",
    operationId: "getLoad",
    summary: "A few values of each rank, as SGLang told them before /v1/loads",
    parameters: [],
    answers: {
      200: {
        description: "The loads, in order of rank",
        content: { [MEDIA.json]: { type: "array", items: ref("OldLoad") } },
      },
      503: UNREADABLE,
    },
    answer(): Response {
      const loads = reader.loads(null);
      if (loads.state === "failed") return refuse(503, loads.reason);
      return reply(200, MEDIA.json, JSON.stringify(loads.value.map(oldLoad)));
    },
  };
}

function oldLoad(load: LoadSnapshot): Record<string, number> {
  return {
    dp_rank: load.dpRank,
    num_reqs: load.numRunningReqs + load.numWaitingReqs,
    num_waiting_reqs: load.numWaitingReqs,
    num_tokens: load.numTotalTokens,
    num_pending_tokens: load.numTotalTokens - load.numUsedTokens,
    ts_tic: load.timestamp,
  };
}

function parameter(name: string, description: string, schema: JsonSchema): Parameter {
  return { name, in: "query", description, schema };
}
