/** A process on the stage: it is told and says one JSON object a line, and faults may end it. */

/** What starts a process. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Whatever an actor says; `kind` tells what it is. */
export interface Message {
  readonly kind: string;
  readonly [name: string]: unknown;
}

/** How long an actor may take to start or to end by itself; only a hang takes that long. */
const HANG_MS = 60_000;

/** One running process. */
export class Actor {
  readonly name: string;
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #up = Promise.withResolvers<Message>();
  readonly #reading: Promise<void>;
  readonly #errors: Promise<string>;
  #isExpectedToEnd = false;

  /**
   * @param hear Is told all that the actor says.
   * @param diedAlone Is told why, if it ends although no fault ended it.
   */
  constructor(
    name: string,
    program: Program,
    hear: (message: Message) => void,
    diedAlone: (why: string) => void,
  ) {
    this.name = name;
    this.#process = new Deno.Command(program.command, {
      args: [...program.args],
      env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", ...program.env },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#input = this.#process.stdin.getWriter();
    this.#input.closed.catch(() => {});
    this.#up.promise.catch(() => {});
    this.#reading = this.#listen(hear);
    this.#errors = new Response(this.#process.stderr).text();
    void this.#process.status.then(async ({ code, signal }) => {
      const said = (await this.#errors).trim().slice(-1500);
      const why = `${name} ended by ${signal ?? code}: ${said}`;
      this.#up.reject(new Error(why));
      if (!this.#isExpectedToEnd) diedAlone(why);
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Resolves with the actor's first words; rejects if it ends before. */
  async up(): Promise<Message> {
    const timer = setTimeout(
      () => this.#up.reject(new Error(`${this.name} does not start`)),
      HANG_MS,
    );
    try {
      return await this.#up.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Tells it something; what has ended hears nothing. */
  tell(message: object): void {
    const line = new TextEncoder().encode(`${JSON.stringify(message)}\n`);
    this.#input.write(line).catch(() => {});
  }

  /** Stops it, or lets it go on. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#send(signal);
  }

  /** Kills it and waits until it is gone. */
  async kill(): Promise<void> {
    this.#isExpectedToEnd = true;
    this.#send("SIGKILL");
    await this.#gone();
  }

  /**
   * Lets it end by itself, and waits until it is gone.
   *
   * @returns How it ended, in words, if not well.
   */
  async end(): Promise<string | null> {
    this.#isExpectedToEnd = true;
    this.#send("SIGCONT");
    await this.#input.close().catch(() => {});
    let hangs = false;
    const timer = setTimeout(() => {
      hangs = true;
      this.#send("SIGKILL");
    }, HANG_MS);
    const { code, signal } = await this.#process.status;
    clearTimeout(timer);
    await this.#gone();
    if (code === 0) return null;
    if (hangs) return `${this.name} did not end`;
    return `${this.name} ended by ${signal ?? code}: ${(await this.#errors).trim().slice(-1500)}`;
  }

  async #gone(): Promise<void> {
    await this.#process.status;
    await this.#input.close().catch(() => {});
    await this.#reading;
    await this.#errors;
  }

  #send(signal: Deno.Signal): void {
    try {
      this.#process.kill(signal);
    } catch (error) {
      // Deno's word for a process that has ended.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  async #listen(hear: (message: Message) => void): Promise<void> {
    let rest = "";
    for await (const text of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const message = JSON.parse(line) as Message;
        if (message.kind === "up") this.#up.resolve(message);
        hear(message);
      }
    }
  }
}
