/**
 * A collector whose worker fails after it was ready. The worker is the real one in a copy of the
 * repository, with one line changed: its socket breaks after the first snapshot.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Child, type ChildEnd } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";
import { TempFolder } from "../support/temp_folder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const LOOP = "new DrainLoop(lease.libc, source, writer, control, dpSize).run();";
const IMPORTS = `
  import process from "node:process";
  import { ZmqError } from "../src/errors.ts";
  void process, ZmqError;`;

/** What stands in the place of the worker's loop: the same, over a source that breaks. */
function brokenLoop(breaks: string): string {
  return `
    let taken = 0;
    const broken = Object.create(source, {
      refusedPeers: { get: () => source.refusedPeers },
      wait: { value: (ms: number) => source.wait(ms) },
      receive: {
        value(buffer: Uint8Array<ArrayBuffer>) {
          if (taken > 0 && control.counts().published > 0) { ${breaks} }
          const size = source.receive(buffer);
          if (size >= 0) taken++;
          return size;
        },
      },
    });
    new DrainLoop(lease.libc, broken, writer, control, dpSize).run();`;
}

/** A program that watches such a collector until it has failed, and then reads on. */
function programText(): string {
  return `
    import { createLoadSnapshot, WorkerFailedError, ZmqLoadSnapshotWriter, ZmqShmLoadSnapshotReader }
      from "./mod.ts";
    const reader = await ZmqShmLoadSnapshotReader.open("tcp://127.0.0.1:*", Deno.args[0] ?? "", {
      dpSize: 1,
      staleAfterMs: 20,
    });
    using writer = new ZmqLoadSnapshotWriter(reader.endpoint, { dpSize: 1, dpRank: 0 });
    writer.write(createLoadSnapshot({ numRunningReqs: 7 }));
    // Nothing else keeps this program.
    const alive = setInterval(() => {}, 1000);
    const reason = await reader.closed;
    clearInterval(alive);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const told = reason instanceof WorkerFailedError ? [reason.failure, reason.message] : reason;
    console.log(JSON.stringify({
      told,
      cause: reason?.cause instanceof Error ? reason.cause.name : null,
      number: reader.read(0)?.numRunningReqs,
      state: reader.health()[0]?.state,
      published: reader.stats().published,
      polled: await reader.poll(),
    }));
    if (Deno.args[1] === "close") {
      await reader.close();
      console.log(await reader.closed === reason);
    }`;
}

/** Runs the program in a copy of the repository whose worker breaks. */
async function endWith(breaks: string, how: "close" | "leave"): Promise<ChildEnd> {
  using folder = new TempFolder();
  using file = new SlotPath();
  for (const name of ["src", "workers"]) {
    Deno.mkdirSync(join(folder.path, name));
    await copyFolder(join(ROOT, name), join(folder.path, name));
  }
  for (const name of ["mod.ts", "deno.json", "deno.lock"]) {
    Deno.copyFileSync(join(ROOT, name), join(folder.path, name));
  }
  const worker = join("workers", "drain_worker.ts");
  const text = Deno.readTextFileSync(join(ROOT, worker));
  assert(text.includes(LOOP), "the worker's loop is started in another way");
  folder.put(worker, IMPORTS + text.replace(LOOP, brokenLoop(breaks)));
  const program = pathToFileURL(folder.put("program.ts", programText())).href;
  const args = ["--allow-ffi", "--allow-read", program, file.path, how];
  await using child = Child.deno(args, { cwd: folder.path });
  return await child.end();
}

async function copyFolder(from: string, to: string): Promise<void> {
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) {
      Deno.mkdirSync(join(to, name));
      await copyFolder(join(from, name), join(to, name));
    } else Deno.copyFileSync(join(from, name), join(to, name));
  }
}

const READABLE = { number: 7, state: "stale", published: 1, polled: false };

for (
  const [what, breaks, told, cause] of [
    [
      "whose socket fails",
      `throw new ZmqError("zmq_recv", null, "ETERM", "Context was terminated");`,
      ["crashed", "Cannot receive any more: Cannot zmq_recv: Context was terminated (ETERM)"],
      "ZmqError",
    ],
    [
      "with a mistake in it",
      `throw new RangeError("offset is out of bounds");`,
      ["crashed", "Cannot receive any more: offset is out of bounds"],
      "RangeError",
    ],
    [
      "that ends without a word",
      "process.exit(0);",
      ["exited", "Cannot receive any more: the worker has ended"],
      null,
    ],
    [
      "that stands still",
      "for (;;) source.wait(-1);",
      ["silent", "Cannot receive any more: the worker shows no sign of life"],
      null,
    ],
  ] as const
) {
  Deno.test(`a worker ${what} is told, and what it said last stays readable`, async () => {
    // A program that closes its collector then, and one that just ends.
    const hows = ["close", "leave"] as const;
    const ends = await Promise.all(hows.map((how) => endWith(breaks, how)));
    for (const [index, { code, stdout, stderr }] of ends.entries()) {
      assert.deepEqual([code, stderr], [0, ""]);
      const [line, same] = stdout.split("\n");
      assert.deepEqual(JSON.parse(line!), { told, cause, ...READABLE });
      assert.equal(same, hows[index] === "close" ? "true" : "");
    }
  });
}
