/** The page's files: all there, small, and nothing from elsewhere. */

import assert from "node:assert/strict";
import { PAGE_CSP, PAGE_PATHS, pageAsset } from "../../src/http/page/assets.ts";
import { pageReply } from "../../src/http/page_reply.ts";
import { withoutComments } from "../../src/http/page/without_comments.ts";
import { tokenIn } from "../../src/http/page/client/token.js";

/** What 27 answers add, generously. */
const HEADER_BYTES = 400;
const BUDGET_BYTES = 150_000;

function bodyOf(path: string): string {
  const asset = pageAsset(path);
  assert.ok(asset !== null, path);
  return asset.body;
}

Deno.test("all files together are under 150 KB, headers included and without compression", () => {
  const bytes = PAGE_PATHS.map((path) => new TextEncoder().encode(bodyOf(path)).length);
  const total = bytes.reduce((sum, length) => sum + length + HEADER_BYTES, 0);
  assert.ok(total < BUDGET_BYTES, `${total}`);
});

Deno.test("every file has its type, and an entity tag that stays", () => {
  const tags = new Set<string>();
  for (const path of PAGE_PATHS) {
    const asset = pageAsset(path);
    assert.ok(asset !== null && asset.body.length > 0, path);
    assert.match(asset.etag, /^W\/"[\w-]{22}"$/);
    assert.equal(pageAsset(path)?.etag, asset.etag);
    tags.add(asset.etag);
    const kinds = { css: /^text\/css/, js: /^text\/javascript/, svg: /^image\/svg\+xml/ };
    const kind = kinds[path.split(".").at(-1) as keyof typeof kinds] ?? /^text\/html/;
    assert.match(asset.contentType, kind);
  }
  assert.equal(tags.size, PAGE_PATHS.length);
});

Deno.test("files go compressed to whom that suits, plain to others, and not at all when known", async () => {
  const ask = (headers: Record<string, string>) =>
    pageReply("/assets/page.css", new Request("http://localhost/", { headers }));
  const plain = bodyOf("/assets/page.css");
  for (const accepted of ["gzip", "br;q=1.0, gzip;q=0.8, *;q=0.1", "deflate,GZIP"]) {
    const reply = ask({ "accept-encoding": accepted });
    assert.equal(reply.headers.get("content-encoding"), "gzip", accepted);
    assert.equal(reply.headers.get("vary"), "accept-encoding");
    const unzipped = reply.body?.pipeThrough(new DecompressionStream("gzip"));
    assert.equal(await new Response(unzipped).text(), plain);
  }
  for (const accepted of ["", "identity", "gzip;q=0", "gzip;q=0.0, br", "xgzip"]) {
    const reply = ask({ "accept-encoding": accepted });
    assert.equal(reply.headers.get("content-encoding"), null, accepted);
    assert.equal(await reply.text(), plain);
  }
  const etag = pageAsset("/assets/page.css")?.etag ?? "";
  assert.equal(ask({ "if-none-match": etag, "accept-encoding": "gzip" }).status, 304);
});

Deno.test("what is no file of the page is none", () => {
  for (const path of ["", "/assets", "/assets/", "/assets/../page.css", "//", "/constructor"]) {
    assert.equal(pageAsset(path), null, path);
  }
});

Deno.test("every module and file that is referred to is there", () => {
  const there = new Set(PAGE_PATHS);
  for (const path of PAGE_PATHS) {
    const body = bodyOf(path);
    if (path === "/") {
      const links = [...body.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, link]) => link);
      assert.ok(links.length >= 5);
      for (const link of links) assert.ok(there.has(`/${link}`), link);
    }
    for (
      const [, name] of body.matchAll(/^\} from "\.\/([\w.]+)"|^import .* from "\.\/([\w.]+)"/gm)
    ) {
      assert.ok(name === undefined || there.has(`/assets/${name}`), name);
    }
  }
});

Deno.test("nothing is inline, and no file names a host or evaluates text", () => {
  const html = bodyOf("/");
  assert.doesNotMatch(html, /<style|style=|\son\w+=|<script(?![^>]*\ssrc=)/);
  for (const path of PAGE_PATHS) {
    const body = bodyOf(path).replaceAll("http://www.w3.org/2000/svg", "");
    if (path !== "/assets/uplot.js") assert.doesNotMatch(body, /https?:|\/\/[a-z]/i, path);
    assert.doesNotMatch(body, /\beval\(|new Function|@import|url\(/, path);
  }
  assert.doesNotMatch(PAGE_CSP, /unsafe|\*|https?:/);
});

Deno.test("comment lines are left out, and code keeps every line", () => {
  const source = [
    "/** One. */",
    "const a = 1; // stays",
    "  // goes",
    "/**",
    " * Two.",
    " */",
    "const b = /** @type {number} */ (a);",
    "  /** @type {string} */ (b)",
    "",
    "const c = 'x'; /* stays",
    "*/",
  ].join("\n");
  assert.equal(
    withoutComments(source),
    [
      "const a = 1; // stays",
      "const b = /** @type {number} */ (a);",
      "  /** @type {string} */ (b)",
      "const c = 'x'; /* stays",
      "*/",
      "",
    ].join("\n"),
  );
});

Deno.test("a token is taken from the fragment only where there is one", () => {
  assert.equal(tokenIn("#token=a%2Bb"), "a+b");
  assert.equal(tokenIn("#x=1&token=abc"), "abc");
  for (const fragment of ["", "#", "#token=", "#heat", "#tokens=1"]) {
    assert.equal(tokenIn(fragment), null, fragment);
  }
});
