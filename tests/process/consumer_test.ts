/** Services elsewhere that import the module, by path and over http, beside a deno.json of their own. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { ShmLoadSnapshotWriter } from "../../src/slotfile/writer.ts";
import { Child } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";
import { TempFolder } from "../support/temp_folder.ts";

const ROOT = new URL("../../", import.meta.url);

/** The consumer's own names must not matter to us, nor ours to it. */
const CONFIG = {
  imports: { "load/": "./nowhere/", "msgpackr": "./nowhere.ts" },
  compilerOptions: { strict: true },
};

/** Reads until the load is what its input says, line by line. */
function serviceText(mod: string): string {
  return `
    import { type LoadSnapshot, ShmLoadSnapshotReader } from ${JSON.stringify(mod)};
    using reader = new ShmLoadSnapshotReader(Deno.args[0] ?? "");
    console.log("ready");
    for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
      const load: LoadSnapshot | null = reader.read(0);
      console.log(JSON.stringify([text.trim(), load?.numRunningReqs, reader.fault?.reason]));
    }`;
}

/** Has a service in the folder read a file that changes meanwhile. */
async function readsLive(folder: TempFolder, mod: string, flags: readonly string[], env = {}) {
  using file = new SlotPath();
  folder.put("deno.json", JSON.stringify(CONFIG));
  folder.put("service.ts", serviceText(mod));
  const args = ["--allow-ffi", "--allow-read", ...flags, "service.ts", file.path];
  await using child = Child.deno(args, { cwd: folder.path, env });
  assert.equal(await child.line(), "ready");
  assert.deepEqual(await child.ask("before"), ["before", null, "absent"]);
  using writer = new ShmLoadSnapshotWriter(file.path, { dpSize: 1, dpRank: 0 });
  for (const numRunningReqs of [1, 2, 3]) {
    writer.write(createLoadSnapshot({ numRunningReqs }));
    assert.deepEqual(await child.ask("now"), ["now", numRunningReqs, null]);
  }
  const { code, stderr } = await child.end();
  assert.deepEqual([code, stderr], [0, ""]);
}

Deno.test("a service in another folder imports the module by its path", async () => {
  using folder = new TempFolder();
  await readsLive(folder, new URL("mod.ts", ROOT).href, []);
  assert.deepEqual(folder.names().filter((name) => name !== "deno.lock"), [
    "deno.json",
    "service.ts",
  ]);
});

Deno.test("a service imports the module over http, and needs no node_modules", async () => {
  using folder = new TempFolder();
  using cache = new TempFolder();
  // A cache of its own, as each run has another port; the packages are those of the machine's.
  await Deno.symlink(await npmFolder(), join(cache.path, "npm"));
  const served: string[] = [];
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname } = new URL(request.url);
      served.push(pathname);
      const text = await Deno.readTextFile(fileURLToPath(new URL(`.${pathname}`, ROOT)));
      return new Response(text, { headers: { "content-type": "application/typescript" } });
    },
  );
  const host = `127.0.0.1:${server.addr.port}`;
  await readsLive(folder, `http://${host}/mod.ts`, [`--allow-import=${host}`], {
    DENO_DIR: cache.path,
  });
  assert(served.includes("/mod.ts") && served.includes("/src/slotfile/reader.ts"));
  assert(!served.some((path) => path.includes("deno.json") || path.includes("/tests/")));
  assert(!folder.names().includes("node_modules"));
});

Deno.test("a service that is checked finds the types in order", async () => {
  using folder = new TempFolder();
  folder.put("deno.json", JSON.stringify(CONFIG));
  folder.put("service.ts", serviceText(new URL("mod.ts", ROOT).href));
  const checked = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", "service.ts"],
    cwd: folder.path,
    env: { NO_COLOR: "1" },
  }).output();
  assert.equal(new TextDecoder().decode(checked.stderr), "");
  assert(checked.success);
});

/** Where the machine's own packages are. */
async function npmFolder(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  return JSON.parse(new TextDecoder().decode(stdout)).npmCache;
}
