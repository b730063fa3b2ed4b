/** Answers, and the headers that all of them carry. */

/** The media types that are answered with. */
export const MEDIA = {
  json: "application/json",
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  events: "text/event-stream",
} as const;

/** One of {@linkcode MEDIA}. */
export type Media = (typeof MEDIA)[keyof typeof MEDIA];

/**
 * What keeps a browser from doing more with an answer than showing it. Load is of this moment: no
 * cache may keep it, and none may change a stream on its way.
 */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const STREAM_HEADERS = { "cache-control": "no-store, no-transform", "x-accel-buffering": "no" };

const HEADERS: Readonly<Record<Media, Readonly<Record<string, string>>>> = {
  [MEDIA.json]: { ...COMMON_HEADERS, "content-type": MEDIA.json },
  [MEDIA.prometheus]: { ...COMMON_HEADERS, "content-type": MEDIA.prometheus },
  [MEDIA.events]: { ...COMMON_HEADERS, ...STREAM_HEADERS, "content-type": MEDIA.events },
};

/** Answers with a text, or with a stream of it. */
export function reply(
  status: number,
  media: Media,
  body: BodyInit | null,
  more?: Readonly<Record<string, string>>,
): Response {
  const headers = more === undefined ? HEADERS[media] : { ...HEADERS[media], ...more };
  return new Response(body, { status, headers });
}

/** Refuses a request as FastAPI does: an object with the reason under `detail`. */
export function refuse(
  status: number,
  detail: unknown,
  more?: Readonly<Record<string, string>>,
): Response {
  return reply(status, MEDIA.json, JSON.stringify({ detail }), more);
}
