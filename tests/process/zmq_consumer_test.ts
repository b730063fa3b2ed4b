/** Services elsewhere that get libzmq along with the module: by path, over http, with node_modules. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Child, outputOf } from "../support/child.ts";
import { TempFolder } from "../support/temp_folder.ts";

const ROOT = new URL("../../", import.meta.url);
const PERMISSIONS = ["--allow-ffi", "--allow-read"];

/** Sends a load to itself, and says which library did it. */
function serviceText(root: string): string {
  return `
    import { createLoadSnapshot } from "${root}src/snapshot/load_snapshot.ts";
    import { acquireLibzmq } from "${root}src/zmq/libzmq.ts";
    import { PollSet } from "${root}src/zmq/poll_set.ts";
    import { PullSocket } from "${root}src/zmq/socket.ts";
    import { ZmqLoadSnapshotWriter } from "${root}src/zmq/writer.ts";
    using pull = new PullSocket("tcp://127.0.0.1:*", { maxMessageSize: 16384 });
    using writer = new ZmqLoadSnapshotWriter(pull.endpoint, { dpSize: 1, dpRank: 0 });
    writer.write(createLoadSnapshot({ numRunningReqs: 1 }));
    new PollSet(pull.libzmq, [pull]).wait(10_000);
    const lease = acquireLibzmq();
    console.log(pull.receive(new Uint8Array(64)) > 0, lease.path);
    lease.release();`;
}

/** Runs the service with exactly the promised permissions; gives where its libzmq lies. */
async function libraryOf(
  folder: TempFolder,
  root: string,
  config: Readonly<Record<string, unknown>>,
  flags: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  folder.put("deno.json", JSON.stringify({ imports: { zeromq: "./nowhere.ts" }, ...config }));
  folder.put("service.ts", serviceText(root));
  const args = [...PERMISSIONS, ...flags, "service.ts"];
  const output = await outputOf(args, { cwd: folder.path, env });
  const match = /^true (.*addon\.node)\n$/.exec(output);
  assert.ok(match, output);
  return match[1]!;
}

Deno.test("a service in another folder gets libzmq out of Deno's cache", async () => {
  using folder = new TempFolder();
  const path = await libraryOf(folder, ROOT.href, {});
  assert.ok(!path.startsWith(folder.path), path);
  assert.ok(!folder.names().includes("node_modules"));
});

Deno.test("a service with a node_modules folder gets libzmq out of that", async () => {
  using folder = new TempFolder();
  const config = { nodeModulesDir: "auto" };
  folder.put("deno.json", JSON.stringify(config));
  folder.put("install.ts", `import(${JSON.stringify(new URL("src/zmq/libzmq.ts", ROOT).href)});`);
  // The first run fills the folder, and says so.
  await using first = Child.deno([...PERMISSIONS, "install.ts"], { cwd: folder.path });
  assert.equal((await first.end()).code, 0);
  const path = await libraryOf(folder, ROOT.href, config);
  assert.ok(path.startsWith(join(folder.path, "node_modules")), path);
});

Deno.test("a service that imports over http gets libzmq too", async () => {
  using folder = new TempFolder();
  using cache = new TempFolder();
  // A cache of its own, as each run has another port; the packages are those of the machine's.
  await Deno.symlink(await npmFolder(), join(cache.path, "npm"));
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname } = new URL(request.url);
      const text = await Deno.readTextFile(fileURLToPath(new URL(`.${pathname}`, ROOT)));
      return new Response(text, { headers: { "content-type": "application/typescript" } });
    },
  );
  const host = `127.0.0.1:${server.addr.port}`;
  const flags = [`--allow-import=${host}`];
  await libraryOf(folder, `http://${host}/`, {}, flags, { DENO_DIR: cache.path });
  assert.ok(!folder.names().includes("node_modules"));
});

/** Where the machine's own packages are. */
async function npmFolder(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  return JSON.parse(new TextDecoder().decode(stdout)).npmCache;
}
