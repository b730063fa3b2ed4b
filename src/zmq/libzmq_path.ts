/** Where libzmq is: npm:zeromq ships it inside of its addon, in one build for each platform. */

import { fileURLToPath } from "node:url";
import { LibzmqError } from "../errors.ts";

/** Names a system libzmq; read only where the permission to read it has been granted. */
const VARIABLE = "LOADSLOTS_LIBZMQ";

/**
 * Never called. That the module graph holds this import has Deno install the package. It is not the
 * package's JavaScript that is named here: run, that would open sockets of its own.
 */
export const SHIPPED: () => Promise<unknown> = () =>
  import("npm:zeromq@6.8.0/package.json", { with: { type: "json" } });

/** Files to try in this order, and what they are, for the message when none loads. */
export interface LibzmqFiles {
  readonly paths: readonly string[];
  readonly origin: string;
}

/**
 * Finds the files that may be libzmq.
 *
 * @param libzmqPath A system libzmq; it goes before the environment's, which goes before the shipped.
 * @throws {LibzmqError} If the package is not installed, or has no build for this platform.
 * @throws {Deno.errors.NotCapable} Without `--allow-read`.
 */
export function findLibzmq(libzmqPath: string | undefined): LibzmqFiles {
  if (libzmqPath !== undefined) return { paths: [libzmqPath], origin: "option libzmqPath" };
  const named = readVariable();
  if (named !== undefined) return { paths: [named], origin: VARIABLE };
  const paths = shippedBuilds();
  return { paths, origin: "the builds that npm:zeromq ships for this platform" };
}

function readVariable(): string | undefined {
  const { state } = Deno.permissions.querySync({ name: "env", variable: VARIABLE });
  // Anything else would prompt, or throw.
  if (state !== "granted") return undefined;
  return Deno.env.get(VARIABLE) || undefined;
}

function shippedBuilds(): string[] {
  const url = manifestUrl();
  let entries: Build[];
  try {
    entries = parseManifest(Deno.readTextFileSync(url));
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) throw error;
    const message = error instanceof Error ? error.message : `${error}`;
    throw new LibzmqError("npm:zeromq's list of builds cannot be read", [
      { path: fileURLToPath(url), message },
    ]);
  }
  const builds = buildsFor(entries, platform());
  if (builds.length > 0) return builds.map((path) => fileURLToPath(new URL(path, url)));
  throw new LibzmqError(`npm:zeromq ships no build for ${Deno.build.target}`, []);
}

function manifestUrl(): URL {
  // The package's own file, not the manifest, so that an `exports` of a later release does not hide it.
  const url = import.meta.resolve("npm:zeromq@6.8.0/package.json");
  return new URL("build/manifest.json", url);
}

/** What decides whether a build may be loaded. */
export interface Platform {
  readonly os: string;
  readonly arch: string;
  readonly libc: string;
}

/** One build, as the manifest describes it. */
interface Build extends Platform {
  readonly abi: number;
  readonly path: string;
}

/** Reads the manifest: an object whose keys are JSON themselves. */
export function parseManifest(text: string): Build[] {
  const entries: [string, string][] = Object.entries(JSON.parse(text));
  return entries.map(([description, path]) => {
    const { os, arch, libc, abi } = JSON.parse(description) as Build;
    return { os, arch, libc, abi, path: path.replaceAll("\\", "/") };
  });
}

/**
 * The builds of a platform, the best first.
 *
 * Those of another libc are left out: where such a one loads at all, it brings a second libc into
 * the process. Of the others the newest ABI comes first: npm:zeromq makes it on the oldest system, so
 * it loads on the most, and libzmq does not care for the ABI.
 */
export function buildsFor(builds: readonly Build[], { os, arch, libc }: Platform): string[] {
  return builds
    .filter((build) => build.os === os && build.arch === arch && build.libc === libc)
    .sort((a, b) => b.abi - a.abi)
    .map((build) => build.path);
}

function platform(): Platform {
  const { os, arch, target } = Deno.build;
  const libcs: Partial<Record<typeof os, string>> = { darwin: "libc", windows: "msvc" };
  return {
    os: os === "windows" ? "win32" : os,
    arch: arch === "x86_64" ? "x64" : "arm64",
    libc: libcs[os] ?? (target.endsWith("musl") ? "musl" : "glibc"),
  };
}
