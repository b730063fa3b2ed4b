// deno-lint-ignore-file no-console -- a command: its output is its purpose
/** Runs the cases of KvMetrics alone: `deno run -A tests/bench/kv_metrics_main.ts [--quick]`. */

import { ensurePeers } from "../peers/setup.ts";
import { PACES } from "./bench_context.ts";
import { kvMetricsSuite } from "./kv_metrics_suite.ts";
import { Progress } from "./progress.ts";
import { renderSection, renderVerdicts } from "./table.ts";

async function main(isQuick: boolean): Promise<number> {
  const peers = await ensurePeers();
  if (peers.state === "missing") {
    console.error(`There is nothing to compare with: no Python peers: ${peers.reason}`);
    return 1;
  }
  const folder = await Deno.makeTempDir({ prefix: "loadslots-bench-" });
  const progress = new Progress();
  try {
    const section = await kvMetricsSuite({
      peers,
      limit: { state: "missing", reason: "not needed" },
      folder,
      pace: isQuick ? PACES.quick : PACES.full,
      progress,
      signal: new AbortController().signal,
      wants: () => true,
    });
    progress.clear();
    console.log(renderSection(section!));
    console.log(renderVerdicts([section!]));
    return 0;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args.includes("--quick")));
