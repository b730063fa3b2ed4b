/** The page's own reading of Server-Sent Events. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import { SseParser } from "../../src/http/page/client/sse_parser.js";

function eventsOf(...pieces: readonly string[]) {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(piece));
}

Deno.test("an event has the type and the data that the stream gives it", () => {
  assert.deepEqual(eventsOf('event: loads\ndata: {"a":1}\n\ndata: x\n\n'), [
    { type: "loads", data: '{"a":1}' },
    { type: "message", data: "x" },
  ]);
});

Deno.test("an event whose end has not come yet is not given", () => {
  assert.deepEqual(eventsOf("data: x\n"), []);
  assert.deepEqual(eventsOf("data: x\n", "\n"), [{ type: "message", data: "x" }]);
});

Deno.test("data of several lines is joined, and one space behind the colon is not data", () => {
  assert.deepEqual(eventsOf("data: a\ndata:b\ndata:  c\ndata\n\n"), [
    { type: "message", data: "a\nb\n c\n" },
  ]);
});

Deno.test("comments, unknown fields and events without data say nothing", () => {
  assert.deepEqual(eventsOf(": ping\n\nevent: x\n\nother: y\n\ndata: z\n\n"), [
    { type: "message", data: "z" },
  ]);
});

Deno.test("lines end by LF, CR or both, and a byte order mark is no part of the first", () => {
  assert.deepEqual(eventsOf("\uFEFFdata: a\r\rdata: b\r\n\r\ndata: c\n\n"), [
    { type: "message", data: "a" },
    { type: "message", data: "b" },
    { type: "message", data: "c" },
  ]);
});

Deno.test("an id counts when its event is whole, stays for the next, and may not hold a NUL", () => {
  const parser = new SseParser("3");
  parser.push("id: 4\ndata: x\n");
  assert.equal(parser.lastEventId, "3");
  parser.push("\ndata: y\n\n");
  assert.equal(parser.lastEventId, "4");
  parser.push("id: 5\0\ndata: z\n\n");
  assert.equal(parser.lastEventId, "4");
  parser.push("id\ndata: z\n\n");
  assert.equal(parser.lastEventId, "");
});

Deno.test("the time to wait is taken over if it is one", () => {
  const parser = new SseParser();
  parser.push("retry: soon\n");
  assert.equal(parser.retryMs, null);
  parser.push("retry: 250\n");
  assert.equal(parser.retryMs, 250);
  parser.push("retry: -1\n");
  assert.equal(parser.retryMs, 250);
});

Deno.test("however a stream is cut into pieces, its events are the same", () => {
  const line = fc.oneof(
    fc.constantFrom("", "data: a", "data:b: c", "event: loads", "id: 7", ": hm", "retry: 9", "x"),
    fc.string().map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
  );
  const text = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n"))).map((lines) =>
    // A last LF, so that no half of a line's end is left.
    lines.map(([line, end]) => line + end).join("") + "\n"
  );
  fc.assert(fc.property(text, fc.array(fc.nat({ max: 40 })), (text, cuts) => {
    const pieces: string[] = [];
    let from = 0;
    for (const cut of cuts) pieces.push(text.slice(from, from += cut));
    pieces.push(text.slice(from));
    assert.deepEqual(eventsOf(...pieces), eventsOf(text));
  }));
});
