/**
 * Fills one folder with a Python environment and the modules out of SGLang's wheel.
 *
 * SGLang itself is not installed: it needs torch and a GPU stack, while the load module needs only
 * msgspec and pyzmq, and its route FastAPI. Of the web servers that SGLang may run on, uvicorn gets
 * its fastest parts, which SGLang itself does not ask for.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";

/** The release that is tested against, and the files that are taken out of its wheel. */
export const WHEEL = {
  requirement: "sglang==0.5.23",
  /**
   * The wheel is only opened, never installed, so it need not fit this machine. Naming its tags
   * makes every interpreter fetch the same one.
   */
  tags: [
    "--python-version=3.11",
    "--platform=manylinux_2_34_x86_64",
    "--implementation=cp",
    "--abi=cp311",
  ],
  /** SHA-256 by path within the wheel. */
  files: {
    "sglang/srt/entrypoints/v1_loads.py":
      "c0dbf2fc90fe24dd568bb7f88e8d62d923e77af33b7f85603f7d39c409b8930e",
    "sglang/srt/managers/load_snapshot.py":
      "69762793c3a0f67bacb887a24806c249e48d254ba380cda7fed9a35d17ab6082",
    "sglang/srt/managers/data_parallel_controller.py":
      "fd3213b6fdeebba00ee4d0cf074f503d365ca388cbd06edc76d8d26c94695df9",
  },
} as const;

const CANDIDATES = ["python3", "python3.13", "python3.12", "python3.11", "python"] as const;

/** The oldest Python that the pinned packages have wheels for. */
const OLDEST_MINOR = 11;

const PROBE = "import json, os, sys; " +
  "print(json.dumps([sys.executable, os.path.realpath(sys.executable), *sys.version_info[:2]]))";

const UNPACK = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(*sys.argv[2:3], " +
  "members=sys.argv[3:])";

const PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"] as const;

/**
 * Looks for interpreters that are new enough.
 *
 * @returns Their paths, each once, and why other candidates will not do.
 */
export async function findPythons(): Promise<{ pythons: string[]; problems: string[] }> {
  // By where the links end: most systems have several names for one interpreter.
  const pythons = new Map<string, string>();
  const problems: string[] = [];
  for (const candidate of CANDIDATES) {
    try {
      const [path, target, major, minor]: [string, string, number, number] = JSON.parse(
        await run(candidate, ["-c", PROBE]),
      );
      if (major === 3 && minor >= OLDEST_MINOR) {
        if (!pythons.has(target)) pythons.set(target, path);
      } else problems.push(`${candidate} is Python ${major}.${minor}, too old`);
    } catch (error) {
      // Version managers leave names behind that only print advice; that is the same as absent.
      if (!(error instanceof Error)) throw error;
    }
  }
  if (pythons.size === 0) {
    problems.push(`no Python 3.${OLDEST_MINOR} or newer (looked for ${CANDIDATES.join(", ")})`);
  }
  return { pythons: [...pythons.values()], problems };
}

/**
 * Builds the environment.
 *
 * @param base The interpreter to build it with.
 * @param folder An empty folder.
 * @param log Is told what is being waited for.
 * @returns The interpreter to start, relative to the folder when it lies inside.
 * @throws {Error} If a step fails; the message is the step's own.
 */
export async function buildPeers(
  base: string,
  folder: string,
  log: (line: string) => void,
): Promise<string> {
  const modules = join(folder, "modules");
  await Deno.mkdir(modules);
  const python = await makeVenv(base, folder, log) ? "venv/bin/python" : base;
  const inside = python !== base;
  const pip = inside ? join(folder, python) : base;
  const requirements = decodeURIComponent(new URL("requirements.txt", import.meta.url).pathname);
  log("  installing msgspec, numpy, pyzmq, FastAPI and what they need");
  await run(pip, [
    ...PIP,
    "install",
    "--only-binary=:all:",
    "--no-deps",
    ...(inside ? [] : [`--target=${modules}`]),
    `--requirement=${requirements}`,
  ]);
  log(`  taking the load modules out of ${WHEEL.requirement}`);
  await takeModules(pip, folder, modules);
  return python;
}

/** A venv where the system can make one: Debian leaves out a part that it needs. */
async function makeVenv(base: string, folder: string, log: (line: string) => void) {
  const venv = join(folder, "venv");
  try {
    await run(base, ["-m", "venv", venv]);
    return true;
  } catch {
    log("  no venv to be had here: installing beside the modules");
    await Deno.remove(venv, { recursive: true }).catch(() => {});
    return false;
  }
}

/** Fetches the wheel, takes the files out, checks them, and drops the wheel. */
async function takeModules(python: string, folder: string, modules: string): Promise<void> {
  const download = join(folder, "download");
  await run(python, [
    ...PIP,
    "download",
    "--no-cache-dir",
    "--no-deps",
    "--only-binary=:all:",
    ...WHEEL.tags,
    `--dest=${download}`,
    WHEEL.requirement,
  ]);
  const [wheel] = await Array.fromAsync(Deno.readDir(download));
  if (wheel === undefined) throw new Error(`pip left no wheel of ${WHEEL.requirement}`);
  await run(python, [
    "-c",
    UNPACK,
    join(download, wheel.name),
    modules,
    ...Object.keys(WHEEL.files),
  ]);
  await Deno.remove(download, { recursive: true });
  for (const [path, expected] of Object.entries(WHEEL.files)) {
    const actual = createHash("sha256").update(await Deno.readFile(join(modules, path)))
      .digest("hex");
    if (actual !== expected) {
      throw new Error(`${path} of ${WHEEL.requirement} has sha256 ${actual}, not ${expected}`);
    }
  }
}

/** Runs a program to its end and returns what it printed. */
async function run(program: string, args: readonly string[]): Promise<string> {
  const { success, code, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  if (success) return decoder.decode(stdout);
  // The last line says what went wrong; what stands before it is the way there.
  const said = decoder.decode(stderr).trim() || decoder.decode(stdout).trim();
  const offline = said.includes("Retrying (") ? " (the package index does not answer)" : "";
  const step = args.slice(0, 2).join(" ");
  throw new Error(`${step} failed (${code}): ${said.split("\n").at(-1) ?? ""}${offline}`);
}
