/** The codec against SGLang's own module: the same bytes, and the same meaning both ways. */

import assert from "node:assert/strict";
import { decodeLoadSnapshot, encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { CORE_FIELDS } from "../../src/snapshot/fields.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { withoutExtras } from "../support/known.ts";
import { assertSame } from "../support/same.ts";
import { aPlainSnapshot, aSnapshot } from "../support/snapshot_arbitraries.ts";
import { type DriverValue, Float, NumpyScalar } from "./driver_values.ts";
import { batches, SEED } from "./generated.ts";
import { peerTests } from "./peer_tests.ts";

const COUNT = 2_500;

const test = await peerTests();

test(`both encode ${COUNT} snapshots to the same bytes (seed ${SEED})`, async (peer) => {
  for (const snapshots of batches(aPlainSnapshot, COUNT)) {
    const theirs = await peer.encode(snapshots);
    snapshots.forEach((snapshot, at) => {
      assert.equal(encodeLoadSnapshot(snapshot).toHex(), theirs[at]?.toHex());
    });
  }
});

test(`what Python wrote is read as what it was, ${COUNT} times (seed ${SEED})`, async (peer) => {
  for (const snapshots of batches(aPlainSnapshot, COUNT)) {
    const payloads = await peer.encode(snapshots);
    assertSame(payloads.map((payload) => decodeLoadSnapshot(payload)), snapshots);
  }
});

test(`Python reads what was written, and writes it again, ${COUNT} times (seed ${SEED})`, async (peer) => {
  for (const snapshots of batches(aPlainSnapshot, COUNT)) {
    const payloads = snapshots.map((snapshot) => encodeLoadSnapshot(snapshot));
    const decoded = await peer.decode(payloads);
    snapshots.forEach((snapshot, at) => {
      const one = decoded[at];
      assert(one?.ok, `${payloads[at]!.toHex()}: ${JSON.stringify(one)}`);
      assertSame(one.snapshot, snapshot);
      assert.equal(one.reencoded.toHex(), payloads[at]!.toHex());
    });
  }
});

test(`what is unknown does not keep Python from the rest, ${COUNT} times (seed ${SEED})`, async (peer) => {
  for (const snapshots of batches(aSnapshot, COUNT)) {
    const payloads = snapshots.map((snapshot) => encodeLoadSnapshot(snapshot));
    assertSame(payloads.map((payload) => decodeLoadSnapshot(payload)), snapshots);
    const decoded = await peer.decode(payloads);
    snapshots.forEach((snapshot, at) => {
      const one = decoded[at];
      assert(one?.ok, `${payloads[at]!.toHex()}: ${JSON.stringify(one)}`);
      assertSame(one.snapshot, withoutExtras(snapshot));
    });
  }
});

test("computed zeros and ints in float fields are read as what they mean", async (peer) => {
  const zeros: Record<string, DriverValue> = {};
  const ints: Record<string, DriverValue> = {};
  const scalars: Record<string, DriverValue> = {};
  for (const { wire, type } of CORE_FIELDS) {
    if (type === "float") {
      zeros[wire] = new Float(0);
      ints[wire] = 7;
      scalars[wire] = new NumpyScalar("float32", 0.1);
    } else if (type === "int") {
      scalars[wire] = new NumpyScalar("int64", 0);
    }
  }
  const payloads = await peer.encode([zeros, ints, scalars]);
  const [first, second, third] = payloads.map((payload) => decodeLoadSnapshot(payload));
  assert(first && second && third);
  assert.deepEqual(first, createLoadSnapshot());
  for (const { name, type } of CORE_FIELDS) {
    assert.equal(second[name], type === "floats" ? null : type === "float" ? 7 : 0);
    assert.equal(third[name], type === "floats" ? null : type === "float" ? Math.fround(0.1) : 0);
  }
  // Here, and only here, the bytes differ: zeros are left out, and a float is a float.
  assert.equal(encodeLoadSnapshot(first).toHex(), "de0000");
  assert.deepEqual((await peer.decode([encodeLoadSnapshot(second)]))[0], {
    ok: true,
    snapshot: second,
    reencoded: encodeLoadSnapshot(second),
  });
});
