/** Holding a process to one core. */

/** The command that runs a program on one core, where that can be said and there are two. */
export async function onCore(
  core: number,
  program: string,
  args: readonly string[],
): Promise<[program: string, args: readonly string[]]> {
  if (!await hasTaskset()) return [program, args];
  return ["taskset", ["-c", String(core), program, ...args]];
}

/** Whether processes can be held to a core, and there are two. */
export async function hasTaskset(): Promise<boolean> {
  if (navigator.hardwareConcurrency < 2) return false;
  try {
    return (await new Deno.Command("taskset", { args: ["-c", "0,1", "true"] }).output()).success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
