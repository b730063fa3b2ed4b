// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * Checks everything that has to hold before a commit: `deno task ok`.
 *
 * Every check is made even if one fails before it, so that one run tells all. `--no-tests` leaves
 * out the tests, for a caller that runs them itself.
 */

import { fileURLToPath, pathToFileURL } from "node:url";
import { dirname, join } from "node:path";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Where examples stand, as far as it is there. */
const DOCUMENTED = ["mod.ts", "src", "workers", "README.md"] as const;

interface Config {
  readonly exports: Readonly<Record<string, string>>;
  readonly compilerOptions: Readonly<Record<string, unknown>>;
}

async function deno(...args: readonly string[]): Promise<boolean> {
  console.log(`\n$ deno ${args.join(" ")}`);
  const child = new Deno.Command(Deno.execPath(), { args: [...args], cwd: ROOT, stdin: "null" });
  return (await child.spawn().status).success;
}

/** Finds the folders below a path, itself included; none where there is no folder. */
async function foldersBelow(path: string): Promise<string[]> {
  if (!(await Deno.stat(join(ROOT, path))).isDirectory) return [];
  const folders = [path];
  for await (const entry of Deno.readDir(join(ROOT, path))) {
    if (entry.isDirectory) folders.push(...await foldersBelow(`${path}/${entry.name}`));
  }
  return folders;
}

/**
 * Type-checks the examples in doc comments and README.md.
 *
 * They import from "./mod.ts", or from "./src/http/mod.ts", wherever they stand, as a reader would
 * write it. So a configuration of their own maps these names, in each folder, to those at the top;
 * and it lets an example end with a value that it does not use.
 */
async function checkExamples(config: Config): Promise<boolean> {
  const at = (path: string) => pathToFileURL(join(ROOT, path)).href;
  const top = new Set((await Array.fromAsync(Deno.readDir(ROOT))).map((entry) => entry.name));
  const documented = DOCUMENTED.filter((path) => top.has(path));
  const others = Object.values(config.exports).map((path) => path.replace("./", ""))
    .filter((path) => path !== "mod.ts");
  const folders = (await Promise.all(documented.map(foldersBelow))).flat();
  const imports = Object.fromEntries(
    folders.flatMap((folder) => [
      // Another export of this name is itself; only the examples beside it mean the one at the top.
      ...(others.includes(`${folder}/mod.ts`) ? [] : [[at(`${folder}/mod.ts`), at("mod.ts")]]),
      ...others.map((other) => [at(`${folder}/${other}`), at(other)]),
    ]),
  );
  const scopes = Object.fromEntries(
    others.map((other) => [at(`${dirname(other)}/`), { [at(other)]: at("mod.ts") }]),
  );
  const compilerOptions = { ...config.compilerOptions, noUnusedLocals: false };
  const folder = await Deno.makeTempDir();
  try {
    const path = join(folder, "deno.json");
    await Deno.writeTextFile(path, JSON.stringify({ compilerOptions, imports, scopes }));
    return await deno("check", "--doc-only", "--no-lock", `--config=${path}`, ...documented);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function main(args: readonly string[]): Promise<boolean> {
  const config: Config = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const failed: string[] = [];
  const check = async (name: string, outcome: Promise<boolean>) => {
    if (!await outcome) failed.push(name);
  };
  await check("format", deno("fmt", "--check"));
  await check("lint", deno("lint"));
  await check("types", deno("check"));
  await check("documentation", deno("doc", "--lint", ...Object.values(config.exports)));
  await check("examples", checkExamples(config));
  // Uncommitted changes are what is being checked.
  await check("publishing", deno("publish", "--dry-run", "--allow-dirty"));
  if (!args.includes("--no-tests")) await check("tests", deno("run", "-A", "tests/run.ts"));
  if (failed.length > 0) console.log(`\nNot ok: ${failed.join(", ")}`);
  return failed.length === 0;
}

if (import.meta.main && !await main(Deno.args)) Deno.exit(1);
