/**
 * Snapshots as the Python driver takes and gives them, and values as JSON without loss;
 * json_values.py is the other end.
 */

import {
  createLoadSnapshot,
  type LoadSnapshot,
  type LoadSnapshotInit,
} from "../../src/snapshot/load_snapshot.ts";
import { CORE_FIELDS, type FieldType, SECTIONS } from "../../src/snapshot/fields.ts";

/** A value of Python's: a plain number is an int when sent, whatever it was when received. */
export type DriverValue =
  | number
  | bigint
  | string
  | boolean
  | null
  | Uint8Array
  | Float
  | NumpyScalar
  | readonly DriverValue[]
  | { readonly [key: string]: DriverValue };

/** A snapshot under SGLang's names; sections are lists, and what is left out gets its default. */
export type DriverSnapshot = { readonly [wire: string]: DriverValue };

/** A number that arrives in Python as a float, whatever its value. */
export class Float {
  readonly #value: number;

  constructor(value: number) {
    this.#value = value;
  }

  toJSON(): { readonly f: string } {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, this.#value);
    return { f: bytes.toHex() };
  }
}

/** A number that arrives in Python as a scalar of numpy. */
export class NumpyScalar {
  readonly #type: string;
  readonly #value: number;

  constructor(type: "int32" | "int64" | "float32" | "float64", value: number) {
    this.#type = type;
    this.#value = value;
  }

  toJSON(): { readonly np: readonly [string, number] } {
    return { np: [this.#type, this.#value] };
  }
}

/** Encodes a request. */
export function stringify(request: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(request, (key, value: unknown) => {
    if (typeof value === "bigint") return { i: value.toString() };
    if (value instanceof Uint8Array) return { b: value.toHex() };
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw new RangeError(`Cannot send ${key}: ${value} has to be a Float`);
    }
    return value;
  });
}

/** Decodes an answer; ints beyond 2^53 come as `bigint`, floats as numbers. */
export function parse(line: string): unknown {
  return JSON.parse(line, (_, value: unknown) => {
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value);
    const [entry] = entries;
    if (entry === undefined || entries.length > 1 || typeof entry[1] !== "string") return value;
    const [tag, content] = entry;
    if (tag === "f") return new DataView(Uint8Array.fromHex(content).buffer).getFloat64(0);
    if (tag === "i") return BigInt(content);
    if (tag === "b") return Uint8Array.fromHex(content);
    return value;
  });
}

/**
 * Converts a snapshot for Python.
 *
 * Values at their default are left out: msgspec omits a float by identity, so a 0.0 that was sent
 * would be written where Python's own default is not.
 *
 * @throws {TypeError} If the snapshot holds what SGLang's module has no place for.
 */
export function toDriver(snapshot: LoadSnapshot): DriverSnapshot {
  if (snapshot.extra !== null) throw new TypeError("Cannot give Python a snapshot with extra keys");
  const result: Record<string, DriverValue> = {};
  for (const { name, wire, type } of CORE_FIELDS) {
    const value = snapshot[name];
    if (value !== null && !Object.is(value, 0)) result[wire] = toDriverValue(type, value);
  }
  for (const { name, wire, fields } of SECTIONS) {
    const section = snapshot[name];
    if (section === null) continue;
    if (section.extra !== null || section.missing !== 0) {
      throw new TypeError(`Cannot give Python the section ${name}: longer or shorter than its own`);
    }
    const values: Readonly<Record<string, unknown>> = { ...section };
    result[wire] = fields.map(({ name, type }) => toDriverValue(type, values[name]));
  }
  return result;
}

/** Takes a snapshot as it is when it has Python's form already. */
export function asDriver(snapshot: LoadSnapshot | DriverSnapshot): DriverSnapshot {
  return isLoadSnapshot(snapshot) ? toDriver(snapshot) : snapshot;
}

function isLoadSnapshot(snapshot: LoadSnapshot | DriverSnapshot): snapshot is LoadSnapshot {
  return "dpRank" in snapshot;
}

function toDriverValue(type: FieldType, value: unknown): DriverValue {
  if (type === "float") return new Float(value as number);
  if (type === "floats") return (value as readonly number[]).map((item) => new Float(item));
  return value as number | string;
}

/**
 * Converts a whole snapshot of Python's.
 *
 * @throws {TypeError} If it has other fields than the table: then SGLang's module has moved on.
 */
export function fromDriver(values: DriverSnapshot): LoadSnapshot {
  const rest = new Map(Object.entries(values));
  const take = (wire: string): DriverValue => {
    const value = rest.get(wire);
    if (value === undefined) throw new TypeError(`SGLang's snapshot has no ${wire}`);
    rest.delete(wire);
    return value;
  };
  const init: Record<string, DriverValue> = {};
  for (const { name, wire } of CORE_FIELDS) init[name] = take(wire);
  for (const { name, wire, fields } of SECTIONS) {
    const section = take(wire);
    init[name] = section === null ? null : sectionFromDriver(name, fields, section);
  }
  if (rest.size > 0) throw new TypeError(`SGLang's snapshot also has ${[...rest.keys()]}`);
  // The table has just vouched for every name.
  return createLoadSnapshot(init as LoadSnapshotInit);
}

function sectionFromDriver(
  name: string,
  fields: readonly { readonly name: string }[],
  values: DriverValue,
): Record<string, DriverValue> {
  if (!Array.isArray(values) || values.length !== fields.length) {
    throw new TypeError(`SGLang's section ${name} has other fields: ${JSON.stringify(values)}`);
  }
  return Object.fromEntries(fields.map((field, index) => [field.name, values[index]]));
}
