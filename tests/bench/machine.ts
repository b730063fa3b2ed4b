/** Where and when a run took place. */

import { cpus, release } from "node:os";

/** What the figures depend on. */
export interface Machine {
  readonly date: string;
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

async function firstLine(program: string, args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(program, { args, stdin: "null" }).output();
  return new TextDecoder().decode(stdout).split("\n")[0]!.trim();
}
