/** KvMetrics as they come from a socket: pickles, which nothing may execute, and MessagePack. */

import assert from "node:assert/strict";
import { KvMetricsDecodeError, PickleRefusedError } from "../../../src/errors.ts";
import { decodeKvMetrics } from "../../../src/kv_metrics/codec.ts";
import { KV_FIELDS } from "../../../src/kv_metrics/fields.ts";
import { createKvMetrics, type KvMetricsMessage } from "../../../src/kv_metrics/kv_metrics.ts";
import { encodeKvMetricsMsgpack } from "../../../src/kv_metrics/msgpack.ts";
import { PickleMachine } from "../../../src/kv_metrics/pickle_machine.ts";
import { readUsual } from "../../../src/kv_metrics/pickle_reader.ts";
import { KvMutations } from "../../support/kv_mutations.ts";
import { KV_VECTORS, valuesOf } from "../../support/kv_vectors.ts";
import { isSame } from "../../support/same.ts";
import { NOTHING_HELD, refusal, type Target } from "../target.ts";

const NAMES = KV_FIELDS.map(({ name }) => name);

/** Pickles, some of them changed by what knows pickle's instructions. */
export function pickleTarget(): Target {
  const mutations = new KvMutations(0x5eed_0007);
  return {
    ...NOTHING_HELD,
    name: "pickle",
    seeds: [
      ...KV_VECTORS.map(({ pickle }) => pickle),
      ...Array.from({ length: 100 }, () => mutations.next()),
    ],
    share: 4,
    execute(input) {
      // With its frame's length made right too, or a wrong one would hide all else.
      const isFramed = input.length > 11 && input[2] === 0x95;
      return execute(isFramed ? reframed(input) : input) + (isFramed ? execute(input) : "");
    },
  };
}

/** MessagePack, of the shape of a KvMetrics. */
export function kvMsgpackTarget(): Target {
  return {
    ...NOTHING_HELD,
    name: "kv-msgpack",
    seeds: [
      encodeKvMetricsMsgpack(createKvMetrics()),
      encodeKvMetricsMsgpack(createKvMetrics({ kvActiveBlocks: 70_000, gpuCacheUsagePerc: 0.25 })),
      Uint8Array.fromHex("99a94b764d65747269637303cc80cd0200cd200002ca3d800000ca3f00000000"),
      Uint8Array.fromHex("98a94b764d65747269637303cc80cd0200cd200002cac0c0"),
      // A rank of -0.0, which no integer on the wire can be.
      Uint8Array.fromHex("99a94b764d65747269637303cc80cd0200cd2000020203cb8000000000000000"),
    ],
    share: 2,
    execute,
  };
}

function execute(bytes: Uint8Array): string {
  let message: KvMetricsMessage;
  try {
    message = decodeKvMetrics(bytes);
  } catch (error) {
    if (!(error instanceof KvMetricsDecodeError)) throw error;
    assert(error.offset >= 0 && error.offset <= Math.max(bytes.length, 8192));
    assert.match(error.what, /^[\x20-\x7e]+$/);
    assert.equal(error instanceof PickleRefusedError, bytes[0] === 0x80);
    return refusal(error.reason, error.what, error.offset);
  }
  assert.deepEqual(Object.keys(message), NAMES);
  const values = valuesOf(message);
  for (const value of values) assert(value === null || typeof value === "number");
  if (bytes[0] === 0x80) assertShortcutAgrees(bytes, message);
  const again = rewritten(message);
  if (again !== null) assert(isSame(again, asWritten(message)), "lost in encoding");
  return `${bytes[0]} ${values.map((value) => value === null ? "-" : Math.sign(value)).join()}`;
}

/** Counts are written as integers, which have no -0. */
function asWritten(message: KvMetricsMessage): KvMetricsMessage {
  const counts = KV_FIELDS.filter(({ name, type }) => type === "int" && message[name] === 0);
  return { ...message, ...Object.fromEntries(counts.map(({ name }) => [name, 0])) };
}

/** Written and read again; `null` where counts are none, which is told by a RangeError. */
function rewritten(message: KvMetricsMessage): KvMetricsMessage | null {
  try {
    return decodeKvMetrics(encodeKvMetricsMsgpack(message));
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** The shortcut and the machine are two readers of one language. */
function assertShortcutAgrees(pickle: Uint8Array, message: KvMetricsMessage): void {
  const view = new DataView(pickle.buffer, pickle.byteOffset, pickle.length);
  const short = readUsual(pickle, view);
  if (short === null) return;
  assert.deepEqual(short, valuesOf(message));
  assert.deepEqual([...new PickleMachine(pickle, view).run()], [...short]);
}

function reframed(input: Uint8Array): Uint8Array {
  const bytes = input.slice();
  new DataView(bytes.buffer).setBigUint64(3, BigInt(bytes.length - 11), true);
  return bytes;
}
