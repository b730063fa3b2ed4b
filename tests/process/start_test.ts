/** The main job as a user runs it: what it shows, what it says, and what it leaves behind. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { SimulatedEngine } from "../../examples/engine.ts";
import { createLoadSnapshot, shmPathFor } from "../../mod.ts";
import { peerTests } from "../peers/peer_tests.ts";
import { TempShm } from "../peers/temp_shm.ts";
import { denoArgs, ExampleProcess, exists, runExample } from "./fixtures/example_process.ts";

const peerTest = await peerTests();

const HEADER = /^(\/dev\/shm\/sglang_loads_\S+\.shm) {2}(\d+) ranks?/gm;
const TITLE = " rank    run   wait       tokens                usage   tok/s    hit       state";

/** The slot file of the simulated engine, out of what was printed. */
function ownPath(stdout: string): string {
  return stdout.matchAll(HEADER).next().value![1]!;
}

Deno.test("without flags it shows eight simulated ranks, and removes their file", async () => {
  const { code, stdout, stderr } = await runExample("start.ts", "--once");

  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  const lines = stdout.split("\n");
  assert.match(lines[0]!, / 8 ranks {2}\d+ publications\/s$/);
  assert.equal(lines[1], "A simulated engine. A real one: --instance-id X or --path P");
  assert.equal(lines[3], TITLE);
  assert.equal(lines.length, 3 + 1 + 8 + 1 + 1);
  for (const line of lines.slice(4, 12)) assert.match(line, /^ {4}\d .* live \d\.\ds$/);
  assert.match(lines[12]!, /^ {2}all +[1-9].* 8 live$/);
  assert.equal(await exists(ownPath(stdout)), false);
});

Deno.test("plain output is table below table, and ends after the given time", async () => {
  const { code, stdout, stderr } = await runExample(
    "start.ts",
    ...["--plain", "--seconds", "2", "--interval-ms", "400", "--ranks", "3"],
  );
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  const tables = [...stdout.matchAll(HEADER)];
  assert.ok(tables.length >= 2 && tables.length <= 6, `${tables.length} tables`);
  assert.ok(tables.every(([, path, ranks]) => path === ownPath(stdout) && ranks === "3"));
  assert.ok(!stdout.includes("\x1b"));
  assert.ok([...stdout.matchAll(/ (\d+) publications\/s/g)].some(([, rate]) => Number(rate) > 0));
  assert.notEqual(...tableBodies(stdout));
  assert.equal(await exists(ownPath(stdout)), false);
});

/** The first and the last table that were printed. */
function tableBodies(stdout: string): [string, string] {
  const tables = stdout.split(TITLE);
  return [tables[1]!.split("\n\n")[0]!, tables.at(-1)!.split("\n\n")[0]!];
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  Deno.test(`${signal} ends it in order`, async () => {
    await using process = new ExampleProcess("start.ts", ["--ranks", "2"]);
    await process.printed("2 live");
    assert.equal(await exists(ownPath(process.stdout)), true);
    process.kill(signal);
    const { code, stdout, stderr } = await process.outcome;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
    assert.equal(await exists(ownPath(stdout)), false);
  });
}

