/** The C program that tells how fast a case can be, where there is a compiler. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const COMPILERS = ["cc", "gcc", "clang"] as const;

/** The cases that it knows. */
export const LIMIT_CASES: ReadonlySet<string> = new Set([
  "write",
  "read-changed",
  "read-unchanged",
  "read-all-changed",
  "read-all-unchanged",
  "decode",
]);

/** A program that can be started, or why there is none. */
export type Limit =
  | { readonly state: "ready"; readonly program: string; readonly compiler: string }
  | { readonly state: "missing"; readonly reason: string };

/**
 * Compiles the program.
 *
 * @param folder Where to put it.
 */
export async function compileLimit(folder: string): Promise<Limit> {
  const program = join(folder, "limit");
  const source = fileURLToPath(new URL("limit.c", import.meta.url));
  for (const compiler of COMPILERS) {
    try {
      const { success, stderr } = await new Deno.Command(compiler, {
        args: ["-O2", "-march=native", "-o", program, source],
        stdin: "null",
      }).output();
      if (success) return { state: "ready", program, compiler };
      const said = new TextDecoder().decode(stderr).trim().split("\n")[0] ?? "";
      return { state: "missing", reason: `${compiler} failed: ${said}` };
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  return { state: "missing", reason: `no C compiler (looked for ${COMPILERS.join(", ")})` };
}
