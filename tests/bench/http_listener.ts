// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Publishes loads and listens to the live stream: tells how long it takes from the one to the other.
 *
 * Usage: http_listener.ts PATH PORT CLIENTS, then lines of "PUBLICATIONS-A-SECOND SECONDS"
 */

import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { loadsOf, VERSIONS } from "./payloads.ts";
import { TextLineStream } from "./text_lines.ts";

const RANKS = 8;
/** What all but the first client do with a chunk. */
const SCRAP = new Uint8Array(65_536);
const DISCARD_MS = 500;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const [path = "", port = "", clients = "1"] = Deno.args;
const loads = Array.from({ length: RANKS }, (_, dpRank) => loadsOf(dpRank, "trace"));
/** When each publication was begun, by the number that marks it. */
const begunMs = new Map<number, number>();
const delays: number[] = [];
let number = 0;

function publish(writers: readonly ShmLoadSnapshotWriter[]): void {
  const dpRank = number % RANKS;
  const load = loads[dpRank]![Math.floor(number / RANKS) % VERSIONS]!;
  number++;
  begunMs.set(number, performance.now());
  writers[dpRank]!.write({ ...load, timestamp: Date.now() / 1000, totalPrefillBusyUs: number });
}

async function open(): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(port) });
  const request = "GET /v1/loads/stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
  await connection.write(new TextEncoder().encode(request));
  return connection;
}

/** Finds the marks in what arrives; it knows them by their key alone, to be quick. */
async function listen(connection: Deno.TcpConn): Promise<void> {
  const decoder = new TextDecoder("latin1");
  const bytes = new Uint8Array(65_536);
  let rest = "";
  for (;;) {
    const length = await connection.read(bytes);
    if (length === null) return;
    const nowMs = performance.now();
    rest += decoder.decode(bytes.subarray(0, length));
    const whole = rest.lastIndexOf("\n\n") + 1;
    for (const [, mark] of rest.slice(0, whole).matchAll(/"total_prefill_busy_us":(\d+)/g)) {
      const begun = begunMs.get(Number(mark));
      if (begun === undefined) continue;
      begunMs.delete(Number(mark));
      delays.push((nowMs - begun) * 1e6);
    }
    rest = rest.slice(whole);
  }
}

/** Reads rarely, and much: the system takes what comes meanwhile, and this core stays for the first. */
async function discard(connection: Deno.TcpConn): Promise<void> {
  while (await connection.read(SCRAP) !== null) await sleep(DISCARD_MS);
}

using writers = new DisposableStack();
const ranks = Array.from(
  { length: RANKS },
  (_, dpRank) => writers.use(new ShmLoadSnapshotWriter(path, { dpSize: RANKS, dpRank })),
);
for (let dpRank = 0; dpRank < RANKS; dpRank++) publish(ranks);
const connections: Deno.TcpConn[] = [];
const reading: Promise<void>[] = [];
for (let n = 0; n < Number(clients); n++) {
  const connection = await open();
  connections.push(connection);
  reading.push((n === 0 ? listen : discard)(connection));
}
const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(
  new TextLineStream(),
);
console.log("{}");
for await (const line of lines) {
  const [rate = 0, seconds = 0] = line.split(" ").map(Number);
  begunMs.clear();
  delays.length = 0;
  const before = number;
  const endMs = performance.now() + seconds * 1000;
  while (performance.now() < endMs) {
    publish(ranks);
    // Never in step with whoever looks.
    await sleep(Math.random() * 2000 / rate);
  }
  await sleep(200);
  const sorted = delays.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? NaN;
  console.log(JSON.stringify({
    p50: at(0.5),
    p99: at(0.99),
    heard: delays.length,
    published: number - before,
  }));
}
for (const connection of connections) connection.close();
await Promise.allSettled(reading);
