/** The page's files as answers. */

import { PAGE_CSP, pageAsset } from "./page/assets.ts";
import { COMMON_HEADERS, refuse } from "./replies.ts";

/** Answers with one of the page's files, or with 304 if the browser has it already. */
export function pageReply(path: string, request: Request): Response {
  const asset = pageAsset(path);
  if (asset === null) return refuse(404, "Not Found");
  const headers = {
    ...COMMON_HEADERS,
    "cache-control": "no-cache",
    "content-security-policy": PAGE_CSP,
    "content-type": asset.contentType,
    etag: asset.etag,
    vary: "accept-encoding",
  };
  if (request.headers.get("if-none-match") === asset.etag) {
    return new Response(null, { status: 304, headers });
  }
  if (!acceptsGzip(request.headers.get("accept-encoding"))) {
    return new Response(asset.body, { headers });
  }
  return new Response(asset.gzip, { headers: { ...headers, "content-encoding": "gzip" } });
}

/** Whether a browser takes gzip: named, and not with a weight of 0. */
function acceptsGzip(accepted: string | null): boolean {
  return /(^|,)\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*(,|$))[\d.]+\s*)?(,|$)/i.test(accepted ?? "");
}
