// deno-lint-ignore-file no-console -- the reason for a test that is left out is printed
/** A real Prometheus server scrapes `/metrics`, and answers queries about the load. */

import assert from "node:assert/strict";
import { serveLoad } from "../../src/http/mod.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { Child } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { HANG_MS, sleep } from "../support/wait.ts";

const PROGRAM = "/usr/bin/prometheus";
const TOKEN = "a-token-of-this-test";

const isThere = await Deno.stat(PROGRAM).then((info) => info.isFile, () => false);
if (!isThere) {
  if (Deno.env.get("CI") === "true") throw new Error(`Cannot find Prometheus: no ${PROGRAM}`);
  console.error(`left out: a real Prometheus server: no ${PROGRAM} (apt: prometheus)`);
}

/** One series of an instant query. */
interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** A port that was free a moment ago: Prometheus does not tell the one that it gets. */
function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Asks until there is an answer; the server has to start, and to scrape. */
async function query(at: string, expression: string): Promise<readonly Series[]> {
  const url = new URL("/api/v1/query", at);
  url.searchParams.set("query", expression);
  const deadline = performance.now() + HANG_MS;
  for (;;) {
    const body = await fetch(url).then((response) => response.json()).catch(() => null);
    if (body?.status === "success" && body.data.result.length > 0) return body.data.result;
    if (performance.now() > deadline) throw new Error(`Waited in vain for ${expression}`);
    await sleep(50);
  }
}

Deno.test({
  name: "a Prometheus server scrapes the metrics, with its token, and answers queries",
  ignore: !isThere,
  fn: async () => {
    using file = new SlotPath();
    using folder = new TempFolder();
    using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 2, dpRank: 1 });
    writer.write(createLoadSnapshot({
      dpRank: 1,
      timestamp: Date.now() / 1000,
      numRunningReqs: 7,
      maxTotalNumTokens: 1000,
      tokenUsage: 0.25,
      queues: { waiting: 3 },
    }));
    using reader = new ShmLoadSnapshotReader(file.path, { staleAfterMs: 3_600_000 });
    await using server = serveLoad(reader, { token: TOKEN });
    const config = folder.put(
      "prometheus.yml",
      JSON.stringify({
        global: { scrape_interval: "200ms", scrape_timeout: "200ms" },
        scrape_configs: [{
          job_name: "engine",
          authorization: { credentials: TOKEN },
          static_configs: [{ targets: [new URL(server.url).host] }],
        }],
      }),
    );
    const at = `http://127.0.0.1:${freePort()}`;
    await using prometheus = new Child(PROGRAM, [
      `--config.file=${config}`,
      `--storage.tsdb.path=${folder.path}/data`,
      `--web.listen-address=${new URL(at).host}`,
    ]);

    const running = await query(at, "sglang_num_running_reqs");
    assert.deepEqual(running.map(({ metric, value }) => [metric.dp_rank, value[1]]), [["1", "7"]]);
    const states = await query(at, "loadslots_rank_state == 1");
    assert.deepEqual(
      states.map(({ metric }) => [metric.dp_rank, metric.state]).sort(),
      [["0", "unreported"], ["1", "live"]],
    );
    // What an operator would ask: a share over all ranks that can be trusted.
    const usage = await query(
      at,
      'avg(sglang_token_usage * on(dp_rank) loadslots_rank_state{state="live"})',
    );
    assert.equal(usage[0]!.value[1], "0.25");
    assert.equal((await query(at, "up"))[0]!.value[1], "1");

    prometheus.kill("SIGTERM");
    assert.equal((await prometheus.status).code, 0);
  },
});
