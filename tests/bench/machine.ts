/** Where and when a run took place. */

import { cpus, release } from "node:os";
import config from "../../deno.json" with { type: "json" };

/** What the figures depend on. */
export interface Machine {
  readonly date: string;
  /** The version of this package. */
  readonly loadslots: string;
  /** Of the working tree, with "+" if it was changed; `null` where there is no git. */
  readonly commit: string | null;
  readonly cores: number;
  readonly processor: string;
  readonly architecture: string;
  readonly kernel: string;
  readonly deno: string;
  readonly v8: string;
  /** `null` without a reference. */
  readonly python: string | null;
  /** `null` without a limit. */
  readonly compiler: string | null;
  /** Processes that wanted to run, on average over the minute before. */
  readonly loadBefore: number;
}

/** Looks at this machine. */
export async function lookAtMachine(
  python: string | null,
  compiler: string | null,
): Promise<Machine> {
  return {
    date: new Date().toISOString(),
    loadslots: config.version,
    commit: await commit(),
    cores: navigator.hardwareConcurrency,
    processor: cpus()[0]?.model ?? "unknown",
    architecture: Deno.build.arch,
    kernel: release(),
    deno: Deno.version.deno,
    v8: Deno.version.v8,
    python: python === null ? null : await firstLine(python, ["--version"]),
    compiler: compiler === null ? null : await firstLine(compiler, ["--version"]),
    loadBefore: Deno.loadavg()[0] ?? 0,
  };
}

async function commit(): Promise<string | null> {
  const git = async (...args: string[]) => {
    const { success, stdout } = await new Deno.Command("git", {
      args,
      cwd: import.meta.dirname!,
      stdin: "null",
      stderr: "null",
    }).output();
    return success ? new TextDecoder().decode(stdout).trim() : null;
  };
  try {
    const hash = await git("rev-parse", "--short=12", "HEAD");
    if (hash === null) return null;
    return await git("status", "--porcelain", "--untracked-files=no") === "" ? hash : `${hash}+`;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return null;
  }
}

async function firstLine(program: string, args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(program, { args, stdin: "null" }).output();
  return new TextDecoder().decode(stdout).split("\n")[0]!.trim();
}
