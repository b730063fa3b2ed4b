/** Numpy's scalars: a type code, a byte order and some bytes. */

const HALF = 2 ** 32;

/** Where a scalar's bytes are laid to be read. */
const SCRATCH = new DataView(new ArrayBuffer(8));

/** What a type code stands for: how many bytes, and how to read them. */
interface Code {
  readonly size: number;
  readonly read: (view: DataView, little: boolean) => number;
  /** Whether it is to be exact. */
  readonly isInt: boolean;
}

/** The types whose values a number can hold. Others, such as `f16` and `c8`, are refused. */
const CODES: ReadonlyMap<string, Code> = new Map([
  ["b1", int(1, (view) => view.getUint8(0) === 0 ? 0 : 1)],
  ["i1", int(1, (view) => view.getInt8(0))],
  ["i2", int(2, (view, little) => view.getInt16(0, little))],
  ["i4", int(4, (view, little) => view.getInt32(0, little))],
  [
    "i8",
    int(8, (view, little) => view.getInt32(little ? 4 : 0, little) * HALF + low(view, little)),
  ],
  ["u1", int(1, (view) => view.getUint8(0))],
  ["u2", int(2, (view, little) => view.getUint16(0, little))],
  ["u4", int(4, (view, little) => view.getUint32(0, little))],
  [
    "u8",
    int(8, (view, little) => view.getUint32(little ? 4 : 0, little) * HALF + low(view, little)),
  ],
  ["f2", { size: 2, read: (view, little) => view.getFloat16(0, little), isInt: false }],
  ["f4", { size: 4, read: (view, little) => view.getFloat32(0, little), isInt: false }],
  ["f8", { size: 8, read: (view, little) => view.getFloat64(0, little), isInt: false }],
]);

/** A numpy dtype: its code from the start, its byte order once its state is set. */
export class Dtype {
  readonly #code: Code;
  #little: boolean | null = null;

  private constructor(code: Code) {
    this.#code = code;
  }

  /** Makes the dtype of a code; `null` if its values are not read. */
  static of(code: string): Dtype | null {
    const found = CODES.get(code);
    return found === undefined ? null : new Dtype(found);
  }

  /** Whether the byte order is known. */
  get isSet(): boolean {
    return this.#little !== null;
  }

  /** Sets the byte order; tells whether it is one that numpy gives such a type. */
  setOrder(order: unknown): boolean {
    const fits = this.#code.size === 1 ? order === "|" : order === "<" || order === ">";
    if (fits) this.#little = order !== ">";
    return fits;
  }

  /**
   * Reads a scalar.
   *
   * @param letters Its bytes, each as a letter.
   * @returns Its value, or why there is none: the bytes do not fit the type, or a number cannot
   * hold the integer.
   */
  read(letters: string): number | "unfit" | "inexact" {
    const { size, read, isInt } = this.#code;
    if (this.#little === null || letters.length !== size) return "unfit";
    for (let n = 0; n < size; n++) SCRATCH.setUint8(n, letters.charCodeAt(n));
    const value = read(SCRATCH, this.#little);
    return isInt && !Number.isSafeInteger(value) ? "inexact" : value;
  }
}

function int(size: number, read: Code["read"]): Code {
  return { size, read, isInt: true };
}

/** The lower half of a 64-bit integer. */
function low(view: DataView, little: boolean): number {
  return view.getUint32(little ? 0 : 4, little);
}
