/** The OpenAPI document, made from the routes. */

import { ref, SCHEMAS } from "./json_schema.ts";
import { MEDIA } from "./replies.ts";
import type { Answer, Route } from "./route.ts";

const REFUSAL: Readonly<Record<string, unknown>> = {
  content: { [MEDIA.json]: { schema: ref("Refusal") } },
};

/** What any route may answer, whatever it is for. */
const COMMON_ANSWERS = {
  405: { description: "The method is not one of those under Allow", ...REFUSAL },
  414: { description: "The address is too long", ...REFUSAL },
} as const;

/**
 * Describes routes.
 *
 * @param routes The routes.
 * @param basePath Where they are mounted.
 * @param needsToken Whether a bearer token is asked for.
 */
export function openApiDocument(
  routes: readonly Route[],
  basePath: string,
  needsToken: boolean,
): Record<string, unknown> {
  const common = needsToken
    ? { 401: { description: "No token, or another one", ...REFUSAL }, ...COMMON_ANSWERS }
    : COMMON_ANSWERS;
  const paths = routes.map(({ path, operationId, summary, parameters, answers }) => {
    const responses = { ...common, ...mapValues(answers, describe) };
    return [path, { get: { operationId, summary, parameters, responses } }] as const;
  });
  return {
    openapi: "3.1.0",
    info: {
      title: "Load of an LLM engine",
      version: "0.1.0",
      description: "What each data-parallel rank carries, now and live",
    },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    paths: Object.fromEntries(paths),
    components: {
      schemas: SCHEMAS,
      ...(needsToken ? { securitySchemes: { token: { type: "http", scheme: "bearer" } } } : {}),
    },
    ...(needsToken ? { security: [{ token: [] }] } : {}),
  };
}

function describe({ description, content }: Answer): Record<string, unknown> {
  return { description, content: mapValues(content, (schema) => ({ schema })) };
}

function mapValues<From, To>(
  values: Readonly<Record<string, From>>,
  change: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}
