// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Sends so many KvMetrics each time it is told to, as fast as the receiver takes them.
 *
 * Usage: kv_receive_flood.ts ENDPOINT pickle|msgpack, then lines with a number of messages
 */

import { createKvMetrics, type KvMetrics } from "../../src/kv_metrics/kv_metrics.ts";
import { encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { encodeKvMetricsPickle } from "../../src/kv_metrics/pickle_writer.ts";
import { PushSocket } from "../../src/zmq/socket.ts";

const DIFFERENT = 256;
const RANKS = 8;

/** Metrics of a busy engine. */
function metricsOf(n: number): KvMetrics {
  return createKvMetrics({
    requestActiveSlots: n % 97,
    requestTotalSlots: 2048,
    kvActiveBlocks: n * 6151,
    kvTotalBlocks: 2_400_000,
    numRequestsWaiting: (n * 7) % 31,
    gpuCacheUsagePerc: n * 6151 / 2_400_000,
    gpuPrefixCacheHitRate: (n % 17) / 17,
    dataParallelRank: n % RANKS,
  });
}

const [endpoint = "", encoding] = Deno.args;
const encode = encoding === "msgpack" ? encodeKvMetricsMsgpack : encodeKvMetricsPickle;
const messages = Array.from({ length: DIFFERENT }, (_, n) => encode(metricsOf(n)));
const push = new PushSocket(endpoint, { sendHighWaterMark: 20_000 });
const line = new Uint8Array(64);
console.log("{}");

for (let length; (length = await Deno.stdin.read(line)) !== null;) {
  const count = Number(new TextDecoder().decode(line.subarray(0, length)));
  for (let n = 0; n < count;) {
    if (push.send(messages[n % DIFFERENT]!) === "sent") n++;
    else await new Promise((resolve) => setTimeout(resolve, 1));
  }
  console.log("{}");
}
push.close();
