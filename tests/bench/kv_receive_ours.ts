// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Our side of a case of receiving: tells where it is bound, then for each number of messages how much
 * time and how much of a processor one of them took.
 *
 * Usage: kv_receive_ours.ts latest|every, then "endpoint", then lines with a number of messages
 */

import process from "node:process";
import { KvMetricsReceiver } from "../../src/kv_metrics/receiver.ts";

const LOOK_MS = 1;

const receiver = await KvMetricsReceiver.open("tcp://127.0.0.1:*", { dpSize: 8 });
let taken = 0;
if (Deno.args[0] === "every") {
  void (async () => {
    for await (const _ of receiver) taken++;
  })();
}

async function received(count: number): Promise<void> {
  while (receiver.stats().received < count) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

let expected = 0;
const line = new Uint8Array(64);
console.log("{}");
for (let length; (length = await Deno.stdin.read(line)) !== null;) {
  const text = new TextDecoder().decode(line.subarray(0, length)).trim();
  if (text === "endpoint") {
    console.log(JSON.stringify({ endpoint: receiver.endpoint }));
    continue;
  }
  const count = Number(text);
  // Not what was received by now: some of this round's may be there already.
  const before = expected;
  expected += count;
  await received(before + 1);
  const begin = performance.now();
  const cpu = process.cpuUsage();
  await received(expected);
  const { user, system } = process.cpuUsage(cpu);
  console.log(JSON.stringify({
    ns: (performance.now() - begin) * 1e6 / count,
    cpuNs: (user + system) * 1e3 / count,
    taken,
    refused: receiver.stats().received - receiver.stats().accepted,
  }));
}
await receiver.close();
