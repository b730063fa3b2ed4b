// deno-lint-ignore-file no-console -- a command of its own, and it tells what it waits for
/**
 * Python, the packages and SGLang's own module that the peer tests run against.
 *
 * They are kept in the user's cache folder, so that only the first run needs the network. Run this
 * file by itself to fetch them ahead: `deno run -A tests/peers/setup.ts`.
 */

import { createHash, randomUUID } from "node:crypto";
import { join } from "node:path";
import { buildPeers, findPythons, WHEEL } from "./build.ts";

/** What {@linkcode ensurePeers} found. */
export type Peers = ReadyPeers | { readonly state: "missing"; readonly reason: string };

/** Peers that can be started. */
export interface ReadyPeers {
  readonly state: "ready";
  /** The interpreter to start. */
  readonly python: string;
  /** Holds SGLang's modules under their path in the wheel; goes to the front of `sys.path`. */
  readonly moduleDir: string;
}

/** What a finished folder says about itself; paths are relative to it where they lie inside. */
interface Manifest {
  readonly python: string;
  /** Where the interpreter's links end; another place means that Python was replaced. */
  readonly interpreter: string;
}

/** The environment variable that says why the peers are not to be looked for. */
export const NO_PEERS = "LOADSLOTS_NO_PEERS";

const MANIFEST = "ready.json";

/** Folders of builds that were interrupted are removed when they are this old. */
const ABANDONED_MS = 3_600_000;

/**
 * Finds the peers, and fetches them when they are not there yet.
 *
 * @param log Is told what is being waited for.
 * @returns The peers, or why there are none.
 * @throws {Error} If there are none and the environment says `CI=true`: there, a missing peer is a
 * failure.
 */
export async function ensurePeers(log: (line: string) => void = console.error): Promise<Peers> {
  const cache = join(
    Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? ".", ".cache"),
    "loadslots",
  );
  const folder = join(cache, `peers-${await contentHash()}`);
  const found = await inspect(folder);
  if (found !== null) return found;
  const refused = Deno.env.get(NO_PEERS);
  const problems = refused === undefined ? await build(cache, folder, log) : [refused];
  const built = await inspect(folder);
  if (built !== null) return built;
  const reason = problems.join("; ");
  if (Deno.env.get("CI") === "true") throw new Error(`Cannot set up the Python peers: ${reason}`);
  return { state: "missing", reason };
}

/** Names the folder after all that decides its content. */
async function contentHash(): Promise<string> {
  const requirements = await Deno.readTextFile(new URL("requirements.txt", import.meta.url));
  return createHash("sha256").update(requirements).update(JSON.stringify(WHEEL)).digest("hex")
    .slice(0, 12);
}

/** Tells what is in a finished folder, or `null` when it is absent or its Python has gone. */
async function inspect(folder: string): Promise<ReadyPeers | null> {
  try {
    const manifest: Manifest = JSON.parse(await Deno.readTextFile(join(folder, MANIFEST)));
    // join() would swallow the leading slash of an interpreter outside of the folder.
    const python = manifest.python.startsWith("/")
      ? manifest.python
      : join(folder, manifest.python);
    if (await Deno.realPath(python) !== manifest.interpreter) return null;
    return { state: "ready", python, moduleDir: join(folder, "modules") };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Tries one interpreter after the other; what went wrong is returned, and empty on success. */
async function build(cache: string, folder: string, log: (line: string) => void) {
  await Deno.mkdir(cache, { recursive: true });
  await removeAbandoned(cache);
  const { pythons, problems } = await findPythons();
  for (const python of pythons) {
    // Built aside and renamed: an interrupted run leaves nothing that looks finished, and of two
    // runs at once the second finds the first one's folder and drops its own.
    const aside = `${folder}.building-${randomUUID()}`;
    await Deno.mkdir(aside);
    try {
      log(`Setting up the Python peers with ${python} (once, some 60 MB) ...`);
      const started = await buildPeers(python, aside, log);
      const interpreter = await Deno.realPath(
        started.startsWith("/") ? started : join(aside, started),
      );
      const manifest: Manifest = { python: started, interpreter };
      await Deno.writeTextFile(join(aside, MANIFEST), JSON.stringify(manifest));
      await moveInto(aside, folder);
      log(`The Python peers are in ${folder}`);
      return [];
    } catch (error) {
      problems.push(`${python}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      await removeIfThere(aside);
    }
  }
  return problems;
}

/** Moves a finished folder to its place, unless another run was faster. */
async function moveInto(aside: string, folder: string): Promise<void> {
  const outdated = `${folder}.building-${randomUUID()}`;
  try {
    await Deno.rename(aside, folder);
  } catch (error) {
    // Another run's folder is as good as ours; one whose Python was replaced has to go.
    if (await inspect(folder) !== null) return;
    await Deno.rename(folder, outdated).catch(() => Promise.reject(error));
    await Deno.rename(aside, folder);
  } finally {
    await removeIfThere(outdated);
  }
}

async function removeAbandoned(cache: string): Promise<void> {
  for await (const entry of Deno.readDir(cache)) {
    if (!entry.name.includes(".building-")) continue;
    const path = join(cache, entry.name);
    const modified = await Deno.stat(path).then((info) => info.mtime?.getTime() ?? 0, () => null);
    if (modified !== null && Date.now() - modified > ABANDONED_MS) await removeIfThere(path);
  }
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

if (import.meta.main) {
  const peers = await ensurePeers(console.log);
  if (peers.state === "missing") {
    console.error(`No Python peers: ${peers.reason}`);
    Deno.exit(1);
  }
  console.log(`python:  ${peers.python}\nmodules: ${peers.moduleDir}`);
}
