/** Sections that an older engine sends shorter: defaults stand in, and a mark tells how many. */

import assert from "node:assert/strict";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { SECTIONS } from "../../src/snapshot/fields.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import * as msgpack from "../support/msgpack.ts";

for (const { name, wire, fields } of SECTIONS) {
  const items = fields.map(({ type }, at) =>
    type === "string" ? msgpack.str("decode") : msgpack.int(at + 1)
  );
  const values = fields.map(({ type }, at) => type === "string" ? "decode" : at + 1);

  for (let count = 0; count <= fields.length; count++) {
    const missing = fields.length - count;

    Deno.test(`a ${wire} section of ${count} values lacks ${missing}`, () => {
      const bytes = msgpack.payload({ [wire]: msgpack.array(items.slice(0, count)) });
      const given = fields.slice(0, count).map((field, at) => [field.name, values[at]]);
      const expected = { ...Object.fromEntries(given), missing };
      assert.deepEqual(decodeLoadSnapshot(bytes), createLoadSnapshot({ [name]: expected }));
    });
  }

  Deno.test(`a short ${wire} section is written whole`, () => {
    const bytes = msgpack.payload({ [wire]: msgpack.array(items.slice(0, 1)) });
    const snapshot = decodeLoadSnapshot(bytes);
    const again = decodeLoadSnapshot(encodeLoadSnapshot(snapshot));
    assert.deepEqual(again[name], { ...snapshot[name], missing: 0 });
  });
}

Deno.test("a section is short or long by itself", () => {
  const counts = (count: number) => msgpack.array(Array(count).fill(msgpack.int(count)));
  const { memory, speculative, lora, queues } = decodeLoadSnapshot(msgpack.payload({
    memory: counts(3),
    speculative: counts(3),
    lora: counts(3),
    queues: counts(3),
  }));
  assert.deepEqual(
    [memory?.missing, speculative?.missing, lora?.missing, queues?.missing],
    [1, 0, 0, 2],
  );
  assert.deepEqual(
    [memory?.extra, speculative?.extra?.length, lora?.extra, queues?.extra],
    [null, 1, null, null],
  );
});
