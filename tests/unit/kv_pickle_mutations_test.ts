// deno-lint-ignore-file no-console -- the seed is printed, so that a failure can be repeated
/** 100,000 changed pickles: each is refused with a typed error, or is a message like any other. */

import assert from "node:assert/strict";
import { KvMetricsDecodeError, PickleRefusedError } from "../../src/errors.ts";
import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import { KV_FIELDS } from "../../src/kv_metrics/fields.ts";
import type { KvMetricsMessage } from "../../src/kv_metrics/kv_metrics.ts";
import { PickleMachine } from "../../src/kv_metrics/pickle_machine.ts";
import { readUsual } from "../../src/kv_metrics/pickle_reader.ts";
import { encodeKvMetricsPickle } from "../../src/kv_metrics/pickle_writer.ts";
import { KvMutations } from "../support/kv_mutations.ts";
import { valuesOf } from "../support/kv_vectors.ts";

const SEED = 0x5eed_0001;
const COUNT = 100_000;
const NAMES = KV_FIELDS.map(({ name }) => name);

Deno.test("100,000 changed pickles give typed errors and whole messages, nothing else", () => {
  console.log(`seed ${SEED}`);
  const mutations = new KvMutations(SEED);
  const counts = new Map<string, number>();
  for (let n = 0; n < COUNT; n++) {
    const pickle = mutations.next();
    const outcome = outcomeOf(pickle, n);
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  console.log(Object.fromEntries([...counts].sort((a, b) => b[1] - a[1])));
  // Enough get through to say something, and each kind of refusal takes its part.
  assert(counts.get("read")! > COUNT / 20);
  for (
    const reason of [
      ...["opcode", "global", "call", "build", "memo", "depth", "stack", "dict", "text"],
      ...["integer", "numpy", "value", "result", "trailing", "truncated", "frame", "protocol"],
    ]
  ) assert(counts.has(reason), `no ${reason}`);
});

/** What became of a pickle: "read", or the kind of refusal. */
function outcomeOf(pickle: Uint8Array, n: number): string {
  let message: KvMetricsMessage;
  try {
    message = decodeKvMetrics(pickle);
  } catch (error) {
    assert(error instanceof KvMetricsDecodeError, `mutation ${n}: ${error}: ${pickle.toHex()}`);
    assert(error.offset >= 0 && error.offset <= pickle.length);
    assert.match(error.what, /^[\x20-\x7e]+$/);
    assert.equal(error instanceof PickleRefusedError, pickle[0] === 0x80);
    return error.reason;
  }
  assert.deepEqual(Object.keys(message), NAMES);
  for (const value of valuesOf(message)) assert(value === null || typeof value === "number");
  if (pickle[0] === 0x80) assertShortcutAgrees(pickle, message);
  assertWritable(message);
  return "read";
}

/** The shortcut and the machine are two readers of one language. */
function assertShortcutAgrees(pickle: Uint8Array, message: KvMetricsMessage): void {
  const view = new DataView(pickle.buffer, pickle.byteOffset, pickle.length);
  const values = valuesOf(message);
  assert.deepEqual(new PickleMachine(pickle, view).run(), values);
  const found = readUsual(pickle, view);
  if (found !== null) assert.deepEqual(found, values);
}

/** What was read can be written and read again. */
function assertWritable(message: KvMetricsMessage): void {
  const isSound = KV_FIELDS.every(({ name, type }) =>
    message[name] === null || type === "share" || Number.isSafeInteger(message[name])
  );
  if (isSound) assert.deepEqual(decodeKvMetrics(encodeKvMetricsPickle(message)), message);
}
