/** Ranks that are servers of their own: one base URL for each. */

import { UsageError } from "../command_line.ts";
import type { Backend } from "./proxy.ts";

/**
 * @param urls Where the ranks answer: the first is rank 0's.
 * @returns What a proxy sends requests to.
 */
export function httpBackend(urls: readonly URL[]): Backend {
  return async (dpRank, request) => {
    const base = urls[dpRank];
    if (base === undefined) {
      throw new RangeError(`Cannot reach rank ${dpRank}: no --backend for it`);
    }
    const { pathname, search } = new URL(request.url);
    const url = base.href.replace(/\/$/, "") + pathname + search;
    // What is compressed would have to be read before it can be sent on.
    const passedOn = new Request(url, request);
    passedOn.headers.set("accept-encoding", "identity");
    return await fetch(passedOn, { redirect: "manual" });
  };
}

/** @throws {UsageError} If one is no URL that can be asked. */
export function backendUrls(flags: readonly string[]): URL[] {
  return flags.map((text) => {
    const url = URL.parse(text);
    const isBase = url !== null && /^https?:$/.test(url.protocol) && url.search + url.hash === "";
    if (!isBase) throw new UsageError(`--backend takes a URL of http or https, not "${text}"`);
    return url;
  });
}
