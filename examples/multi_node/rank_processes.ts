/** The ranks of a simulated engine, each a process of its own. */

import { fileURLToPath } from "node:url";

const ENGINE_RANK = fileURLToPath(new URL("./engine_rank.ts", import.meta.url));

/** A process that does not end by itself is killed after this. */
const PATIENCE_MS = 3_000;

/** Processes that run until the end of an `await using` scope. */
export class RankProcesses implements AsyncDisposable {
  readonly #children: readonly Deno.ChildProcess[];
  readonly #ends: Promise<unknown>[];
  #trouble: string | null = null;
  #isStopping = false;

  /**
   * Starts them. They get the permissions that their own command asks for, and no more.
   *
   * @param endpoint Where they push.
   * @param dpSize How many there are.
   * @throws {Deno.errors.NotCapable} Without `--allow-run`.
   */
  constructor(endpoint: string, dpSize: number) {
    const children: Deno.ChildProcess[] = [];
    this.#children = children;
    this.#ends = [];
    for (let dpRank = 0; dpRank < dpSize; dpRank++) {
      const child = start(endpoint, dpSize, dpRank);
      children.push(child);
      this.#ends.push(this.#follow(child, dpRank));
    }
  }

  /** The processes' numbers, by rank. */
  get pids(): readonly number[] {
    return this.#children.map((child) => child.pid);
  }

  /** What went wrong with one of them, in a sentence, or `null`. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Ends them, and waits until they are gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#signalAll("SIGTERM");
    // One that stands still does not even notice.
    const timer = setTimeout(() => this.#signalAll("SIGKILL"), PATIENCE_MS);
    await Promise.all(this.#ends);
    clearTimeout(timer);
  }

  async #follow(child: Deno.ChildProcess, dpRank: number): Promise<void> {
    const [{ code, signal }, said] = await Promise.all([
      child.status,
      new Response(child.stderr).text(),
    ]);
    if (this.#isStopping) return;
    const reason = said.trim().split("\n")[0];
    this.#trouble = `Rank ${dpRank}'s process has ended, by ${signal ?? `exit code ${code}`}` +
      (reason ? `: ${reason}` : "");
  }

  #signalAll(signal: Deno.Signal): void {
    for (const child of this.#children) {
      try {
        child.kill(signal);
      } catch (error) {
        // Deno's word for a process that has ended already.
        if (!(error instanceof TypeError)) throw error;
      }
    }
  }
}

function start(endpoint: string, dpSize: number, dpRank: number): Deno.ChildProcess {
  const permissions = ["--no-prompt", "--allow-ffi", "--allow-read"];
  const flags = { endpoint: reachable(endpoint), ranks: dpSize, rank: dpRank, parent: Deno.pid };
  return new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", ...permissions, ENGINE_RANK],
      ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]),
    ],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
}

/** Where a wildcard address is reached on this machine. */
function reachable(endpoint: string): string {
  return endpoint.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}
