/** The Python driver as a process: requests by number, its end, and what it said on the way. */

import { parse, stringify } from "./driver_values.ts";
import type { ReadyPeers } from "./setup.ts";
import { fileURLToPath } from "node:url";

/** An exception of Python's. */
export class PeerError extends Error {
  override readonly name = "PeerError";
  /** The exception's class, such as `"ValueError"`. */
  readonly type: string;

  constructor(type: string, message: string) {
    super(`${type}: ${message}`);
    this.type = type;
  }
}

/** How long a peer may take to answer, unless the request says otherwise. */
const ANSWER_MS = 30_000;

/** How long a peer may take to end by itself once its input has. */
const END_MS = 2_000;

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** One running driver. */
export class DriverProcess {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #pending = new Map<number, Pending>();
  readonly #output: Promise<void>;
  readonly #errors: Promise<void>;
  #said = "";
  #lastId = 0;
  #ending: Promise<void> | null = null;

  constructor(peers: ReadyPeers) {
    this.#child = new Deno.Command(peers.python, {
      args: [
        // Nothing of the user's own Python settings, and no bytecode in this folder.
        ...["-E", "-s", "-B"],
        fileURLToPath(new URL("driver.py", import.meta.url)),
        peers.moduleDir,
      ],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#output = this.#receive();
    this.#errors = this.#listen();
  }

  /** The process's number. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Settles when the process has ended, however it did. */
  get status(): Promise<Deno.CommandStatus> {
    return this.#child.status;
  }

  /** What the process wrote to its standard error so far. */
  get said(): string {
    return this.#said;
  }

  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /**
   * Sends one request and waits for its answer.
   *
   * @throws {PeerError} If Python raised.
   * @throws {Error} If the process ended, or did not answer in time.
   */
  async request(
    cmd: string,
    args: Readonly<Record<string, unknown>>,
    answerMs: number = ANSWER_MS,
  ): Promise<unknown> {
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = setTimeout(
      () => reject(new Error(`The Python peer did not answer ${cmd} within ${answerMs} ms`)),
      answerMs,
    );
    this.#pending.set(id, { resolve, reject });
    try {
      const line = new TextEncoder().encode(stringify({ id, cmd, ...args }) + "\n");
      // A process that has ended shows in the answer that never comes, with what it said.
      this.#input.write(line).catch(() => reject(this.#ended(cmd)));
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#pending.delete(id);
    }
  }

  /** Ends the process and waits for it. A second call waits for the first. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const timer = setTimeout(() => this.#tryKill("SIGKILL"), END_MS);
    // A test may have stopped it.
    this.#tryKill("SIGCONT");
    await this.#input.close().catch(() => {});
    await this.#child.status;
    clearTimeout(timer);
    await Promise.all([this.#output, this.#errors]);
  }

  #tryKill(signal: Deno.Signal): void {
    try {
      this.#child.kill(signal);
    } catch (error) {
      // Deno's word for a process that has ended already.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  async #receive(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#settle(line);
    }
    await this.#errors;
    for (const { reject } of this.#pending.values()) reject(this.#ended("a request"));
  }

  #settle(line: string): void {
    const answer = parse(line) as
      | { readonly id: number; readonly ok: unknown }
      | { readonly id: number; readonly error: string; readonly type: string };
    const pending = this.#pending.get(answer.id);
    if ("error" in answer) pending?.reject(new PeerError(answer.type, answer.error));
    else pending?.resolve(answer.ok);
  }

  async #listen(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.#said += text;
    }
  }

  #ended(cmd: string): Error {
    return new Error(`The Python peer ended before it answered ${cmd}: ${this.#said.trim()}`);
  }
}
