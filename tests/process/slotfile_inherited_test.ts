/** Child processes of a reader's or writer's process: they must not keep what it lets go. */

import assert from "node:assert/strict";
import { ShmLoadSnapshotReader } from "../../src/slotfile/reader.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { Child } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";

Deno.test("a child process inherits no descriptor of a slot file", async () => {
  using file = new SlotPath();
  using _writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  using _reader = new ShmLoadSnapshotReader(file.path);
  await using child = new Child("ls", ["-l", "/proc/self/fd"]);
  const { code, stdout } = await child.end();
  assert.equal(code, 0);
  assert.match(stdout, /pipe:/);
  assert(!stdout.includes(file.path), stdout);
});
