/** What `GET /v1/loads` can be asked, read as SGLang's route under FastAPI reads it. */

import { INCLUDE_NAMES, SECTIONS } from "../snapshot/fields.ts";
import type { Sections } from "./load_json.ts";

/** A query that was understood, or how it is refused. */
export type LoadQuery =
  | {
    readonly state: "ok";
    /** The rank that is asked for, or `null` for all. It need not exist. */
    readonly dpRank: number | null;
    readonly sections: Sections;
    readonly isPrometheus: boolean;
    /** Whether age and state of each rank are to be told as well. */
    readonly withFreshness: boolean;
  }
  | { readonly state: "refused"; readonly status: 400 | 422; readonly detail: unknown };

/** All sections, one bit each. */
export const ALL_SECTIONS: Sections = (1 << SECTIONS.length) - 1;

/** As pydantic takes an integer out of a text: `7`, `+7`, ` 7 `, `1_000` and `7.0` are some. */
const INTEGER = /^\s*([+-]?\d+(?:_\d+)*)(?:\.0+)?\s*$/;

/** Reads the query; as in FastAPI, the last of several values counts. */
export function readLoadQuery(query: URLSearchParams): LoadQuery {
  const rankText = lastOf(query, "dp_rank");
  const dpRank = rankText === null ? null : integerIn(rankText);
  if (rankText !== null && dpRank === null) {
    return { state: "refused", status: 422, detail: [notAnInteger("dp_rank", rankText)] };
  }
  const include = readInclude(lastOf(query, "include"));
  if (typeof include !== "number") {
    const detail = `Invalid include sections: ${include.join(", ")}. ` +
      `Valid options: ${INCLUDE_NAMES.join(", ")}`;
    return { state: "refused", status: 400, detail };
  }
  const freshness = lastOf(query, "freshness");
  return {
    state: "ok",
    dpRank,
    sections: include,
    isPrometheus: lastOf(query, "format") === "prometheus",
    withFreshness: freshness === "1" || freshness === "true",
  };
}

/** @returns The sections to show, or the names that are none. An empty list asks for all. */
function readInclude(text: string | null): Sections | readonly string[] {
  if (text === null || text === "") return ALL_SECTIONS;
  const names = new Set(text.split(",").map((name) => name.trim()));
  if (names.has("all")) return ALL_SECTIONS;
  const unknown = [...names].filter((name) => !INCLUDE_NAMES.includes(name));
  if (unknown.length > 0) return unknown.map((name) => JSON.stringify(name)).sort();
  return SECTIONS.reduce(
    (bits, { include }, at) => names.has(include) ? bits | (1 << at) : bits,
    0,
  );
}

function integerIn(text: string): number | null {
  const digits = INTEGER.exec(text)?.[1];
  return digits === undefined ? null : Number(digits.replaceAll("_", ""));
}

function notAnInteger(name: string, input: string): Readonly<Record<string, unknown>> {
  return {
    type: "int_parsing",
    loc: ["query", name],
    msg: "Input should be a valid integer, unable to parse string as an integer",
    input,
  };
}

function lastOf(query: URLSearchParams, name: string): string | null {
  return query.getAll(name).at(-1) ?? null;
}
