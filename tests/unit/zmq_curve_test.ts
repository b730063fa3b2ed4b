/** CURVE: keys, and which writers get in. */

import assert from "node:assert/strict";
import { acquireLibzmq } from "../../src/zmq/libzmq.ts";
import { type CurveKeys, generateCurveKeys } from "../../src/zmq/curve.ts";
import { PullSocket, PushSocket } from "../../src/zmq/socket.ts";
import { assertNothingMore, bytesOf, holdings, receive, TempIpc, textOf } from "../support/zmq.ts";

const LIMITS = { maxMessageSize: 16384 };
const LOOPBACK = "tcp://127.0.0.1:*";

/** Long enough for a client that is let in. */
const REFUSED_MS = 400;

function server(keys: CurveKeys, allowedClients?: readonly string[], endpoint = LOOPBACK) {
  const curve = allowedClients === undefined ? { keys } : { keys, allowedClients };
  return new PullSocket(endpoint, { ...LIMITS, curve });
}

Deno.test("each key pair is new, and is made of Z85", () => {
  const pairs = Array.from({ length: 3 }, () => generateCurveKeys());
  const keys = pairs.flatMap(({ publicKey, secretKey }) => [publicKey, secretKey]);
  assert.equal(new Set(keys).size, 6);
  for (const key of keys) assert.match(key, /^[0-9a-zA-Z.\-:+=^!/*?&<>()[\]{}@%$#]{40}$/);
});

Deno.test("a writer that knows the reader's key gets in, over TCP and ipc", () => {
  const keys = generateCurveKeys();
  using ipc = new TempIpc();
  for (const endpoint of [LOOPBACK, ipc.endpoint]) {
    using pull = server(keys, undefined, endpoint);
    using push = new PushSocket(pull.endpoint, {
      conflate: true,
      curve: { serverKey: keys.publicKey },
    });
    push.send(bytesOf("encrypted"));
    assert.equal(textOf(receive(pull)), "encrypted");
  }
});

Deno.test("a writer with another reader's key, or with none, gets nowhere", () => {
  const keys = generateCurveKeys();
  using pull = server(keys);
  const wrong = { serverKey: generateCurveKeys().publicKey };
  using stranger = new PushSocket(pull.endpoint, { curve: wrong });
  stranger.send(bytesOf("wrong key"));
  using plain = new PushSocket(pull.endpoint);
  plain.send(bytesOf("no key"));
  assert.equal(receive(pull, REFUSED_MS), null);
});

Deno.test("a writer with keys does not talk to a reader without", () => {
  using pull = new PullSocket(LOOPBACK, LIMITS);
  const curve = { serverKey: generateCurveKeys().publicKey };
  using push = new PushSocket(pull.endpoint, { curve });
  push.send(bytesOf("secret"));
  assert.equal(receive(pull, REFUSED_MS), null);
});

Deno.test("of the writers that know the reader's key only the allowed ones get in", () => {
  const [keys, known, unknown] = [generateCurveKeys(), generateCurveKeys(), generateCurveKeys()];
  using pull = server(keys, [generateCurveKeys().publicKey, known.publicKey]);
  const serverKey = keys.publicKey;
  using refused = new PushSocket(pull.endpoint, { curve: { serverKey, keys: unknown } });
  refused.send(bytesOf("unknown"));
  using anonymous = new PushSocket(pull.endpoint, { curve: { serverKey } });
  anonymous.send(bytesOf("anonymous"));
  assert.equal(receive(pull, REFUSED_MS), null);
  assert.ok(pull.zap!.denied >= 2);
  using allowed = new PushSocket(pull.endpoint, { curve: { serverKey, keys: known } });
  allowed.send(bytesOf("known"));
  assert.equal(textOf(receive(pull)), "known");
});

Deno.test("an empty list of allowed writers lets nobody in", () => {
  const keys = generateCurveKeys();
  using pull = server(keys, []);
  using push = new PushSocket(pull.endpoint, { curve: { serverKey: keys.publicKey } });
  push.send(bytesOf("anybody"));
  assert.equal(receive(pull, REFUSED_MS), null);
});

Deno.test("with a list, nobody gets in while nobody answers for it", () => {
  const [keys, known] = [generateCurveKeys(), generateCurveKeys()];
  using pull = server(keys, [known.publicKey]);
  using push = new PushSocket(pull.endpoint, {
    curve: { serverKey: keys.publicKey, keys: known },
  });
  push.send(bytesOf("early"));
  const buffer = new Uint8Array(16);
  const until = performance.now() + REFUSED_MS;
  while (performance.now() < until) assert.equal(pull.receive(buffer), -1);
  assert.equal(textOf(receive(pull)), "early");
});

Deno.test("the longest message arrives encrypted too, and a longer one does not", () => {
  const keys = generateCurveKeys();
  using pull = new PullSocket(LOOPBACK, { maxMessageSize: 1000, curve: { keys } });
  const curve = { serverKey: keys.publicKey };
  using push = new PushSocket(pull.endpoint, { curve });
  push.send(new Uint8Array(1000));
  assert.equal((receive(pull) as Uint8Array).length, 1000);
  push.send(new Uint8Array(1001));
  assert.equal(receive(pull, REFUSED_MS), null);
});

Deno.test("keys open the network", () => {
  const pull = server(generateCurveKeys(), undefined, "tcp://*:*");
  assert.match(pull.endpoint, /^tcp:\/\/0\.0\.0\.0:/);
  pull.close();
});

Deno.test("keys that are none are refused, and a secret one is not told", () => {
  const [keys, other] = [generateCurveKeys(), generateCurveKeys()];
  const cases: readonly (readonly [string, () => Disposable])[] = [
    ["serverKey", () => new PushSocket("tcp://127.0.0.1:9", { curve: { serverKey: "short" } })],
    ["secretKey", () => server({ ...keys, secretKey: `~${keys.secretKey.slice(1)}` })],
    ["secretKey", () => server({ ...keys, secretKey: "#".repeat(40) })],
    ["publicKey", () => server({ ...keys, publicKey: "" })],
    ["do not belong together", () => server({ ...keys, secretKey: other.secretKey })],
    ["an allowed client", () => server(keys, [other.publicKey, other.publicKey.slice(1)])],
  ];
  const before = holdings();
  for (const [text, open] of cases) {
    assert.throws(open, (error) => {
      assert.ok(error instanceof TypeError);
      assert.ok(error.message.includes(text), error.message);
      for (const { secretKey } of [keys, other]) {
        assert.ok(!error.message.includes(secretKey.slice(5)), "tells a secret key");
      }
      return true;
    });
  }
  assertNothingMore(before);
});

Deno.test("the system's libzmq, where it is named, makes the keys", () => {
  const { path, release } = acquireLibzmq();
  release();
  assert.equal(generateCurveKeys({ libzmqPath: path }).publicKey.length, 40);
  assert.throws(() => generateCurveKeys({ libzmqPath: "/nowhere/libzmq.so" }), {
    name: "LibzmqError",
  });
});
