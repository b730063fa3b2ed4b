/** What a run is doing, on standard error: one line that changes on a terminal, else one a case. */

const UTF8 = new TextEncoder();

/** Tells how far a run is. */
export class Progress {
  readonly #isTerminal: boolean = Deno.stderr.isTerminal();
  readonly #begin: number = performance.now();
  #shown = "";

  /** A case begins. */
  begin(name: string): void {
    if (this.#isTerminal) this.#show(name);
    else this.#write(`${this.#elapsed()} ${name}\n`);
  }

  /** A case has got somewhere. */
  step(name: string, done: number, all: number): void {
    if (this.#isTerminal) this.#show(`${name} ${"#".repeat(done)}${".".repeat(all - done)}`);
  }

  /** Something to know, which stays. */
  say(line: string): void {
    this.clear();
    this.#write(`${line}\n`);
  }

  /** Takes the changing line away. */
  clear(): void {
    if (this.#shown !== "") this.#write("\r\x1b[K");
    this.#shown = "";
  }

  #show(text: string): void {
    this.#shown = `${this.#elapsed()} ${text}`;
    this.#write(`\r\x1b[K${this.#shown}`);
  }

  #elapsed(): string {
    return `[${((performance.now() - this.#begin) / 1000).toFixed(0).padStart(3)} s]`;
  }

  #write(text: string): void {
    Deno.stderr.writeSync(UTF8.encode(text));
  }
}
