/** The engine by itself, as a process that others watch. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { ShmLoadSnapshotReader } from "../../mod.ts";
import { TempShm } from "../peers/temp_shm.ts";
import { ExampleProcess, exists, runExample, until } from "./fixtures/example_process.ts";

Deno.test("it says where it publishes, and removes its file at the end", async () => {
  const { code, stdout, stderr } = await runExample(
    "engine.ts",
    ...["--seconds", "0.3", "--ranks", "1"],
  );
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  const [, path] = /^Publishing 1 rank at (\S+)\nWatch: .*--path (\S+)\n$/.exec(stdout)!;
  assert.equal(await exists(path!), false);
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`readers see it live until ${signal}, then its file is gone`, async () => {
    using file = new TempShm();
    await using process = new ExampleProcess("engine.ts", ["--path", file.path, "--ranks", "2"]);
    await process.printed(`Publishing 2 ranks at ${file.path}`);
    using reader = new ShmLoadSnapshotReader(file.path);
    await until(
      () => reader.readAll().length === 2 && reader.stats().publications >= 20,
      () => `${reader.stats().publications} publications`,
    );
    assert.deepEqual(reader.health().map(({ state }) => state), ["live", "live"]);

    process.kill(signal);
    assert.equal((await process.outcome).code, 0);
    assert.equal(await exists(file.path), false);
  });
}

Deno.test("a second engine at the same path is refused, and the first one goes on", async () => {
  using file = new TempShm();
  await using first = new ExampleProcess("engine.ts", ["--path", file.path]);
  await first.printed("Publishing");
  using reader = new ShmLoadSnapshotReader(file.path);
  await until(
    () => reader.health().some(({ state }) => state === "live"),
    () => "it never went live",
  );

  const second = await runExample("engine.ts", "--path", file.path, "--seconds", "1");
  assert.equal(second.code, 1);
  assert.equal(second.stderr, `Another engine publishes at ${file.path}\n`);
  assert.equal((await runExample("start.ts", "--once", "--path", file.path)).code, 0);
});

Deno.test("a file that is no slot file is neither overwritten nor removed", async () => {
  const folder = await Deno.makeTempDir();
  try {
    for (const content of ["", "short\n", "long enough to have a header of twelve bytes"]) {
      const path = join(folder, "precious");
      await Deno.writeTextFile(path, content);
      const { code, stderr } = await runExample("engine.ts", "--path", path, "--seconds", "1");
      assert.equal(code, 1);
      assert.ok(stderr.includes(path), stderr);
      assert.equal(await Deno.readTextFile(path), content);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a wrong command line is answered with the usage and exit code 2", async () => {
  const { code, stderr } = await runExample("engine.ts", "--rank", "2");
  assert.equal(code, 2);
  assert.ok(stderr.includes("Runs a simulated engine"));
});
