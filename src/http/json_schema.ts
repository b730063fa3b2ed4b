/** What the answers look like, as JSON Schema, out of the field table. */

import { CORE_FIELDS, type FieldSpec, type FieldType, SECTIONS } from "../snapshot/fields.ts";

/** A JSON Schema, as far as it is used here. */
export type JsonSchema = { readonly [key: string]: unknown };

const TYPES: Readonly<Record<FieldType, JsonSchema>> = {
  int: { type: "integer" },
  // NaN and infinity, which an engine can send, are null.
  float: { type: ["number", "null"] },
  string: { type: "string" },
  floats: { type: ["array", "null"], items: { type: ["number", "null"] } },
};

/** The state of a rank. */
export const STATE: JsonSchema = {
  type: "string",
  enum: ["unreported", "live", "stale", "corrupt"],
};

/** The age of a rank's snapshot. */
export const AGE: JsonSchema = {
  type: ["integer", "null"],
  minimum: 0,
  description: "Age of the last good snapshot, in ms; null without one",
};

/** The schemas that others refer to, by name. */
export const SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  Load: {
    type: "object",
    description: "The load of one data-parallel rank, as SGLang's to_dict shows it",
    properties: {
      ...propertiesOf(CORE_FIELDS),
      ...Object.fromEntries(SECTIONS.map(({ wire, fields }) => [wire, objectOf(fields)])),
      age_ms: { ...AGE, description: `${AGE["description"]}. Only with freshness=1` },
      state: { ...STATE, description: "Only with freshness=1" },
    },
    required: CORE_FIELDS.map(({ wire }) => wire),
    additionalProperties: false,
  },
  Loads: object({
    timestamp: { type: "string", description: "Time of the answer, ISO 8601, UTC" },
    version: { type: "string", description: "Version of SGLang" },
    accelerator: { type: ["string", "null"] },
    num_accelerators: {
      type: ["integer", "null"],
      description: "Accelerators behind one data-parallel rank",
    },
    loads: { type: "array", items: ref("Load") },
  }),
  OldLoad: object({
    dp_rank: { type: "integer" },
    num_reqs: { type: "integer", description: "Requests that run or wait" },
    num_waiting_reqs: { type: "integer" },
    num_tokens: { type: "integer", description: "num_total_tokens" },
    num_pending_tokens: { type: "integer", description: "num_total_tokens less num_used_tokens" },
    ts_tic: { type: ["number", "null"], description: "Unix time of the measurement, in seconds" },
  }),
  Health: object({
    status: { type: "string", enum: ["ready", "not ready"] },
    reason: { type: ["string", "null"], description: "Why it is not ready" },
    dp_size: { type: ["integer", "null"], description: "Ranks of the group, where that is known" },
    ranks: {
      type: "array",
      items: object({ dp_rank: { type: "integer" }, age_ms: AGE, state: STATE }),
    },
  }),
  Refusal: object({ detail: { description: "Why: a text, or FastAPI's list of what is wrong" } }),
};

/** Refers to one of {@linkcode SCHEMAS}. */
export function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

function object(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const required = Object.keys(properties);
  return { type: "object", properties, required, additionalProperties: false };
}

function objectOf(fields: readonly FieldSpec[]): JsonSchema {
  return object(propertiesOf(fields));
}

function propertiesOf(fields: readonly FieldSpec[]): Record<string, JsonSchema> {
  return Object.fromEntries(fields.map(({ wire, type, help, unit }) => {
    const description = unit === "" ? help : `${help}, in ${unit}`;
    return [wire, { ...TYPES[type], description }];
  }));
}
