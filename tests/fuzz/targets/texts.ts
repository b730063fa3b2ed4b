/** Texts: endpoints, names of engines, queries, the id that a stream goes on from. */

import assert from "node:assert/strict";
import { ALL_SECTIONS, readLoadQuery } from "../../../src/http/load_query.ts";
import { seenSeq } from "../../../src/http/stream/event_text.ts";
import { shmPathFor } from "../../../src/slotfile/shm_path.ts";
import { isLoopback, needsIpv6, needsLookup, parseEndpoint } from "../../../src/zmq/endpoint.ts";
import { bytesOf, NOTHING_HELD, refusal, type Target, textOf } from "../target.ts";

/** Endpoints of ZeroMQ, for binding and for connecting. */
export function endpointTarget(): Target {
  return {
    ...NOTHING_HELD,
    name: "endpoint",
    seeds: [
      ...["tcp://127.0.0.1:5555", "tcp://[::1]:5555", "tcp://*:*", "ipc:///run/load.sock"],
      ...["tcp://host.example:1", "tcp://[fe80::1%eth0]:80", "tcp://0.0.0.0:0", "inproc://x"],
      ...["tcp://[::ffff:127.0.0.1]:9", "ipc://@abstract", "ipc://*", "tcp://127.1:65535", "[::]"],
    ].map(bytesOf),
    share: 2,
    execute(input) {
      const text = textOf(input);
      return (["bind", "connect"] as const).map((use) => {
        try {
          const endpoint = parseEndpoint(text, use);
          assert.equal(endpoint.text, text);
          assert.doesNotMatch(text, /[\0-\x20\x7f]/);
          const facts = [isLoopback(endpoint), needsIpv6(endpoint), needsLookup(endpoint)];
          if (endpoint.transport === "ipc") return `ipc ${Math.min(endpoint.path.length, 40)}`;
          assert(Number.isInteger(endpoint.port) && endpoint.port <= 65_535);
          assert(use === "bind" || (endpoint.port > 0 && endpoint.hostKind !== "any"));
          // What is not of this machine needs keys, so it must not pass for loopback.
          if (endpoint.hostKind === "any") assert(!facts[0]);
          return `${endpoint.hostKind} ${facts} ${endpoint.port === 0}`;
        } catch (error) {
          if (!(error instanceof RangeError)) throw error;
          return refusal(use, error.message.slice(text.length), 0);
        }
      }).join(" / ");
    },
  };
}

/** Names of engines, which become paths. */
export function nameTarget(): Target {
  return {
    ...NOTHING_HELD,
    name: "name",
    seeds: [
      "4c00ec5647f7",
      "ipc:///tmp/a",
      "../../etc/passwd",
      "a/b//",
      "",
      "\u00e9\u0660\ud83d\ude00",
      "\0",
    ]
      .map(bytesOf),
    share: 1,
    execute(input) {
      const name = textOf(input);
      const path = shmPathFor(name);
      const [, kept] =
        /^\/dev\/shm\/sglang_loads_([\p{L}\p{N}._-]+)_[0-9a-f]{8}\.shm$/u.exec(path) ??
          assert.fail(`${JSON.stringify(path)} is beside its folder`);
      assert.equal(shmPathFor(name), path);
      return `${Math.min(kept!.length, 30)} ${/^[.]+$/.test(kept!)} ${name.endsWith("/")}`;
    },
  };
}

/** Queries of `/v1/loads`. */
export function queryTarget(): Target {
  return {
    ...NOTHING_HELD,
    name: "query",
    seeds: [
      ...["dp_rank=0&include=core,memory", "include=all&format=prometheus", "dp_rank=%2B7"],
      ...["freshness=true&dp_rank=1_000", "dp_rank=7.0&dp_rank=x", "include=%20queues%20,&=&&"],
      ...["include=__proto__,disagg,spec,lora", "dp_rank=99999999999999999999", "a=%ff%zz&+"],
    ].map(bytesOf),
    share: 2,
    execute(input) {
      const query = readLoadQuery(new URLSearchParams(textOf(input)));
      if (query.state === "refused") {
        assert(query.status === 400 || query.status === 422);
        JSON.stringify(query.detail);
        return `refused ${query.status} ${JSON.stringify(query.detail).length >> 4}`;
      }
      const { dpRank, sections } = query;
      assert(dpRank === null || (typeof dpRank === "number" && !Number.isNaN(dpRank)));
      assert((sections & ~ALL_SECTIONS) === 0);
      const rank = dpRank === null ? "-" : Math.sign(dpRank);
      return `${rank} ${sections} ${query.isPrometheus} ${query.withFreshness}`;
    },
  };
}

/** What a client of the stream says that it saw last. */
export function lastEventIdTarget(): Target {
  const [epoch, newest] = ["0123456789ab", 5_000];
  return {
    ...NOTHING_HELD,
    name: "last-event-id",
    seeds: [`${epoch}-17`, `${epoch}-5001`, "ba9876543210-17", "-1", `${epoch}-`, `${epoch}-007`]
      .map(bytesOf),
    share: 1,
    execute(input) {
      const text = textOf(input);
      const seq = seenSeq(text, epoch, newest);
      assert(Number.isInteger(seq) && seq >= -1 && seq <= newest);
      if (seq >= 0) {
        assert(text.startsWith(`${epoch}-`));
        assert.equal(text.slice(13).replace(/^0+(?=\d)/, ""), String(seq));
      }
      return `${Math.sign(seq)} ${String(seq).length} ${text.length < 30 ? text.length : 30}`;
    },
  };
}
