/** The files of the page, held in the module graph: whoever can import this can serve them. */

import { createHash } from "node:crypto";
import html from "./page.html" with { type: "text" };
import css from "./page.css" with { type: "text" };
import main from "./client/main.js" with { type: "text" };
import uplotCss from "npm:uplot@1.6.32/dist/uPlot.min.css" with { type: "text" };
import uplot from "npm:uplot@1.6.32/dist/uPlot.iife.min.js" with { type: "text" };

/** A file of the page. */
export interface PageAsset {
  /** The whole text. */
  readonly body: string;
  /** For the `Content-Type` header. */
  readonly contentType: string;
  /** For the `ETag` header, quotes included: the same as long as the text is the same. */
  readonly etag: string;
}

/**
 * The `Content-Security-Policy` that the page runs under: nothing inline, nothing from elsewhere.
 * A server that adds directives of its own must leave it these.
 */
export const PAGE_CSP: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const HTML = "text/html; charset=utf-8";
const CSS = "text/css; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";

const TEXTS: ReadonlyMap<string, readonly [body: string, contentType: string]> = new Map([
  ["/", [html, HTML]],
  ["/assets/page.css", [css, CSS]],
  ["/assets/uplot.css", [uplotCss, CSS]],
  ["/assets/uplot.js", [uplot, SCRIPT]],
  ["/assets/main.js", [main, SCRIPT]],
]);

/** Where the page's files are, below the place where the page is mounted: `/`, `/assets/page.css`. */
export const PAGE_PATHS: readonly string[] = [...TEXTS.keys()];

// Hashed when asked for: an import does no work.
const assets = new Map<string, PageAsset>();

/**
 * Finds a file of the page.
 *
 * @param path The path below the place where the page is mounted, with its leading slash.
 * @returns The file, or `null` where the page has none of that name.
 */
export function pageAsset(path: string): PageAsset | null {
  const known = assets.get(path);
  if (known !== undefined) return known;
  const text = TEXTS.get(path);
  if (text === undefined) return null;
  const [body, contentType] = text;
  const hash = createHash("sha256").update(body).digest("base64url").slice(0, 22);
  const asset: PageAsset = { body, contentType, etag: `"${hash}"` };
  assets.set(path, asset);
  return asset;
}
