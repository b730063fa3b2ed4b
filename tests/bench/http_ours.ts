// deno-lint-ignore-file no-console -- standard output is how it answers
/**
 * Our service in a benchmark: tells where it is, and serves until its input ends.
 *
 * Usage: http_ours.ts PATH, then "where"
 */

import { serveLoad } from "../../src/http/mod.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { TextLineStream } from "./text_lines.ts";

using reader = new ShmLoadSnapshotReader(Deno.args[0]!);
await using server = serveLoad(reader);
const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(
  new TextLineStream(),
);
console.log("{}");
for await (const _ of lines) console.log(JSON.stringify({ url: server.url, pid: Deno.pid }));
