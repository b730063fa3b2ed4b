/** What a route is: how it is answered, and how it is described. */

import type { JsonSchema } from "./json_schema.ts";

/** A request, as far as routes look at it. */
export interface Asking {
  readonly request: Request;
  /** `null` where the address has no query. */
  readonly query: URLSearchParams | null;
  /** Settles when the connection is done with the answer; `null` where nobody tells. */
  readonly delivered: Promise<unknown> | null;
}

/** A value of the query or a header that a route looks at. */
export interface Parameter {
  readonly name: string;
  readonly in: "query" | "header";
  readonly description: string;
  readonly schema: JsonSchema;
}

/** One kind of answer. */
export interface Answer {
  readonly description: string;
  /** The schema of each media type. */
  readonly content: Readonly<Record<string, JsonSchema>>;
}

/** A route of the handler; it answers GET and HEAD. */
export interface Route {
  /** Below the place where the handler is mounted. */
  readonly path: string;
  /** Its name in the OpenAPI document. */
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  /** By status. */
  readonly answers: Readonly<Record<number, Answer>>;
  answer(asking: Asking): Response | Promise<Response>;
}
