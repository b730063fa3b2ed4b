/**
 * One rank of a simulated engine, which pushes its load to a collector as the ranks on the other
 * nodes do. `examples/multi_node.ts` starts some of these; on another machine it is started by hand:
 *
 * ```sh
 * deno run --allow-ffi --allow-read examples/multi_node/engine_rank.ts \
 *   --endpoint tcp://node0:5557 --ranks 8 --rank 3
 * ```
 */

import { ZmqLoadSnapshotWriter } from "../../mod.ts";
import {
  numberFlag,
  readFlags,
  runCommand,
  say,
  stopSignal,
  UsageError,
  withTimeLimit,
} from "../command_line.ts";
import { delay } from "../delay.ts";
import { SimulatedEngine } from "../engine.ts";

const USAGE = `Runs one rank of a simulated engine that pushes its load to a collector.

  deno run --allow-ffi --allow-read examples/multi_node/engine_rank.ts --endpoint E --rank R [flags]

  --endpoint E      where the collector is, such as tcp://node0:5557
  --rank R          which rank this is, from 0
  --ranks N         how many there are, 1 to 512 (default 4)
  --seconds T       end by itself
  --parent PID      end with this process, which started it
  --help            show this`;

/** The engine has some past when it is first heard. */
const WARM_UP_MS = 60_000;
const PUBLISH_INTERVAL = 15;
const PARENT_CHECK_MS = 500;

async function main(): Promise<number> {
  const flags = readFlags(Deno.args, {
    endpoint: "string",
    rank: "string",
    ranks: "string",
    seconds: "string",
    parent: "string",
    help: "boolean",
  });
  if (flags.help) {
    say(USAGE);
    return 0;
  }
  const dpSize = numberFlag("ranks", flags.ranks, { low: 1, high: 512, whole: true }, 4);
  const rank = { low: 0, high: dpSize - 1, whole: true };
  const dpRank = numberFlag("rank", flags.rank, rank, null);
  const seconds = numberFlag("seconds", flags.seconds, { low: 0, high: 1e6, whole: false }, null);
  const parent = numberFlag("parent", flags.parent, { low: 1, high: 2 ** 31, whole: true }, null);
  if (flags.endpoint === undefined || dpRank === null) {
    throw new UsageError("Give --endpoint and --rank");
  }

  using stop = stopSignal();
  const orphaned = new AbortController();
  const signal = withTimeLimit(AbortSignal.any([stop.signal, orphaned.signal]), seconds);
  using writer = new ZmqLoadSnapshotWriter(flags.endpoint, {
    dpSize,
    dpRank,
    publishInterval: PUBLISH_INTERVAL,
  });
  using engine = new SimulatedEngine([writer], {
    firstDpRank: dpRank,
    startMs: Date.now() - WARM_UP_MS,
  });
  engine.step(WARM_UP_MS);
  const watching = parent === null ? null : endWith(parent, orphaned, signal);
  await engine.run({ signal });
  await watching;
  return 0;
}

/** A process that was killed cannot end its children: they have to notice. */
async function endWith(parent: number, ended: AbortController, signal: AbortSignal) {
  while (!signal.aborted) {
    if (Deno.ppid !== parent) ended.abort();
    await delay(PARENT_CHECK_MS, signal);
  }
}

if (import.meta.main) await runCommand(USAGE, main);
