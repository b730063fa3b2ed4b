/** SGLang's own `/v1/loads` as a server, in a process of its own. */

import { fileURLToPath } from "node:url";
import { ensurePeers, type ReadyPeers } from "./setup.ts";

/** How long it may take to listen, and to end by itself. */
const LIMIT_MS = 30_000;

/** A running server. */
export class LoadRoute implements AsyncDisposable {
  /** Where it listens, such as `http://127.0.0.1:5000/`. */
  readonly url: string;
  /** Its process. */
  readonly pid: number;
  readonly #child: Deno.ChildProcess;
  readonly #rest: Promise<void>;

  private constructor(child: Deno.ChildProcess, port: number, rest: Promise<void>) {
    this.#child = child;
    this.#rest = rest;
    this.pid = child.pid;
    this.url = `http://127.0.0.1:${port}/`;
  }

  /**
   * Starts one over a slot file, and waits until it answers.
   *
   * @param within Starts the process within another command, such as `taskset`.
   */
  static async start(
    path: string,
    dpSize: number,
    peers: ReadyPeers | null = null,
    within: readonly string[] = [],
  ): Promise<LoadRoute> {
    const ready = peers ?? await ensurePeers();
    if (ready.state === "missing") throw new Error(`No Python peers: ${ready.reason}`);
    const script = fileURLToPath(new URL("load_route.py", import.meta.url));
    const [command, ...args] = [
      ...within,
      ...[ready.python, "-E", "-s", "-B", script, ready.moduleDir, path, `${dpSize}`],
    ];
    const child = new Deno.Command(command!, {
      args,
      env: { PYTHONPATH: "" },
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const { value } = await lines.read();
    const port = Number(value);
    const route = new LoadRoute(child, port, drain(lines));
    try {
      if (!(port > 0)) throw new Error(`SGLang's route did not start: ${value}`);
      await route.#answers();
      return route;
    } catch (error) {
      await route[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stdin.close().catch(() => {}); // it may be gone already
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), LIMIT_MS);
    await this.#child.status;
    clearTimeout(timer);
    await this.#rest;
  }

  async #answers(): Promise<void> {
    const deadline = performance.now() + LIMIT_MS;
    for (;;) {
      try {
        const response = await fetch(new URL("v1/loads", this.url));
        await response.body?.cancel();
        return;
      } catch (error) {
        // It says its port before it listens there.
        if (!(error instanceof TypeError) || performance.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }
}

async function drain(lines: ReadableStreamDefaultReader<string>): Promise<void> {
  while (!(await lines.read()).done);
}
