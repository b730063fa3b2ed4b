/** Endpoints: what is taken, what is refused and why, and who can reach them. */

import assert from "node:assert/strict";
import {
  isLoopback,
  MAX_IPC_PATH,
  needsIpv6,
  needsLookup,
  parseEndpoint,
} from "../../src/zmq/endpoint.ts";

Deno.test("endpoints are read as libzmq reads them", () => {
  for (
    const [text, hostKind, host, port] of [
      ["tcp://127.0.0.1:5555", "ipv4", "127.0.0.1", 5555],
      ["tcp://*:5555", "any", "*", 5555],
      ["tcp://*:*", "any", "*", 0],
      ["tcp://0.0.0.0:0", "any", "0.0.0.0", 0],
      ["tcp://[::1]:65535", "ipv6", "::1", 65535],
      ["tcp://[::]:*", "ipv6", "::", 0],
      ["tcp://[fe80::1%eth0]:7", "ipv6", "fe80::1%eth0", 7],
      ["tcp://node-0.cluster_a.local:1", "name", "node-0.cluster_a.local", 1],
      ["tcp://eth0:1", "name", "eth0", 1],
    ] as const
  ) {
    const endpoint = parseEndpoint(text, "bind");
    assert.deepEqual(endpoint, { transport: "tcp", text, host, hostKind, port });
  }
  assert.deepEqual(parseEndpoint("ipc:///run/load.sock", "connect"), {
    transport: "ipc",
    text: "ipc:///run/load.sock",
    path: "/run/load.sock",
  });
});

Deno.test("an endpoint that cannot work is refused, with the reason", () => {
  for (
    const [text, reason] of [
      ["", "not an endpoint of tcp:// or ipc://"],
      ["127.0.0.1:5555", "not an endpoint of tcp:// or ipc://"],
      ["udp://127.0.0.1:5555", "not an endpoint of tcp:// or ipc://"],
      ["TCP://127.0.0.1:5555", "not an endpoint of tcp:// or ipc://"],
      ["inproc://loads", "no other process or worker could reach it"],
      ["tcp://", "it has no port"],
      ["tcp://127.0.0.1", "it has no port"],
      ["tcp://:5555", "it has no host"],
      ["tcp://127.0.0.1:", 'port "" is not a number from 1 to 65535'],
      ["tcp://127.0.0.1:70000", 'port "70000" is not a number from 1 to 65535'],
      ["tcp://127.0.0.1:-1", 'port "-1" is not a number from 1 to 65535'],
      ["tcp://127.0.0.1:http", 'port "http" is not a number from 1 to 65535'],
      ["tcp://127.0.0.1:5555/loads", 'port "5555/loads" is not a number from 1 to 65535'],
      ["tcp://127.0.0.256:1", "127.0.0.256 is not an IPv4 address"],
      ["tcp://1.2.3:1", "1.2.3 is not an IPv4 address"],
      ["tcp://5:1", "5 is not an IPv4 address"],
      ["tcp://::1:5555", "an IPv6 address goes into brackets"],
      ["tcp://[::1:5555", "an IPv6 address goes into brackets"],
      ["tcp://[localhost]:5555", "localhost is not an IPv6 address"],
      ["tcp://[]:5555", " is not an IPv6 address"],
      ["tcp://a;b:5555", '"a;b" is not a host'],
      ["tcp://-a:5555", '"-a" is not a host'],
      ["tcp://a b:5555", "it has a blank or a control character"],
      ["ipc:///tmp/a\0b", "it has a blank or a control character"],
      ["ipc://", "it has no path"],
      ["ipc://*", "ipc:// has no wildcard; name a path"],
      ["ipc://@loads", "an abstract socket has no file whose mode could keep others out"],
    ] as const
  ) {
    for (const use of ["bind", "connect"] as const) {
      assert.throws(() => parseEndpoint(text, use), {
        name: "RangeError",
        message: `Cannot ${use} ${JSON.stringify(text)}: ${reason}`,
      });
    }
  }
});

Deno.test("a wildcard is for binding only", () => {
  for (const port of ["*", "0"]) {
    assert.throws(() => parseEndpoint(`tcp://127.0.0.1:${port}`, "connect"), {
      message: `Cannot connect "tcp://127.0.0.1:${port}": a wildcard port is for binding`,
    });
  }
  assert.throws(() => parseEndpoint("tcp://*:5555", "connect"), {
    message: 'Cannot connect "tcp://*:5555": a wildcard is for binding',
  });
});

Deno.test("the longest path of a socket is taken, and a longer one is refused by its bytes", () => {
  // Two bytes each, so that characters and bytes differ.
  const longest = `/${"é".repeat((MAX_IPC_PATH - 1) / 2)}`;
  assert.equal(parseEndpoint(`ipc://${longest}`, "bind").transport, "ipc");
  assert.throws(() => parseEndpoint(`ipc://${longest}x`, "bind"), {
    message: new RegExp(`its path has ${MAX_IPC_PATH + 1} bytes, and a socket's at most`),
  });
});

Deno.test("only this machine reaches loopback and ipc", () => {
  for (
    const text of [
      "tcp://127.0.0.1:1",
      "tcp://127.8.8.8:1",
      "tcp://[::1]:1",
      "tcp://[0:0::0:1]:1",
      "tcp://[::ffff:127.0.0.1]:1",
      "tcp://[::ffff:7f00:1]:1",
      "tcp://LocalHost:1",
      "ipc:///tmp/x",
    ]
  ) assert.equal(isLoopback(parseEndpoint(text, "bind")), true, text);
  for (
    const text of [
      "tcp://*:1",
      "tcp://0.0.0.0:1",
      "tcp://[::]:1",
      "tcp://[::ffff:0:0]:1",
      "tcp://[::ffff:7f:1]:1",
      "tcp://[::2]:1",
      "tcp://[fe80::1%lo]:1",
      "tcp://128.0.0.1:1",
      "tcp://192.0.2.1:1",
      "tcp://localhost.example.com:1",
      "tcp://lo:1",
    ]
  ) assert.equal(isLoopback(parseEndpoint(text, "bind")), false, text);
});

Deno.test("IPv6 is for addresses in brackets, as in SGLang, and look-ups are for names", () => {
  const facts = (text: string) => {
    const endpoint = parseEndpoint(text, "connect");
    return [needsIpv6(endpoint), needsLookup(endpoint)];
  };
  assert.deepEqual(facts("tcp://[2001:db8::1]:1"), [true, false]);
  assert.deepEqual(facts("tcp://192.0.2.1:1"), [false, false]);
  assert.deepEqual(facts("tcp://node0:1"), [false, true]);
  assert.deepEqual(facts("tcp://localhost:1"), [false, false]);
  assert.deepEqual(facts("ipc:///tmp/x"), [false, false]);
});
