// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Our side of one case of KvMetrics, in a process of its own; see ours.ts.
 *
 * Usage: kv_metrics_ours.ts CASE MESSAGES ROUND-MS WARM-UP-MS
 */

import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import { encodeKvMetricsMsgpack } from "../../src/kv_metrics/msgpack.ts";
import { PickleWriter } from "../../src/kv_metrics/pickle_writer.ts";
import { backToBack, warmUp } from "./timing.ts";

const [name = "", path = "", roundMs, warmMs] = Deno.args;
const bytes = Deno.readTextFileSync(path).trim().split("\n").map((line) =>
  Uint8Array.fromHex(line)
);
const messages = bytes.map(decodeKvMetrics);
const writer = new PickleWriter();

/** Keeps results from being optimised away. */
let sink: unknown = null;

const CASES: Readonly<Record<string, (step: number) => void>> = {
  "decode-pickle": decode,
  "decode-msgpack": decode,
  "encode-pickle": (step) => {
    sink = writer.write(messages[step % messages.length]!);
  },
  "encode-msgpack": (step) => {
    sink = encodeKvMetricsMsgpack(messages[step % messages.length]!);
  },
};

function decode(step: number): void {
  sink = decodeKvMetrics(bytes[step % bytes.length]!);
}

const timed = backToBack(CASES[name]!);
const calls = warmUp(timed, Number(roundMs), Number(warmMs));
console.log(JSON.stringify({ calls }));

// Blocking reads: nothing else goes on in this process, not even an event loop.
while ((Deno.stdin.readSync(new Uint8Array(64)) ?? 0) > 0) {
  console.log(JSON.stringify({ ns: timed(calls) / calls }));
}
Deno.exit(sink === null ? 1 : 0);
