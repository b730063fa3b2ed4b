/** One side of a comparison: a process that times a round each time it is asked to. */

import { TextLineStream } from "./text_lines.ts";

/** How long a process may take to get ready, or for one round. */
const ANSWER_MS = 60_000;

/** How long a process may take to end by itself once its input has. */
const END_MS = 1_000;

/** A child that answers each line of its input with one line of JSON, and ends with its input. */
export class SideProcess implements AsyncDisposable {
  readonly #name: string;
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #said: Promise<string>;
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => this.#kill();

  private constructor(name: string, command: Deno.Command, signal: AbortSignal) {
    this.#name = name;
    this.#signal = signal;
    this.#child = command.spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#lines = this.#child.stdout
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream())
      .getReader();
    this.#said = new Response(this.#child.stderr).text();
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /**
   * Starts a process and waits for its first line, which says that it is ready.
   *
   * @param name What it is called in errors.
   * @param program The program.
   * @param args Its arguments.
   * @param signal Ends the process at once.
   */
  static async start(
    name: string,
    program: string,
    args: readonly string[],
    signal: AbortSignal,
  ): Promise<SideProcess> {
    signal.throwIfAborted();
    const command = new Deno.Command(program, {
      args: [...args],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    });
    const side = new SideProcess(name, command, signal);
    try {
      await side.#receive();
    } catch (error) {
      await side[Symbol.asyncDispose]();
      throw error;
    }
    return side;
  }

  /** Starts one of the scripts in this folder with this Deno. */
  static startScript(
    script: string,
    args: readonly string[],
    signal: AbortSignal,
  ): Promise<SideProcess> {
    const url = new URL(script, import.meta.url).href;
    return SideProcess.start(script, Deno.execPath(), ["run", "-A", url, ...args], signal);
  }

  /** Sends a line and waits for the answer, which is taken at its word: the program is ours. */
  async ask<Answer>(line: string): Promise<Answer> {
    await this.#input.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
    return JSON.parse(await this.#receive());
  }

  /** Times one round; nanoseconds per call. */
  async round(): Promise<number> {
    const { ns } = await this.ask<{ readonly ns: number }>("round");
    return ns;
  }

  /** Ends the process and waits for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal.removeEventListener("abort", this.#onAbort);
    const timer = setTimeout(() => this.#kill(), END_MS);
    await this.#input.close().catch(() => {});
    await this.#child.status;
    clearTimeout(timer);
    await this.#lines.cancel();
    await this.#said;
  }

  async #receive(): Promise<string> {
    const timer = setTimeout(() => this.#kill(), ANSWER_MS);
    const { value } = await this.#lines.read();
    clearTimeout(timer);
    if (value !== undefined) return value;
    this.#signal.throwIfAborted();
    throw new Error(`${this.#name} ended early: ${(await this.#said).trim()}`);
  }

  #kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch (error) {
      // Deno's word for a process that has ended already.
      if (!(error instanceof TypeError)) throw error;
    }
  }
}
