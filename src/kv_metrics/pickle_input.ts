/** A pickle's bytes, read one after the other and never behind their end. */

import { type PickleRefusal, PickleRefusedError } from "../errors.ts";
import { KV_FIELDS } from "./fields.ts";

/** Bytes of the longest integer that a number holds. */
const EXACT_BYTES = 7;
const LONGEST_LINE = 255;
const NEWLINE = 0x0a;

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Texts that are found often, by length: comparing bytes is faster than making the text anew. */
const WORDS: readonly (readonly Word[])[] = wordsByLength([
  ...KV_FIELDS.map(({ wire }) => wire),
  ...["KvMetrics", "msgspec._utils", "rebuild"],
  ...["numpy", "dtype", "scalar", "numpy._core.multiarray", "numpy.core.multiarray"],
  ...["_codecs", "encode", "latin1"],
]);

interface Word {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** Reads from a pickle. */
export class PickleInput {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  /** Where the instruction stands that is being read. */
  #start = 0;

  constructor(bytes: Uint8Array, view: DataView) {
    this.#bytes = bytes;
    this.#view = view;
  }

  /** Bytes that are left. */
  get rest(): number {
    return this.#bytes.length - this.#at;
  }

  /** Reads an instruction; what is refused from here on is refused with its place. */
  opcode(): number {
    this.#start = this.#at;
    return this.byte();
  }

  /** Tells the next byte without passing it. */
  peek(): number | undefined {
    return this.#bytes[this.#at];
  }

  byte(): number {
    return this.#bytes[this.#take(1)]!;
  }

  uint16(): number {
    return this.#view.getUint16(this.#take(2), true);
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4), true);
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  /** The one number that stands with its highest byte first. */
  float64(): number {
    return this.#view.getFloat64(this.#take(8));
  }

  /** An integer in two's complement, its lowest byte first. */
  integer(length: number): number {
    const at = this.#take(length);
    if (length === 0) return 0;
    if (length > EXACT_BYTES) this.refuse("integer", `an integer of ${length} bytes`);
    let value = this.#view.getInt8(at + length - 1);
    for (let n = length - 2; n >= 0; n--) value = value * 256 + this.#bytes[at + n]!;
    if (!Number.isSafeInteger(value)) this.refuse("integer", "an integer beyond 2^53");
    return value;
  }

  /** Bytes as letters, one for each. */
  letters(length: number): string {
    const at = this.#take(length);
    let letters = "";
    for (let n = 0; n < length; n++) letters += String.fromCharCode(this.#bytes[at + n]!);
    return letters;
  }

  /** Text in UTF-8. */
  text(length: number): string {
    const at = this.#take(length);
    return this.#word(at, length) ?? this.#plainText(at, length) ?? this.#anyText(at, length);
  }

  /** One of the two lines of a GLOBAL. */
  line(): string {
    let length = 0;
    while (this.#bytes[this.#at + length] !== NEWLINE) {
      if (length === this.rest) this.refuse("truncated", "a line without an end");
      if (length++ === LONGEST_LINE) this.refuse("global", `a name beyond ${LONGEST_LINE} bytes`);
    }
    const text = this.text(length);
    this.#at++;
    return text;
  }

  /** Ends the reading. */
  refuse(reason: PickleRefusal, what: string): never {
    throw new PickleRefusedError(reason, this.#start, what);
  }

  /** Passes some bytes; returns where they start. */
  #take(count: number): number {
    const at = this.#at;
    if (count > this.#bytes.length - at) this.refuse("truncated", "the end of the bytes");
    this.#at = at + count;
    return at;
  }

  #word(at: number, length: number): string | null {
    for (const { text, bytes } of WORDS[length] ?? []) {
      let n = 0;
      while (n < length && this.#bytes[at + n] === bytes[n]) n++;
      if (n === length) return text;
    }
    return null;
  }

  /** Text whose letters are all below U+0100: names, and protocol 2's bytes. */
  #plainText(at: number, length: number): string | null {
    let text = "";
    for (let n = 0; n < length; n++) {
      let code = this.#bytes[at + n]!;
      if (code >= 0x80) {
        const next = this.#bytes[at + ++n]!;
        if ((code !== 0xc2 && code !== 0xc3) || n === length || next >> 6 !== 2) return null;
        code = (code & 0x03) << 6 | next & 0x3f;
      }
      text += String.fromCharCode(code);
    }
    return text;
  }

  #anyText(at: number, length: number): string {
    try {
      return UTF8.decode(this.#bytes.subarray(at, at + length));
    } catch {
      return this.refuse("text", "text that is not UTF-8");
    }
  }
}

function wordsByLength(texts: readonly string[]): Word[][] {
  const words: Word[][] = [];
  for (const text of texts) {
    (words[text.length] ??= []).push({ text, bytes: new TextEncoder().encode(text) });
  }
  return words;
}
