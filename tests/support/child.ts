/** Child processes of a test: they end with it, and what they say is told when something fails. */

import assert from "node:assert/strict";
import { HANG_MS } from "./wait.ts";

/** How a child ended, and what it wrote. */
export interface ChildEnd {
  readonly code: number;
  readonly signal: Deno.Signal | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a child is started with. */
export interface ChildOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** One running program. */
export class Child implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: AsyncGenerator<string>;
  readonly #errors: Promise<string>;
  #output = "";
  #disposed: Promise<void> | null = null;

  /** Starts a program. */
  constructor(command: string, args: readonly string[], options: ChildOptions = {}) {
    this.#process = new Deno.Command(command, {
      ...options,
      args: [...args],
      env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", ...options.env },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#input = this.#process.stdin.getWriter();
    this.#lines = this.#readLines();
    this.#errors = new Response(this.#process.stderr).text();
  }

  /** Starts Deno; nothing is asked of the user. */
  static deno(args: readonly string[], options: ChildOptions = {}): Child {
    return new Child(Deno.execPath(), ["run", "--quiet", "--no-prompt", ...args], options);
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Settles when the child has ended, however it did. */
  get status(): Promise<Deno.CommandStatus> {
    return this.#process.status;
  }

  /** Sends a signal; a child that has ended already gets none. */
  kill(signal: Deno.Signal): void {
    try {
      this.#process.kill(signal);
    } catch (error) {
      // Deno's word for a process that has ended.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  /** Writes one line to the child's input. If the child has ended, {@linkcode line} says so. */
  async say(line: string): Promise<void> {
    await this.#input.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
  }

  /** Waits for the child's next line. */
  async line(): Promise<string> {
    const next = await this.#within(this.#lines.next());
    if (next.done !== true) return next.value;
    const { code, signal } = await this.status;
    throw new Error(`The child ended by ${signal ?? code} instead: ${await this.#errors}`);
  }

  /** Sends a line, and takes the next one as the answer, which is JSON. */
  async ask<Answer>(question: string): Promise<Answer> {
    await this.say(question);
    return JSON.parse(await this.line()) as Answer;
  }

  /** Closes the child's input and waits until it has ended. */
  async end(): Promise<ChildEnd> {
    await this.#input.close().catch(() => {});
    const rest: string[] = [];
    await this.#within((async () => {
      for await (const line of this.#lines) rest.push(line);
    })());
    const { code, signal } = await this.status;
    return { code, signal, stdout: this.#output, stderr: await this.#errors };
  }

  /** Ends the child, a stopped one too, and waits until it is gone. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#disposed ??= this.#dispose();
  }

  async #dispose(): Promise<void> {
    this.kill("SIGKILL");
    await this.status;
    await this.#input.close().catch(() => {});
    // What was not read is dropped; a line that is waited for will not come any more.
    while ((await this.#lines.next()).done !== true);
    await this.#errors;
  }

  async #within<T>(promise: Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.kill("SIGKILL");
      reject(new Error(`The child did not answer within ${HANG_MS} ms: ${this.#output}`));
    }, HANG_MS);
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async *#readLines(): AsyncGenerator<string> {
    let rest = "";
    for await (const text of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
      this.#output += text;
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
    if (rest !== "") yield rest;
  }
}

/** Runs a Deno program to its end. */
export async function runDeno(
  args: readonly string[],
  options: ChildOptions = {},
): Promise<ChildEnd> {
  await using child = Child.deno(args, options);
  return await child.end();
}

/** Runs a Deno program that must succeed in silence; gives what it printed. */
export async function outputOf(
  args: readonly string[],
  options: ChildOptions = {},
): Promise<string> {
  const { stdout, ...end } = await runDeno(args, options);
  assert.deepEqual(end, { code: 0, signal: null, stderr: "" }, stdout);
  return stdout;
}
