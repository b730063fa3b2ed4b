/** What is fuzzed: a parser, what it may say to any bytes, and bytes to begin with. */

/** A parser under fuzzing. */
export interface Target extends Disposable {
  readonly name: string;
  /** Inputs that matter: sound ones, and for texts the words that they are made of. */
  readonly seeds: readonly Uint8Array[];
  /** How many executions it gets for each of the others': slow ones get fewer. */
  readonly share: number;
  /**
   * Gives an input to the parser and asserts what holds for all inputs.
   *
   * @returns What came of it, in few words: an input with a new outcome is kept.
   * @throws If something does not hold.
   */
  execute(input: Uint8Array): string | Promise<string>;
}

/** An error's kind and text without its numbers, and about where it arose. */
export function refusal(name: string, what: string, offset: number): string {
  const place = offset < 64 ? offset : 64 + (Math.log2(offset) | 0);
  return `${name} ${
    what.replaceAll(/0x[0-9a-f]+|\d+|"(?:[^"\\]|\\.)*"/g, "#").slice(0, 60)
  } ${place}`;
}

/** A text as an input. */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** An input as a text; what is not UTF-8 in it becomes a replacement character. */
export function textOf(input: Uint8Array): string {
  return new TextDecoder().decode(input);
}

/** For targets that hold nothing. */
export const NOTHING_HELD: Disposable = { [Symbol.dispose]() {} };
