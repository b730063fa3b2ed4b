/**
 * What Python would do with a pickle's names: make an object, set its state, call a function.
 *
 * Here each is one of a few known forms, recognized by its parts, and nothing is called.
 */

import { type FieldValues, noValues } from "./field_values.ts";
import { KV_FIELDS, kvFieldNumber } from "./fields.ts";
import { Dtype } from "./numpy_scalar.ts";
import type { PickleInput } from "./pickle_input.ts";
import {
  DTYPE,
  ENCODE,
  kindOf,
  KV_METRICS,
  PickleBytes,
  PickleDict,
  PickleGlobal,
  PickleObject,
  PickleTuple,
  type PickleValue,
  REBUILD,
  SCALAR,
  shown,
} from "./pickle_values.ts";

/** `NEWOBJ`: an object of a class and no arguments. */
export function makeObject(
  target: PickleValue,
  args: PickleValue,
  input: PickleInput,
): PickleObject {
  if (target !== KV_METRICS || !(args instanceof PickleTuple) || args.items.length > 0) {
    input.refuse("call", `an object of ${kindOf(target)}`);
  }
  return new PickleObject(null);
}

/** `REDUCE`: a call. */
export function callGlobal(
  target: PickleValue,
  args: PickleValue,
  input: PickleInput,
): PickleValue {
  if (!(target instanceof PickleGlobal)) input.refuse("call", `a call of ${kindOf(target)}`);
  if (!(args instanceof PickleTuple)) {
    input.refuse("call", `${target.name} called with ${kindOf(args)}`);
  }
  const { items } = args;
  if (target === KV_METRICS) return new PickleObject(fieldsInOrder(items, input));
  if (target === REBUILD && items.length === 2 && items[0] === KV_METRICS) {
    if (items[1] instanceof PickleDict) return new PickleObject(items[1].take());
  }
  if (target === SCALAR && items.length === 2) return scalar(items[0]!, items[1]!, input);
  if (target === DTYPE && items.length === 3) return dtype(items, input);
  if (target === ENCODE && items.length === 2 && items[1] === "latin1") {
    if (typeof items[0] === "string") return latin1(items[0], input);
  }
  const kinds = items.map(kindOf).join(", ");
  return input.refuse("call", shown(`${target.name} called with (${kinds})`));
}

/** `BUILD`: the state of the object, or of a dtype. */
export function setState(target: PickleValue, state: PickleValue, input: PickleInput): void {
  if (target instanceof PickleObject && target.values === null) {
    const values = stateOf(state);
    if (values === null) input.refuse("build", `${kindOf(state)} as a state`);
    target.values = values;
  } else if (target instanceof Dtype && !target.isSet) {
    if (!isDtypeState(state) || !target.setOrder(state.items[1])) {
      input.refuse("numpy", "a dtype of an unknown form");
    }
  } else {
    input.refuse("build", `state of ${kindOf(target)}`);
  }
}

/** `SETITEMS`: keys and values by turns. Other keys may hold plain values, which are dropped. */
export function fillDict(
  target: PickleValue,
  items: readonly PickleValue[],
  input: PickleInput,
): void {
  if (!(target instanceof PickleDict)) input.refuse("dict", `items of ${kindOf(target)}`);
  if (target.isDone) input.refuse("dict", "items of a dict that is done");
  if (items.length % 2 !== 0) input.refuse("dict", "a key without a value");
  const values = target.take();
  let seen = 0;
  for (let n = 0; n < items.length; n += 2) {
    const key = items[n]!;
    const value = items[n + 1]!;
    if (typeof key !== "string") input.refuse("dict", `${kindOf(key)} as a key`);
    const field = kvFieldNumber(key);
    if (field < 0) {
      if (!isPlain(value)) input.refuse("value", `${kindOf(value)} in ${shown(key)}`);
      continue;
    }
    if ((seen & (1 << field)) !== 0) input.refuse("dict", `${key} twice`);
    seen |= 1 << field;
    values[field] = fieldValue(value, key, input);
  }
}

/** What a struct without keywords sends: the fields in their order, later ones behind. */
function fieldsInOrder(items: readonly PickleValue[], input: PickleInput): FieldValues {
  const values = noValues();
  items.forEach((value, n) => {
    const wire = KV_FIELDS[n]?.wire;
    if (wire !== undefined) values[n] = fieldValue(value, wire, input);
    else if (!isPlain(value)) input.refuse("value", `${kindOf(value)} in field ${n}`);
  });
  return values;
}

function fieldValue(value: PickleValue, name: string, input: PickleInput): number | null {
  if (typeof value === "number" || value === null) return value;
  // Python counts with booleans as well.
  if (typeof value === "boolean") return Number(value);
  return input.refuse("value", `${kindOf(value)} in ${name}`);
}

function isPlain(value: PickleValue): boolean {
  return typeof value !== "object" || value === null || value instanceof PickleBytes;
}

/** A dict, or what Python makes of an object with slots: None and a dict. */
function stateOf(state: PickleValue): FieldValues | null {
  const dict = state instanceof PickleTuple && state.items.length === 2 && state.items[0] === null
    ? state.items[1]
    : state;
  return dict instanceof PickleDict ? dict.take() : null;
}

/** A dtype's first form: its code, and two flags that say how to copy it. */
function dtype(items: readonly PickleValue[], input: PickleInput): Dtype {
  const [code, align, copy] = items;
  // Older releases of numpy write the flags as 0 and 1.
  const isUsual = (align === false || align === 0) && (copy === true || copy === 1);
  if (typeof code !== "string" || !isUsual) input.refuse("numpy", "a dtype of an unknown form");
  return Dtype.of(code) ?? input.refuse("numpy", `dtype ${shown(code)}`);
}

/** A dtype's state: a version, the byte order, and what only arrays of records have. */
const DTYPE_STATE: readonly PickleValue[] = [3, null, null, null, null, -1, -1, 0];

function isDtypeState(state: PickleValue): state is PickleTuple {
  if (!(state instanceof PickleTuple) || state.items.length !== DTYPE_STATE.length) return false;
  for (let n = 0; n < DTYPE_STATE.length; n++) {
    if (n !== 1 && state.items[n] !== DTYPE_STATE[n]) return false;
  }
  return true;
}

function scalar(type: PickleValue, bytes: PickleValue, input: PickleInput): number {
  if (!(type instanceof Dtype) || !(bytes instanceof PickleBytes)) {
    return input.refuse("numpy", `a scalar of ${kindOf(type)} and ${kindOf(bytes)}`);
  }
  const value = type.read(bytes.letters);
  if (value === "inexact") return input.refuse("integer", "an integer beyond 2^53");
  if (value === "unfit") return input.refuse("numpy", "bytes that do not fit their dtype");
  return value;
}

/** Protocol 2 writes bytes as text of which each letter is one byte. */
function latin1(text: string, input: PickleInput): PickleBytes {
  for (let n = 0; n < text.length; n++) {
    if (text.charCodeAt(n) > 0xff) input.refuse("text", "a letter that is no byte");
  }
  return new PickleBytes(text);
}
