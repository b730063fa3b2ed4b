/**
 * A full file system is an error, not a signal, and nothing is left behind.
 *
 * Each scenario has a small file system in memory to itself, in a mount namespace of its process:
 * nobody else sees it, and it is gone with the process, however that ends.
 */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Child } from "../support/child.ts";
import { isRoot } from "../support/raw_libc.ts";
import { TempFolder } from "../support/temp_folder.ts";

const SCENARIOS = fileURLToPath(new URL("./fixtures/full_tmpfs.ts", import.meta.url));
const UNSHARE = ["--mount", ...(isRoot() ? [] : ["--map-root-user"])];
const NO_SPACE = ["no-space", "posix_fallocate", "ENOSPC"];

const missing = await whyNot();
// deno-lint-ignore no-console -- the reason for tests that are left out is printed
if (missing !== null) console.log(`left out: no file system can be mounted: ${missing}`);
const ignore = missing !== null;

/** Runs a program with a file system of 64 KiB in memory mounted at a folder. */
function onSmallTmpfs(folder: string, command: string, args: readonly string[]): Child {
  const mount = 'mount -t tmpfs -o size=64k,mode=700 tmpfs "$0" && exec "$@"';
  return new Child("unshare", [...UNSHARE, "sh", "-c", mount, folder, command, ...args]);
}

async function whyNot(): Promise<string | null> {
  using folder = new TempFolder();
  try {
    await using child = onSmallTmpfs(folder.path, "true", []);
    const { code, stderr } = await child.end();
    return code === 0 ? null : stderr.trim();
  } catch (error) {
    return String(error);
  }
}

async function outcomeOf(scenario: string): Promise<unknown> {
  using folder = new TempFolder();
  const args = ["run", "--quiet", "--no-prompt", "-A", SCENARIOS, scenario, folder.path];
  await using child = onSmallTmpfs(folder.path, Deno.execPath(), args);
  const { stdout, ...end } = await child.end();
  assert.deepEqual(end, { code: 0, signal: null, stderr: "" }, stdout);
  assert.deepEqual(folder.names(), [], "the mount was the child's alone");
  return JSON.parse(stdout);
}

Deno.test("a file that does not fit is refused, and not left behind", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("create"), {
    tooLarge: [[...NO_SPACE, "/load.shm"], []],
    fits: "done",
    left: ["load.shm"],
  });
});

Deno.test("where nothing is left, not even a small file is made", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("createOnFull"), {
    refused: [...NO_SPACE, "/load.shm"],
    left: ["filler"],
  });
});

Deno.test(
  "a file of another group stays when its replacement does not fit",
  { ignore },
  async () => {
    const { refused, ...rest } = await outcomeOf("replace") as { refused: string[] };
    assert.deepEqual(refused.slice(0, 3), NO_SPACE);
    assert.deepEqual(rest, { left: ["load.shm"], kept: true });
  },
);

Deno.test("writers and readers go on when the rest is filled up", { ignore }, async () => {
  const { read, other, left } = await outcomeOf("fullAfterwards") as Record<string, unknown[]>;
  assert.deepEqual(read, [0, 1, 2, 3].map((n) => [[n, true, null, null], [n, true, null, null]]));
  assert.deepEqual(other?.slice(0, 3), NO_SPACE);
  assert.deepEqual(left, ["filler", "load.shm"]);
});

Deno.test("a file without pages of its own, as SGLang's, does not kill", { ignore }, async () => {
  assert.deepEqual(await outcomeOf("sparse"), {
    read: [[], [], 8],
    writer: [...NO_SPACE, "/load.shm"],
    left: ["filler", "load.shm"],
    readable: 0,
  });
});

Deno.test("a path that cannot be restored for lack of space is told at each write", {
  ignore,
}, async () => {
  assert.deepEqual(await outcomeOf("restore"), {
    refused: [[...NO_SPACE, "/load.shm"], [...NO_SPACE, "/load.shm"]],
    left: ["filler"],
    read: 3,
  });
});
