/**
 * What can lie on the stack while a pickle is read. None of it is executed: a global is one of five
 * marks, an object is a list of numbers.
 */

import { type FieldValues, noValues } from "./field_values.ts";
import type { Dtype } from "./numpy_scalar.ts";

/** What a name may stand for. */
export class PickleGlobal {
  /** As errors call it. */
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** SGLang's class, whichever module it is in. */
export const KV_METRICS: PickleGlobal = new PickleGlobal("KvMetrics");
/** Makes a msgspec Struct out of its class and a dict. */
export const REBUILD: PickleGlobal = new PickleGlobal("msgspec._utils.rebuild");
/** Makes a numpy scalar out of a dtype and bytes. */
export const SCALAR: PickleGlobal = new PickleGlobal("numpy scalar");
/** Makes a dtype out of its code. */
export const DTYPE: PickleGlobal = new PickleGlobal("numpy.dtype");
/** Makes bytes out of text: protocol 2 has no bytes of its own. */
export const ENCODE: PickleGlobal = new PickleGlobal("_codecs.encode");

/** Where the names are found; numpy 2 moved one of its. */
const NAMES: readonly (readonly [module: string, name: string, meaning: PickleGlobal])[] = [
  ["numpy._core.multiarray", "scalar", SCALAR],
  ["numpy.core.multiarray", "scalar", SCALAR],
  ["numpy", "dtype", DTYPE],
  ["msgspec._utils", "rebuild", REBUILD],
  ["_codecs", "encode", ENCODE],
];

/** SGLang moved its class four times, and forks move it elsewhere. */
const SGLANG_MODULE = /^sglang\.[A-Za-z0-9_.]+$/;

/** Finds what a name stands for; `null` for every name that no KvMetrics needs. */
export function globalNamed(module: string, name: string): PickleGlobal | null {
  if (name === KV_METRICS.name) return SGLANG_MODULE.test(module) ? KV_METRICS : null;
  for (const known of NAMES) if (known[1] === name && known[0] === module) return known[2];
  return null;
}

/** Bytes, as letters of one byte each: they are few, and that is cheaper than an array. */
export class PickleBytes {
  readonly letters: string;

  constructor(letters: string) {
    this.letters = letters;
  }
}

/** A tuple. None that is needed holds another one. */
export class PickleTuple {
  readonly items: readonly PickleValue[];

  constructor(items: readonly PickleValue[]) {
    this.items = items;
  }
}

/** The only dict of a pickle: the object's fields by name. */
export class PickleDict {
  readonly #values: FieldValues = noValues();
  #isDone = false;

  /** Whether it was filled or used: what comes later would change it behind its user's back. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Hands out its values, to be filled or to be kept. */
  take(): FieldValues {
    this.#isDone = true;
    return this.#values;
  }
}

/** The only object of a pickle. */
export class PickleObject {
  /** `null` until its state is set. */
  values: FieldValues | null;

  constructor(values: FieldValues | null) {
    this.values = values;
  }
}

/** Anything on the stack or in the memo. */
export type PickleValue =
  | null
  | boolean
  | number
  | string
  | PickleBytes
  | Dtype
  | PickleGlobal
  | PickleTuple
  | PickleDict
  | PickleObject;

/** What a value is called in an error. */
export function kindOf(value: PickleValue | undefined): string {
  if (value === undefined) return "nothing";
  if (value === null) return "None";
  if (typeof value === "string") return "str";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number") return "number";
  if (value instanceof PickleBytes) return "bytes";
  if (value instanceof PickleGlobal) return value.name;
  if (value instanceof PickleTuple) return "tuple";
  if (value instanceof PickleDict) return "dict";
  return value instanceof PickleObject ? "an object" : "a dtype";
}

/** Text out of a pickle, for an error: short, and without what could forge a line of a log. */
export function shown(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 80)}...` : text;
  return short.replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
