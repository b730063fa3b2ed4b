/** A folder of a test's own. */

import { join } from "node:path";

/** Gone, with all that is in it, at the end of a `using` scope. */
export class TempFolder implements Disposable {
  /** Its path, without links in it. */
  readonly path: string = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "loadslots_test_" }));

  /** Puts a text file into it; gives the file's path. */
  put(name: string, text: string): string {
    const path = join(this.path, name);
    Deno.writeTextFileSync(path, text);
    return path;
  }

  /** The names in it, in order. */
  names(): string[] {
    return Array.from(Deno.readDirSync(this.path), (entry) => entry.name).sort();
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}
