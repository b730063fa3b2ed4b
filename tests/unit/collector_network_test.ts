/** Who may reach a collector: this machine, or writers with a key, unless it is said otherwise. */

import assert from "node:assert/strict";
import { generateCurveKeys } from "../../src/zmq/curve.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";
import { Collector, loadOf } from "../support/collector.ts";
import { TempIpc } from "../support/zmq.ts";

const RANK_0 = { dpSize: 2, dpRank: 0 } as const;

for (const endpoint of ["tcp://*:*", "tcp://0.0.0.0:*", "tcp://[::]:*"]) {
  Deno.test(`${endpoint} is refused without keys, and the error says why and what helps`, async () => {
    await assert.rejects(Collector.open({ endpoint }), (error) => {
      assert(error instanceof TypeError);
      assert(error.message.startsWith(`Cannot bind ${endpoint}: other machines reach it`));
      assert.match(error.message, /give curve, or bind to loopback, or say allowInsecureBind$/);
      return true;
    });
  });
}

Deno.test("binding to a network needs no keys if it is said to be intended", async () => {
  await using collector = await Collector.open({ endpoint: "tcp://*:*", allowInsecureBind: true });
  const port = collector.reader.endpoint.split(":").at(-1);
  using writer = new ZmqLoadSnapshotWriter(`tcp://127.0.0.1:${port}`, RANK_0);
  writer.write(loadOf(0, 1));
  await collector.shows(0, 1);
});

Deno.test("with keys a collector hears those writers that know its public key", async () => {
  const keys = generateCurveKeys();
  using ipc = new TempIpc();
  for (const endpoint of ["tcp://127.0.0.1:*", ipc.endpoint]) {
    await using collector = await Collector.open({ endpoint, curve: { keys } });
    const { reader } = collector;
    const stranger = { serverKey: generateCurveKeys().publicKey };
    using plain = new ZmqLoadSnapshotWriter(reader.endpoint, RANK_0);
    using wrong = new ZmqLoadSnapshotWriter(reader.endpoint, { ...RANK_0, curve: stranger });
    using right = new ZmqLoadSnapshotWriter(reader.endpoint, {
      ...{ dpSize: 2, dpRank: 1 },
      curve: { serverKey: keys.publicKey },
    });
    plain.write(loadOf(0, 1));
    wrong.write(loadOf(0, 2));
    right.write(loadOf(1, 3));
    await collector.shows(1, 3);
    await reader.poll();
    assert.equal(reader.read(0), null);
    assert.equal(reader.stats().received, 1);
  }
});

Deno.test("a writer that is not on the list is turned away and counted; the others go on", async () => {
  const keys = generateCurveKeys();
  const [known, unknown] = [generateCurveKeys(), generateCurveKeys()];
  await using collector = await Collector.open({
    curve: { keys, allowedClients: [known.publicKey] },
  });
  const { reader } = collector;
  const curveOf = (own: typeof keys) => ({ serverKey: keys.publicKey, keys: own });
  using refused = new ZmqLoadSnapshotWriter(reader.endpoint, {
    ...RANK_0,
    curve: curveOf(unknown),
  });
  refused.write(loadOf(0, 1));
  await collector.counts("refusedPeers", 1);
  using writer = new ZmqLoadSnapshotWriter(reader.endpoint, {
    ...{ dpSize: 2, dpRank: 1 },
    curve: curveOf(known),
  });
  for (let n = 0; n < 10; n++) {
    writer.write(loadOf(1, n));
    await collector.shows(1, n);
  }
  assert.equal(reader.read(0), null);
});

Deno.test("with keys a snapshot may fill its slot to the last byte", async () => {
  const keys = generateCurveKeys();
  await using collector = await Collector.open({ slotSize: 512, curve: { keys } });
  using writer = new ZmqLoadSnapshotWriter(collector.reader.endpoint, {
    ...RANK_0,
    slotSize: 512,
    curve: { serverKey: keys.publicKey },
  });
  let largest = 0;
  for (let moments = 0;; moments++) {
    const load = { ...loadOf(0, moments), decodeMoments: Array(moments).fill(0.5) };
    try {
      writer.write(load);
      largest = moments;
    } catch (error) {
      assert(error instanceof RangeError);
      break;
    }
  }
  assert(largest > 5);
  await collector.shows(0, largest);
});

Deno.test("keys that are none are refused, and not told", async () => {
  const keys = generateCurveKeys();
  const other = generateCurveKeys();
  for (
    const curve of [
      { keys: { ...keys, secretKey: keys.secretKey.slice(1) } },
      { keys: { publicKey: other.publicKey, secretKey: keys.secretKey } },
      { keys, allowedClients: ["too short"] },
    ]
  ) {
    await assert.rejects(Collector.open({ curve }), (error) => {
      assert(error instanceof TypeError);
      assert(!error.message.includes(keys.secretKey.slice(1)));
      return true;
    });
  }
});
