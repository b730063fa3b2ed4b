// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Our collector in a benchmark: tells where it is bound, then what its process costs.
 *
 * Usage: zmq_ours.ts PATH, then "endpoint", a number of messages, "idle SECONDS" or "serve SECONDS"
 */

import process from "node:process";
import { ZmqShmLoadSnapshotReader } from "../../src/zmq/reader.ts";
import { TextLineStream } from "./text_lines.ts";

// The main isolate only asks from time to time whether all has come: what is timed is the worker.
const LOOK_MS = 20;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

await using collector = await ZmqShmLoadSnapshotReader.open("tcp://127.0.0.1:*", Deno.args[0]!, {
  dpSize: 8,
});
const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(
  new TextLineStream(),
);
let expected = 0;
console.log("{}");
for await (const line of lines) {
  const [word = "", seconds = "0"] = line.split(" ");
  const before = process.cpuUsage();
  const cpuNs = () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) * 1e3;
  };
  if (word === "endpoint") {
    console.log(JSON.stringify({ endpoint: collector.endpoint }));
  } else if (word === "idle") {
    await sleep(Number(seconds) * 1000);
    console.log(JSON.stringify({ cpuNs: cpuNs() / Number(seconds) }));
  } else if (word === "serve") {
    await sleep(Number(seconds) * 1000);
    console.log("{}");
  } else {
    expected += Number(word);
    while (collector.stats().received < expected) await sleep(LOOK_MS);
    console.log(JSON.stringify({ cpuNs: cpuNs() / Number(word) }));
  }
}
