// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Asks for `/v1/loads` as fast as it is answered, over some connections that stay open.
 *
 * Usage: http_asker.ts, then lines of "PORT SECONDS"
 */

import { TextLineStream } from "./text_lines.ts";

const CONNECTIONS = 16;
const END = new TextEncoder().encode("\r\n\r\n");

const text = new TextDecoder("latin1");

/** One request after the other until the time is over; returns how many were answered. */
async function askUntil(port: number, endMs: number): Promise<number> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  connection.setNoDelay(true);
  const request = new TextEncoder().encode("GET /v1/loads HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const bytes = new Uint8Array(65_536);
  let count = 0;
  while (performance.now() < endMs) {
    await connection.write(request);
    let length = 0;
    let whole = -1;
    while (length !== whole) {
      const read = await connection.read(bytes.subarray(length));
      if (read === null) throw new Error("The server hung up");
      length += read;
      if (whole < 0) whole = wholeLength(bytes.subarray(0, length));
    }
    count++;
  }
  return count;
}

/** How long an answer is, head and body; -1 while its head is not all there. */
function wholeLength(bytes: Uint8Array): number {
  const head = text.decode(bytes.subarray(0, 1024));
  const end = head.indexOf("\r\n\r\n");
  if (end < 0) return -1;
  if (!head.startsWith("HTTP/1.1 200")) throw new Error(`It answers ${head.slice(0, 40)}`);
  return end + END.length + Number(/\r\ncontent-length: (\d+)/i.exec(head)![1]);
}

const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(
  new TextLineStream(),
);
console.log("{}");
for await (const line of lines) {
  const [port = 0, seconds = 0] = line.split(" ").map(Number);
  const begin = performance.now();
  const endMs = begin + seconds * 1000;
  const counts = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => askUntil(port, endMs)),
  );
  const count = counts.reduce((sum, one) => sum + one);
  console.log(JSON.stringify({ count, ns: (performance.now() - begin) * 1e6 / count }));
}
