/** A service elsewhere that opens a collector: its worker is found by path, and over http as well. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { outputOf, runDeno } from "../support/child.ts";
import { SlotPath } from "../support/slot_path.ts";
import { TempFolder } from "../support/temp_folder.ts";

const ROOT = new URL("../../", import.meta.url);
const PERMISSIONS = ["--allow-ffi", "--allow-read"];

/** The consumer's own names must not matter to us. */
const IMPORTS = { imports: { zeromq: "./nowhere.ts", "workers/": "./nowhere/" } };

/** Has a collector hear a load, and close. */
function serviceText(mod: string): string {
  return `
    import { createLoadSnapshot, ZmqLoadSnapshotWriter, ZmqShmLoadSnapshotReader } from "${mod}";
    {
      await using reader = await ZmqShmLoadSnapshotReader.open(
        "tcp://127.0.0.1:*",
        Deno.args[0] ?? "",
        { dpSize: 1 },
      );
      using writer = new ZmqLoadSnapshotWriter(reader.endpoint, { dpSize: 1, dpRank: 0 });
      writer.write(createLoadSnapshot({ numRunningReqs: 7 }));
      while (reader.stats().published === 0) await reader.poll();
      console.log("heard", reader.read(0)?.numRunningReqs, reader.health()[0]?.state);
    }
    console.log("closed");`;
}

const HEARD = "heard 7 live\nclosed\n";

Deno.test("a service in another folder opens a collector", async () => {
  using folder = new TempFolder();
  using file = new SlotPath();
  folder.put("deno.json", JSON.stringify(IMPORTS));
  folder.put("service.ts", serviceText(new URL("mod.ts", ROOT).href));
  const args = [...PERMISSIONS, "service.ts", file.path];
  assert.equal(await outputOf(args, { cwd: folder.path }), HEARD);
  assert.ok(!folder.names().includes("node_modules"));
});

Deno.test("a service with a node_modules folder opens a collector", async () => {
  using folder = new TempFolder();
  using file = new SlotPath();
  folder.put("deno.json", JSON.stringify({ ...IMPORTS, nodeModulesDir: "auto" }));
  folder.put("service.ts", serviceText(new URL("mod.ts", ROOT).href));
  const args = [...PERMISSIONS, "service.ts", file.path];
  // The first run fills the folder, and says so.
  const { code, stdout } = await runDeno(args, { cwd: folder.path });
  assert.deepEqual([code, stdout], [0, HEARD]);
  assert.equal(await outputOf(args, { cwd: folder.path }), HEARD);
  assert.ok(folder.names().includes("node_modules"));
});

for (const nodeModulesDir of ["none", "auto"]) {
  Deno.test(`a service over http, node_modules "${nodeModulesDir}", opens a collector`, async () => {
    using folder = new TempFolder();
    using file = new SlotPath();
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
    folder.put("deno.json", JSON.stringify({ ...IMPORTS, nodeModulesDir }));
    folder.put("service.ts", serviceText(`http://${host}/mod.ts`));
    const flags = [...PERMISSIONS, `--allow-import=${host}`];
    const { code, stdout, stderr } = await runDeno([...flags, "service.ts", file.path], {
      cwd: folder.path,
      env: { DENO_DIR: cache.path },
    });
    assert.deepEqual([code, stdout], [0, HEARD], stderr);
    assert(served.includes("/workers/drain_worker.ts"));
    assert(!served.some((path) => path.includes("/tests/")));
    assert.equal(folder.names().includes("node_modules"), nodeModulesDir === "auto");
  });
}

/** Where the machine's own packages are. */
async function npmFolder(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  return JSON.parse(new TextDecoder().decode(stdout)).npmCache;
}
