/** Peers that speak ZeroMQ's wire protocol themselves, to break it. */

import assert from "node:assert/strict";
import { generateCurveKeys } from "../../src/zmq/curve.ts";
import { PullSocket, PushSocket } from "../../src/zmq/socket.ts";
import { residentBytes } from "../support/own_resources.ts";
import { bytesOf, receive, textOf } from "../support/zmq.ts";

const LIMITS = { maxMessageSize: 16384 };
const MORE = 1;
const LONG = 2;
const COMMAND = 4;

/** A connection that has got through the handshake, as a PUSH without keys. */
class RawPeer implements Disposable {
  readonly #connection: Deno.Conn;

  private constructor(connection: Deno.Conn) {
    this.#connection = connection;
  }

  static async connect(endpoint: string): Promise<RawPeer> {
    const peer = await RawPeer.open(endpoint);
    const greeting = new Uint8Array(64);
    greeting.set([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0]);
    greeting.set(bytesOf("NULL"), 12);
    await peer.write(greeting);
    const ready = bytesOf("\x05READY\x0bSocket-Type\0\0\0\x04PUSH");
    await peer.write(Uint8Array.of(COMMAND, ready.length, ...ready));
    // Its greeting, and its own READY.
    for (let got = 0; got < 64 + 2 + 26;) {
      got += await peer.#connection.read(new Uint8Array(256)) ?? Infinity;
    }
    return peer;
  }

  static async open(endpoint: string): Promise<RawPeer> {
    const port = Number(endpoint.split(":").at(-1));
    return new RawPeer(await Deno.connect({ hostname: "127.0.0.1", port }));
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      done += await this.#connection.write(bytes.subarray(done));
    }
  }

  /** Announces a frame of any size, and sends what there is of it. */
  async frame(flags: number, byteLength: number, body: Uint8Array): Promise<void> {
    const bytes = new Uint8Array(9 + body.length);
    bytes[0] = flags | LONG;
    new DataView(bytes.buffer).setBigUint64(1, BigInt(byteLength));
    bytes.set(body, 9);
    await this.write(bytes);
  }

  /** Resolves when the other side has hung up. */
  async hungUp(): Promise<void> {
    const buffer = new Uint8Array(256);
    try {
      while (await this.#connection.read(buffer) !== null);
    } catch (error) {
      if (!(error instanceof Deno.errors.ConnectionReset)) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }
}

/** The socket still works for others. */
function assertServes(pull: PullSocket): void {
  using push = new PushSocket(pull.endpoint);
  push.send(bytesOf("well-behaved"));
  assert.equal(textOf(receive(pull)), "well-behaved");
}

Deno.test("the peer of these tests gets a message through", async () => {
  using pull = new PullSocket("tcp://127.0.0.1:*", LIMITS);
  using peer = await RawPeer.connect(pull.endpoint);
  await peer.frame(0, 5, bytesOf("hello"));
  assert.equal(textOf(receive(pull)), "hello");
});

Deno.test("a message without its last part hurts nobody", async () => {
  using pull = new PullSocket("tcp://127.0.0.1:*", LIMITS);
  {
    using peer = await RawPeer.connect(pull.endpoint);
    await peer.frame(MORE, 5, bytesOf("first"));
    assert.equal(receive(pull, 100), null);
    assertServes(pull);
    await peer.frame(0, 4, bytesOf("last"));
    assert.equal(receive(pull), "multipart");
    await peer.frame(MORE, 5, bytesOf("first"));
  }
  // The peer is gone in the middle of it.
  assert.equal(receive(pull, 100), null);
  assertServes(pull);
});

Deno.test("a message of 100 MB is refused before it is held", async () => {
  using pull = new PullSocket("tcp://127.0.0.1:*", LIMITS);
  const chunk = new Uint8Array(1 << 20);
  const before = residentBytes();
  for (let round = 0; round < 5; round++) {
    using peer = await RawPeer.connect(pull.endpoint);
    await peer.frame(0, 100_000_000, new Uint8Array(8));
    try {
      for (let part = 0; part < 100; part++) await peer.write(chunk);
      await peer.hungUp();
    } catch (error) {
      const refused = error instanceof Deno.errors.BrokenPipe ||
        error instanceof Deno.errors.ConnectionReset;
      if (!refused) throw error;
    }
  }
  assert.ok(residentBytes() - before < 50_000_000);
  assertServes(pull);
});

// The oldest peers send no greeting: to them almost anything is a message.
Deno.test("garbage is at worst a message, and the socket serves on", async () => {
  using pull = new PullSocket("tcp://127.0.0.1:*", LIMITS);
  await sendGarbage(pull.endpoint);
  using push = new PushSocket(pull.endpoint);
  push.send(bytesOf("well-behaved"));
  for (let seen: string | null = ""; seen !== "well-behaved"; seen = textOf(receive(pull))) {
    assert.notEqual(seen, null);
  }
});

Deno.test("where keys are asked for, garbage is not even a message", async () => {
  const keys = generateCurveKeys();
  using pull = new PullSocket("tcp://127.0.0.1:*", { ...LIMITS, curve: { keys } });
  await sendGarbage(pull.endpoint);
  assert.equal(receive(pull, 200), null);
  using push = new PushSocket(pull.endpoint, { curve: { serverKey: keys.publicKey } });
  push.send(bytesOf("well-behaved"));
  assert.equal(textOf(receive(pull)), "well-behaved");
});

/** From peers that begin in all the ways that peers of some age begin, and go on with noise. */
async function sendGarbage(endpoint: string): Promise<void> {
  for (const first of [0, 1, 5, 22, 71, 127, 128, 255]) {
    using peer = await RawPeer.open(endpoint);
    const garbage = Uint8Array.from({ length: 4096 }, (_, at) => (at * 7919 + first) >> 3);
    garbage[0] = first;
    await peer.write(garbage);
  }
}
