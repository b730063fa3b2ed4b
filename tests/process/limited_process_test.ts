// deno-lint-ignore-file no-console -- the reason for a limit that is left out is printed
/** Readers in a process that may have 64 descriptors and 256 MiB: sidecars are given little. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { PushSocket } from "../../src/zmq/socket.ts";
import { Child } from "../support/child.ts";
import { loadOf, payloadOf } from "../support/collector.ts";
import { MemoryLimit } from "../support/memory_limit.ts";
import { loadSlot, slotFileBytes } from "../support/slot_bytes.ts";
import { SlotPath } from "../support/slot_path.ts";
import type { LimitedAnswer } from "./fixtures/limited_reader.ts";

const READER = fileURLToPath(new URL("./fixtures/limited_reader.ts", import.meta.url));
const DESCRIPTORS = 64;
const BYTES = 256 * 1024 * 1024;
const RANKS = 8;

/** A limit of memory, and a child that is under it and has few descriptors. */
class LimitedChild implements AsyncDisposable {
  readonly child: Child;
  readonly #limit: MemoryLimit | null;

  constructor(kind: "slot file" | "collector", path: string) {
    const limit = MemoryLimit.make(BYTES);
    if (typeof limit === "string") console.log(`left out: no cgroup limits memory here: ${limit}`);
    this.#limit = typeof limit === "string" ? null : limit;
    const enter = this.#limit === null ? "" : 'echo $$ > "$0"; ';
    const run = ["run", "--quiet", "--no-prompt", "--allow-ffi", "--allow-read", READER];
    this.child = new Child("sh", [
      ...["-c", `${enter}exec prlimit --nofile=${DESCRIPTORS}:${DESCRIPTORS} "$@"`],
      ...[this.#limit?.door ?? "", Deno.execPath(), ...run, kind, path, `${RANKS}`],
    ]);
  }

  async ask(): Promise<LimitedAnswer> {
    return await this.child.ask<LimitedAnswer>("look");
  }

  /** Ends the child well; it has stayed below what it may use. */
  async end(): Promise<void> {
    const { code, stderr } = await this.child.end();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
    if (this.#limit !== null) assert(this.#limit.peakBytes < BYTES, `${this.#limit.peakBytes}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child[Symbol.asyncDispose]();
    this.#limit?.[Symbol.dispose]();
  }
}

Deno.test("a reader with 64 descriptors and 256 MiB follows an engine through 200 restarts", async () => {
  using file = new SlotPath();
  await using limited = new LimitedChild("slot file", file.path);
  assert.equal(await limited.child.line(), "up");
  const first = await limited.ask();
  assert.equal(first.limit, DESCRIPTORS);
  assert.deepEqual(first.numbers, []);
  for (let restart = 1; restart <= 200; restart++) {
    const slots = Array.from({ length: RANKS }, () => loadSlot({ numRunningReqs: restart }));
    file.replace(slotFileBytes({ slots }));
    using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: RANKS, dpRank: 3 });
    writer.write(loadOf(3, 1000 + restart));
    const expected = Array.from(
      { length: RANKS },
      (_, rank) => rank === 3 ? 1000 + restart : restart,
    );
    const { numbers, descriptors, residentMiB } = await limited.ask();
    assert.deepEqual(numbers, expected);
    // Deno opens a few of its own; one for each restart would soon be too many.
    assert(descriptors <= first.descriptors + 5, `${descriptors} descriptors`);
    assert(residentMiB < 256);
  }
  await limited.end();
});

Deno.test("a collector with 64 descriptors and 256 MiB takes what all ranks send", async () => {
  using file = new SlotPath();
  await using limited = new LimitedChild("collector", file.path);
  const [up, endpoint = ""] = (await limited.child.line()).split(" ");
  assert.equal(up, "up");
  using push = new PushSocket(endpoint, { sendHighWaterMark: 0 });
  for (let round = 1; round <= 50; round++) {
    for (let n = 0; n < 1000; n++) push.send(payloadOf(n % RANKS, round));
    // Waits until all of it is readable.
    for (;;) {
      const { numbers, residentMiB } = await limited.ask();
      assert(residentMiB < 256);
      if (numbers.length === RANKS && numbers.every((number) => number === round)) break;
    }
  }
  await limited.end();
});