Deno.test("a reader that goes away, as head does, ends it without a complaint", async () => {
  const child = new Deno.Command("sh", {
    args: [
      "-c",
      '"$0" "$@" | head -n 1',
      Deno.execPath(),
      ...denoArgs("start.ts", ["--interval-ms", "200"]),
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  const { stdout, stderr } = await child.output();
  const line = new TextDecoder().decode(stdout);
  assert.match(line, /^\/dev\/shm\/\S+ {2}8 ranks\n$/);
  assert.equal(new TextDecoder().decode(stderr), "");
  assert.equal(await exists(ownPath(line)), false);
});

Deno.test("an engine is found by its instance id, and by its path", async () => {
  const instanceId = `start-test-${crypto.randomUUID()}`;
  using engine = SimulatedEngine.publishingTo(shmPathFor(instanceId), { dpSize: 2 });
  engine.step(5_000);

  for (const name of [["--instance-id", instanceId], ["--path", shmPathFor(instanceId)]]) {
    const { code, stdout } = await runExample("start.ts", "--once", ...name);
    assert.equal(code, 0);
    assert.ok(stdout.startsWith(shmPathFor(instanceId)));
    assert.ok(!stdout.includes("simulated"));
    assert.match(stdout, / all .* 2 live\n$/);
  }
  assert.equal(await exists(shmPathFor(instanceId)), true);
});

peerTest("what SGLang's own writer publishes is shown", async (peer) => {
  using file = new TempShm();
  const writer = await peer.openWriter(file.path, { dpSize: 2, dpRank: 1 });
  const used = { numUsedTokens: 60_000, maxTotalNumTokens: 80_000, tokenUsage: 0.75 };
  const load = { dpRank: 1, numRunningReqs: 12, numWaitingReqs: 34, genThroughput: 567.8, ...used };
  await writer.write(createLoadSnapshot({ timestamp: Date.now() / 1000, ...load }));

  const { stdout } = await runExample("start.ts", "--once", "--path", file.path);
  const [, , , first, second] = stdout.split("\n");
  assert.match(first!, /^ +0 .* no report$/);
  assert.match(second!, /^ +1 +12 +34 +60\.0k\/80\.0k +█{9}▊·{3} +75% +568 +0% +live \d\.\ds$/);
});

Deno.test("where no engine publishes it says so", async () => {
  using file = new TempShm();
  const { code, stdout, stderr } = await runExample("start.ts", "--once", "--path", file.path);
  assert.deepEqual({ code, stdout, stderr }, {
    code: 1,
    stdout: "",
    stderr: `No engine publishes at ${file.path}\n`,
  });
});

Deno.test("it waits for an engine, shows it, and tells when it is gone and back", async () => {
  using file = new TempShm();
  const flags = ["--path", file.path, "--interval-ms", "200"];
  await using process = new ExampleProcess("start.ts", flags);
  await process.printed(`No engine publishes at ${file.path}; waiting for one\n`);
  {
    using engine = SimulatedEngine.publishingTo(file.path, { dpSize: 2 });
    engine.step(1_000);
    await process.printed("2 live");
  }
  await process.printed("The engine is gone or restarts; these are its last values.");
  using engine = SimulatedEngine.publishingTo(file.path, { dpSize: 3 });
  engine.step(1_000);
  await process.printed("3 live");

  assert.equal(process.stdout.match(/waiting for one/g)?.length, 1);
  process.kill("SIGINT");
  assert.equal((await process.outcome).code, 0);
});

Deno.test("what cannot be a slot file is refused with the reason, and left alone", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const garbage = join(folder, "garbage");
    await Deno.writeTextFile(garbage, "not a slot file, but long enough to have a header");
    const link = join(folder, "link");
    await Deno.symlink(garbage, link);

    for (const path of [garbage, link, folder, "/dev/shm", "/dev/null"]) {
      const { code, stdout, stderr } = await runExample("start.ts", "--path", path);
      assert.deepEqual({ code, stdout }, { code: 1, stdout: "" }, path);
      assert.ok(stderr.includes(path) && !stderr.includes("    at "), stderr);
      assert.equal(stderr.split("\n").length, 2, stderr);
    }
    assert.match(await Deno.readTextFile(garbage), /^not a slot file/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("another user's file is not opened", { ignore: Deno.uid() !== 0 }, async () => {
  using file = new TempShm();
  await Deno.writeFile(file.path, new Uint8Array(100));
  await Deno.chown(file.path, 12_345, 12_345);
  const { code, stderr } = await runExample("start.ts", "--path", file.path);
  assert.equal(code, 1);
  assert.equal(
    stderr,
    `${file.path} is not opened: it belongs to another user than you and root\n`,
  );
});

for (
  const [what, flags, says] of [
    ["an unknown flag", ["--bogus"], "Unknown option '--bogus'"],
    ["an argument", ["extra"], "Unexpected argument 'extra'"],
    ["a flag without its value", ["--seconds"], "--seconds"],
    ["too few ranks", ["--ranks", "0"], "--ranks takes a whole number from 1 to 512"],
    ["too many ranks", ["--ranks", "513"], "--ranks takes a whole number from 1 to 512"],
    ["half a rank", ["--ranks", "1.5"], '--ranks takes a whole number from 1 to 512, not "1.5"'],
    [
      "a number in hex",
      ["--seconds", "0x10"],
      '--seconds takes a number from 0 to 1000000, not "0x10"',
    ],
    ["a restless interval", ["--interval-ms", "50"], "from 200 to"],
    ["two names", ["--path", "a", "--instance-id", "b"], "give one of them"],
    ["an empty name", ["--path="], "empty"],
    [
      "ranks of a real engine",
      ["--path", "a", "--ranks", "2"],
      "--ranks is for the simulated engine",
    ],
  ] as const
) {
  Deno.test(`${what} is answered with the usage and exit code 2`, async () => {
    const { code, stdout, stderr } = await runExample("start.ts", ...flags);
    assert.deepEqual({ code, stdout }, { code: 2, stdout: "" });
    assert.ok(stderr.includes(says), stderr);
    assert.ok(stderr.includes("deno task start [flags]"));
  });
}

Deno.test("help is no error", async () => {
  const { code, stdout, stderr } = await runExample("start.ts", "--help");
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  assert.ok(stdout.includes("--instance-id X"));
});
