/** Who may ask: the bearer token, and pages of other origins. */

import { createHash, timingSafeEqual } from "node:crypto";
import { refuse } from "./replies.ts";

/** Which pages of other origins a browser lets read the answers. */
export interface CorsOptions {
  /** Their origins, such as `https://grafana.example`; `"*"` for all. */
  readonly origins: "*" | readonly string[];
}

/** The only methods that any route has. */
export const METHODS = "GET, HEAD, OPTIONS";

/** Checks bearer tokens, in a time that does not tell how much of one was right. */
export class TokenCheck {
  readonly #digest: Uint8Array;

  /** @throws {RangeError} If no header could carry the token. */
  constructor(token: string) {
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new RangeError("Cannot use token: empty, or with a blank or a character beyond ASCII");
    }
    this.#digest = digestOf(token);
  }

  /** @returns The refusal, or `null` for whoever knows the token. */
  refusalOf(request: Request): Response | null {
    const [, given] = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
    // Digests are of one length whatever was sent, as the comparison needs it.
    if (given !== undefined && timingSafeEqual(digestOf(given), this.#digest)) return null;
    const challenge = given === undefined ? "Bearer" : 'Bearer error="invalid_token"';
    return refuse(401, "A bearer token is needed: Authorization: Bearer ...", {
      "www-authenticate": challenge,
    });
  }
}

/** The headers that let the asking page read an answer. */
export function corsHeaders(cors: CorsOptions, request: Request): Readonly<Record<string, string>> {
  const origin = request.headers.get("origin");
  if (cors.origins === "*") return { "access-control-allow-origin": "*" };
  if (origin === null || !cors.origins.includes(origin)) return { vary: "Origin" };
  return { "access-control-allow-origin": origin, vary: "Origin" };
}

/** What a browser wants to know before it lets a page ask. */
export const PREFLIGHT_HEADERS: Readonly<Record<string, string>> = {
  "access-control-allow-methods": METHODS,
  "access-control-allow-headers": "authorization, last-event-id",
  "access-control-max-age": "600",
};

function digestOf(token: string): Uint8Array {
  return createHash("sha256").update(token).digest();
}
