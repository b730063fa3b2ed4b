/** The emitting engine as a process of its own. */

import { fileURLToPath } from "node:url";

const EMITTER = fileURLToPath(new URL("./emitter.ts", import.meta.url));

/** A process that does not end by itself is killed after this. */
const PATIENCE_MS = 3_000;

/** A process that runs until the end of an `await using` scope. */
export class EmitterProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #end: Promise<void>;
  #trouble: string | null = null;
  #isStopping = false;

  /**
   * Starts it, with the permissions that its own command asks for and no more.
   *
   * @param endpoint Where it emits.
   * @param ranks How many ranks it has.
   * @throws {Deno.errors.NotCapable} Without `--allow-run`.
   */
  constructor(endpoint: string, ranks: number) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--quiet", "--no-prompt", "--allow-ffi", "--allow-read", EMITTER],
        ...["--endpoint", endpoint, "--ranks", String(ranks), "--with-input"],
      ],
      stdin: "piped",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#end = this.#follow();
  }

  /** The process's number. */
  get pid(): number {
    return this.#child.pid;
  }

  /** What went wrong with it, in a sentence, or `null`. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Ends it, and waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    await this.#child.stdin.close().catch(() => {});
    // One that stands still does not even notice.
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), PATIENCE_MS);
    await this.#end;
    clearTimeout(timer);
  }

  async #follow(): Promise<void> {
    const [{ code, signal }, said] = await Promise.all([
      this.#child.status,
      new Response(this.#child.stderr).text(),
    ]);
    if (this.#isStopping) return;
    const reason = said.trim().split("\n")[0];
    this.#trouble = `The emitter has ended, by ${signal ?? `exit code ${code}`}` +
      (reason ? `: ${reason}` : "");
  }
}
