/** Which transport, which owner and which address: SGLang's rules. */

import assert from "node:assert/strict";
import { removeSlotFile } from "../../src/slotfile/created_file.ts";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { shmPathFor } from "../../src/slotfile/shm_path.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import {
  createLoadSnapshotReader,
  createLoadSnapshotWriter,
  type ReaderCaller,
  type ServerArgs,
  shouldUseZmq,
  zmqAddressFor,
  zmqReaderOwner,
} from "../../src/topology.ts";
import { ZmqShmLoadSnapshotReader } from "../../src/zmq/reader.ts";
import { ZmqLoadSnapshotWriter } from "../../src/zmq/writer.ts";

const VARIABLE = "SGLANG_LOAD_SNAPSHOT_USE_ZMQ";
const CALLERS: readonly ReaderCaller[] = [
  "DataParallelController",
  "TokenizerManager",
  "MultiTokenizerRouter",
];
const NODES: ServerArgs = { enableDpAttention: true, nnodes: 2 };
// Where there is no /dev/shm.
const ignore = Deno.build.os !== "linux";

function ownerOf(serverArgs: ServerArgs, environment = {}): ReaderCaller[] {
  return CALLERS.filter((caller) => zmqReaderOwner(serverArgs, caller, environment));
}

Deno.test("several nodes under DP attention use ZeroMQ, and nothing else does by itself", () => {
  assert.equal(shouldUseZmq(NODES, {}), true);
  for (
    const args of [
      {},
      { enableDpAttention: true },
      { nnodes: 2 },
      { enableDpAttention: false, nnodes: 8, dpSize: 8 },
    ]
  ) assert.equal(shouldUseZmq(args, {}), false);
});

Deno.test("the environment variable forces ZeroMQ, in SGLang's words for yes", () => {
  for (const value of ["1", "true", "TRUE", "Yes", "y"]) {
    assert.equal(shouldUseZmq({}, { [VARIABLE]: value }), true, value);
  }
  for (const value of ["0", "false", "No", "n", "", " 1", "on", "2", undefined]) {
    assert.equal(shouldUseZmq({}, { [VARIABLE]: value }), false, value);
  }
  // It cannot forbid what several nodes need.
  assert.equal(shouldUseZmq(NODES, { [VARIABLE]: "0" }), true);
});

Deno.test("the process's environment is asked only where Deno may read it", {
  // Also where everything else is allowed.
  permissions: { env: false },
}, () => {
  assert.equal(Deno.permissions.querySync({ name: "env", variable: VARIABLE }).state, "prompt");
  assert.equal(shouldUseZmq({}), false);
});

Deno.test("exactly one process owns the socket, and none on the other nodes", () => {
  for (
    const [args, owner] of [
      [{}, "TokenizerManager"],
      [{ dpSize: 8 }, "TokenizerManager"],
      [{ dpSize: 8, tokenizerWorkerNum: 4 }, "MultiTokenizerRouter"],
      [{ dpSize: 8, loadBalanceMethod: "total_tokens" }, "DataParallelController"],
      [{ dpSize: 8, loadBalanceMethod: "Total_Requests" }, "DataParallelController"],
      [
        { dpSize: 8, loadBalanceMethod: "total_tokens", tokenizerWorkerNum: 4 },
        "DataParallelController",
      ],
      [{ dpSize: 8, loadBalanceMethod: "round_robin" }, "TokenizerManager"],
      [{ dpSize: 1, loadBalanceMethod: "total_tokens" }, "TokenizerManager"],
      [
        { dpSize: 1, loadBalanceMethod: "total_tokens", tokenizerWorkerNum: 2 },
        "MultiTokenizerRouter",
      ],
    ] as const
  ) {
    assert.deepEqual(ownerOf({ ...NODES, ...args }), [owner], JSON.stringify(args));
    assert.deepEqual(ownerOf(args, { [VARIABLE]: "1" }), [owner]);
    assert.deepEqual(ownerOf({ ...NODES, ...args, nodeRank: 1 }), []);
    assert.deepEqual(ownerOf(args), []);
  }
});

Deno.test("the address is the collector's, or is named after the server", () => {
  const instanceId = "4c00ec5647f7";
  const own = "ipc:///tmp/sglang_load_collector_4c00ec5647f7_b4fb99a3.sock";
  assert.equal(zmqAddressFor({ instanceId }), own);
  assert.equal(zmqAddressFor({ instanceId, loadCollectorIpcName: "" }), own);
  assert.equal(
    zmqAddressFor({ instanceId, loadCollectorIpcName: "tcp://10.0.0.1:5005" }),
    "tcp://10.0.0.1:5005",
  );
  // Unlike a slot file's, this name keeps all of the server's, with the slashes replaced.
  assert.match(zmqAddressFor({ instanceId: "a/b c" }), /^ipc:\/\/\/tmp\/[^/]*_a_b_c_[0-9a-f]{8}/);
});

Deno.test("on one node, writer and reader share the slot file", { ignore }, async () => {
  const portArgs = { instanceId: `topology-${crypto.randomUUID()}` };
  const args = { dpSize: 2 };
  try {
    const environment = {};
    const options = { dpSize: 2, dpRank: 1, publishInterval: 2, environment };
    using writer = createLoadSnapshotWriter(args, portArgs, options);
    assert.ok(writer instanceof ShmLoadSnapshotWriter);
    assert.equal(writer.path, shmPathFor(portArgs.instanceId));
    const load = () => createLoadSnapshot({ dpRank: 1, numRunningReqs: 5 });
    assert.deepEqual([writer.publish(load), writer.publish(load)], [false, true]);
    for (const caller of CALLERS) {
      const reader = await createLoadSnapshotReader(args, portArgs, caller, { environment });
      assert.ok(reader instanceof ShmLoadSnapshotReader);
      assert.equal(reader.read(1)?.numRunningReqs, 5);
      reader.close();
    }
  } finally {
    removeSlotFile(shmPathFor(portArgs.instanceId));
  }
});

Deno.test(
  "over ZeroMQ, the owner collects and the others read its slot file",
  { ignore },
  async () => {
    const portArgs = { instanceId: `topology-${crypto.randomUUID()}` };
    const environment = { [VARIABLE]: "1" };
    const args = { dpSize: 2, loadBalanceMethod: "total_tokens" };
    try {
      const owner = await createLoadSnapshotReader(args, portArgs, "DataParallelController", {
        environment,
      });
      try {
        assert.ok(owner instanceof ZmqShmLoadSnapshotReader);
        assert.equal(owner.endpoint, zmqAddressFor(portArgs));
        const rank = { dpSize: 2, dpRank: 1, environment };
        using writer = createLoadSnapshotWriter(args, portArgs, rank);
        assert.ok(writer instanceof ZmqLoadSnapshotWriter);
        writer.write(createLoadSnapshot({ dpRank: 1, numRunningReqs: 6 }));
        const deadline = performance.now() + 10_000;
        while (owner.read(1)?.numRunningReqs !== 6 && performance.now() < deadline) {
          await owner.poll();
        }
        const options = { environment };
        const other = await createLoadSnapshotReader(args, portArgs, "TokenizerManager", options);
        assert.ok(other instanceof ShmLoadSnapshotReader);
        assert.equal(other.read(1)?.numRunningReqs, 6);
        other.close();
      } finally {
        await owner.close();
      }
    } finally {
      removeSlotFile(shmPathFor(portArgs.instanceId));
    }
  },
);
