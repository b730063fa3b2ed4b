/** The files of the page, held in the module graph: whoever can import this can serve them. */

import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { withoutComments } from "./without_comments.ts";
import html from "./page.html" with { type: "text" };
import css from "./page.css" with { type: "text" };
import icon from "./icon.svg" with { type: "text" };
import announcer from "./client/announcer.js" with { type: "text" };
import chart from "./client/chart.js" with { type: "text" };
import charts from "./client/charts.js" with { type: "text" };
import colourScale from "./client/colour_scale.js" with { type: "text" };
import courses from "./client/courses.js" with { type: "text" };
import dom from "./client/dom.js" with { type: "text" };
import format from "./client/format.js" with { type: "text" };
import frames from "./client/frames.js" with { type: "text" };
import group from "./client/group.js" with { type: "text" };
import heatLayout from "./client/heat_layout.js" with { type: "text" };
import heatMap from "./client/heat_map.js" with { type: "text" };
import history from "./client/history.js" with { type: "text" };
import jsonValues from "./client/json_values.js" with { type: "text" };
import loadStream from "./client/load_stream.js" with { type: "text" };
import main from "./client/main.js" with { type: "text" };
import rank from "./client/rank.js" with { type: "text" };
import rankPanel from "./client/rank_panel.js" with { type: "text" };
import rankTable from "./client/rank_table.js" with { type: "text" };
import sseParser from "./client/sse_parser.js" with { type: "text" };
import status from "./client/status.js" with { type: "text" };
import theme from "./client/theme.js" with { type: "text" };
import tile from "./client/tile.js" with { type: "text" };
import tileText from "./client/tile_text.js" with { type: "text" };
import token from "./client/token.js" with { type: "text" };
import totals from "./client/totals.js" with { type: "text" };
import uplotCss from "npm:uplot@1.6.32/dist/uPlot.min.css" with { type: "text" };
import uplot from "npm:uplot@1.6.32/dist/uPlot.iife.min.js" with { type: "text" };

/** A file of the page. */
export interface PageAsset {
  /** The whole text. */
  readonly body: string;
  /** The same, compressed. */
  readonly gzip: Uint8Array<ArrayBuffer>;
  /** For the `Content-Type` header. */
  readonly contentType: string;
  /** For the `ETag` header: the same as long as the text is, compressed or not, and so a weak one. */
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
const MODULE = "module";

const MODULES: readonly (readonly [name: string, text: string])[] = [
  ["announcer.js", announcer],
  ["chart.js", chart],
  ["charts.js", charts],
  ["colour_scale.js", colourScale],
  ["courses.js", courses],
  ["dom.js", dom],
  ["format.js", format],
  ["frames.js", frames],
  ["group.js", group],
  ["heat_layout.js", heatLayout],
  ["heat_map.js", heatMap],
  ["history.js", history],
  ["json_values.js", jsonValues],
  ["load_stream.js", loadStream],
  ["main.js", main],
  ["rank.js", rank],
  ["rank_panel.js", rankPanel],
  ["rank_table.js", rankTable],
  ["sse_parser.js", sseParser],
  ["status.js", status],
  ["theme.js", theme],
  ["tile.js", tile],
  ["tile_text.js", tileText],
  ["token.js", token],
  ["totals.js", totals],
];

/** A text, and its content type or `MODULE`: a module is served without its comments. */
type Source = readonly [text: string, kind: string];

const SOURCES: ReadonlyMap<string, Source> = new Map<string, Source>([
  ["/", [html, HTML]],
  ["/assets/icon.svg", [icon, "image/svg+xml"]],
  ["/assets/page.css", [css, CSS]],
  ["/assets/uplot.css", [uplotCss, CSS]],
  ["/assets/uplot.js", [uplot, SCRIPT]],
  ...MODULES.map(([name, text]): [string, Source] => [`/assets/${name}`, [text, MODULE]]),
]);

/** Where the page's files are, below the place where the page is mounted: `/`, `/assets/page.css`. */
export const PAGE_PATHS: readonly string[] = [...SOURCES.keys()];

// Made when asked for: an import does no work.
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
  const source = SOURCES.get(path);
  if (source === undefined) return null;
  const [text, kind] = source;
  const body = kind === MODULE ? withoutComments(text) : text;
  const contentType = kind === MODULE ? SCRIPT : kind;
  const hash = createHash("sha256").update(body).digest("base64url").slice(0, 22);
  const gzip = new Uint8Array(gzipSync(body));
  const asset: PageAsset = { body, gzip, contentType, etag: `W/"${hash}"` };
  assets.set(path, asset);
  return asset;
}
