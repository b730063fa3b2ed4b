/** What an operator asks a router: how the ranks are, and to drain one. */

import type { DpRouter, LoadReader } from "../../mod.ts";

const DRAIN = new URLPattern({ pathname: "/ranks/:dpRank(\\d{1,4})/drain" });

/**
 * `GET /ranks` tells of each rank; `PUT /ranks/N/drain` gives it no more requests, and
 * `DELETE /ranks/N/drain` takes it in again. Pages of other sites cannot send the last two.
 *
 * @param router Who chooses the ranks.
 * @param reader Where it knows them from.
 * @returns A handler that answers `null` to what is not its own.
 */
export function ranksApi(
  router: DpRouter,
  reader: LoadReader,
): (request: Request) => Response | null {
  const drained = new Set<number>();
  return ({ method, url }) => {
    if (method === "GET" && new URL(url).pathname === "/ranks") {
      return Response.json(ranks(router, reader, drained));
    }
    const match = DRAIN.exec(url);
    const dpRank = Number(match?.pathname.groups["dpRank"]);
    if (match === null || dpRank >= (router.dpSize ?? 0)) return null;
    if (method === "PUT") {
      drained.add(dpRank);
      router.drain(dpRank);
    } else if (method === "DELETE") {
      drained.delete(dpRank);
      router.undrain(dpRank);
    } else {
      return null;
    }
    return new Response(null, { status: 204 });
  };
}

function ranks(router: DpRouter, reader: LoadReader, drained: ReadonlySet<number>): unknown {
  const loads = new Map(reader.readAll().map((load) => [load.dpRank, load]));
  return {
    outstanding: router.stats()?.outstanding ?? 0,
    ranks: reader.health().map(({ dpRank, state, ageMs }) => ({
      dp_rank: dpRank,
      state,
      age_ms: ageMs,
      drained: drained.has(dpRank),
      num_running_reqs: loads.get(dpRank)?.numRunningReqs ?? null,
      num_waiting_reqs: loads.get(dpRank)?.numWaitingReqs ?? null,
    })),
  };
}
