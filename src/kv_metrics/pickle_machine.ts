/**
 * The machine that pickle is written for, cut down to what a KvMetrics can be.
 *
 * It knows the instructions that Python's pickler emits for one, and refuses all others; what calls
 * may mean stands in pickle_calls.ts. Each step takes at least one byte and makes at most one
 * value, so the limit of a pickle's size also bounds time and memory.
 */

import { type FieldValues, noValues } from "./field_values.ts";
import { callGlobal, fillDict, makeObject, setState } from "./pickle_calls.ts";
import { PickleInput } from "./pickle_input.ts";
import * as op from "./pickle_opcodes.ts";
import {
  globalNamed,
  kindOf,
  PickleBytes,
  PickleDict,
  PickleObject,
  PickleTuple,
  type PickleValue,
  shown,
} from "./pickle_values.ts";

/** The deepest that marks are nested: a numpy dtype's state within the object's fields. */
const MAX_MARKS = 2;
/** Between two marks: the fields and their names, with room for fields of later releases. */
const MAX_STACK = 128;
/** Eight numpy scalars of different types fill a quarter of it. */
const MAX_MEMO = 512;

const EMPTY = new PickleTuple([]);

/** Reads one pickle. */
export class PickleMachine {
  readonly #input: PickleInput;
  readonly #memo: PickleValue[] = [];
  /** What lies on the stack since the last mark. */
  #stack: PickleValue[] = [];
  /** What lies below each mark. */
  readonly #below: PickleValue[][] = [];
  #hasDict = false;
  #hasObject = false;

  constructor(bytes: Uint8Array, view: DataView) {
    this.#input = new PickleInput(bytes, view);
  }

  /**
   * Reads the pickle.
   *
   * @returns The values of the object's fields.
   * @throws {PickleRefusedError} If it holds anything else than a KvMetrics.
   */
  run(): FieldValues {
    this.#header();
    for (;;) {
      const opcode = this.#input.opcode();
      if (opcode === op.STOP) return this.#result();
      this.#value(opcode);
    }
  }

  #header(): void {
    const input = this.#input;
    if (input.peek() !== op.PROTO) input.refuse("protocol", "no protocol");
    input.opcode();
    const protocol = input.byte();
    if (protocol < 2 || protocol > 5) input.refuse("protocol", `protocol ${protocol}`);
    if (input.peek() !== op.FRAME) return;
    input.opcode();
    const length = input.uint32();
    // Python begins a second frame, or leaves them, only far beyond the size of a KvMetrics.
    if (input.uint32() !== 0 || length !== input.rest) {
      input.refuse("frame", "a frame that is not the rest");
    }
  }

  /** Numbers, text and bytes. */
  #value(opcode: number): void {
    const input = this.#input;
    switch (opcode) {
      case op.SHORT_BINUNICODE:
        return this.#push(input.text(input.byte()));
      case op.BINUNICODE:
        return this.#push(input.text(input.uint32()));
      case op.BININT1:
        return this.#push(input.byte());
      case op.BININT2:
        return this.#push(input.uint16());
      case op.BININT:
        return this.#push(input.int32());
      case op.BINFLOAT:
        return this.#push(input.float64());
      case op.NONE:
        return this.#push(null);
      case op.NEWTRUE:
        return this.#push(true);
      case op.NEWFALSE:
        return this.#push(false);
      case op.LONG1:
        return this.#push(input.integer(input.byte()));
      case op.LONG4:
        return this.#push(input.integer(input.uint32()));
      case op.SHORT_BINBYTES:
        return this.#push(new PickleBytes(input.letters(input.byte())));
      default:
        return this.#container(opcode);
    }
  }

  /** Tuples, the dict and the memo. */
  #container(opcode: number): void {
    switch (opcode) {
      case op.MEMOIZE:
        return this.#put(this.#memo.length);
      case op.BINPUT:
        return this.#put(this.#input.byte());
      case op.LONG_BINPUT:
        return this.#put(this.#input.uint32());
      case op.BINGET:
        return this.#get(this.#input.byte());
      case op.LONG_BINGET:
        return this.#get(this.#input.uint32());
      case op.MARK:
        if (this.#below.length === MAX_MARKS) this.#input.refuse("depth", "a third MARK");
        this.#below.push(this.#stack);
        this.#stack = [];
        return;
      case op.EMPTY_TUPLE:
        return this.#push(EMPTY);
      case op.TUPLE2:
        return this.#tuple(this.#popPair());
      case op.TUPLE3:
        return this.#tuple(this.#popTriple());
      case op.TUPLE:
        return this.#tuple(this.#popMarked());
      case op.EMPTY_DICT:
        if (this.#hasDict) this.#input.refuse("dict", "a second dict");
        this.#hasDict = true;
        return this.#push(new PickleDict());
      case op.SETITEM:
        return this.#fill(this.#popPair());
      case op.SETITEMS:
        return this.#fill(this.#popMarked());
      default:
        return this.#meaning(opcode);
    }
  }

  /** Names, calls and states: what Python would execute. */
  #meaning(opcode: number): void {
    switch (opcode) {
      case op.STACK_GLOBAL: {
        const name = this.#pop();
        return this.#name(this.#pop(), name);
      }
      case op.GLOBAL: {
        const module = this.#input.line();
        return this.#name(module, this.#input.line());
      }
      case op.NEWOBJ: {
        const args = this.#pop();
        return this.#push(this.#onlyObject(makeObject(this.#pop(), args, this.#input)));
      }
      case op.REDUCE: {
        const args = this.#pop();
        const made = callGlobal(this.#pop(), args, this.#input);
        return this.#push(made instanceof PickleObject ? this.#onlyObject(made) : made);
      }
      case op.BUILD: {
        const state = this.#pop();
        return setState(this.#top(), state, this.#input);
      }
      case op.FRAME:
        return this.#input.refuse("frame", "a frame within");
      case op.PROTO:
        return this.#input.refuse("protocol", "a protocol within");
      default:
        return this.#input.refuse("opcode", op.refusedName(opcode));
    }
  }

  /** The end: one object, and nothing beside it or behind. */
  #result(): FieldValues {
    const result = this.#stack.at(-1);
    if (!(result instanceof PickleObject)) {
      this.#input.refuse("result", `${kindOf(result)} at the end`);
    }
    if (this.#stack.length > 1 || this.#below.length > 0) {
      this.#input.refuse("result", "more than one value at the end");
    }
    const { rest } = this.#input;
    if (rest > 0) {
      this.#input.opcode();
      this.#input.refuse("trailing", `${rest} bytes behind the end`);
    }
    // An object of Python's that has no attribute has no state either.
    return result.values ?? noValues();
  }

  #name(module: PickleValue, name: PickleValue): void {
    if (typeof module !== "string" || typeof name !== "string") {
      this.#input.refuse("global", `a name of ${kindOf(module)} and ${kindOf(name)}`);
    }
    this.#push(
      globalNamed(module, name) ?? this.#input.refuse("global", shown(`${module}.${name}`)),
    );
  }

  #onlyObject(object: PickleObject): PickleObject {
    if (this.#hasObject) this.#input.refuse("call", "a second object");
    this.#hasObject = true;
    return object;
  }

  #tuple(items: readonly PickleValue[]): void {
    for (const item of items) {
      if (item instanceof PickleTuple) this.#input.refuse("depth", "a tuple in a tuple");
    }
    this.#push(new PickleTuple(items));
  }

  #fill(items: readonly PickleValue[]): void {
    fillDict(this.#top(), items, this.#input);
  }

  #put(index: number): void {
    const top = this.#top();
    // Python's pickler numbers what it remembers from 0 on, without a gap, and each once.
    if (index !== this.#memo.length) this.#input.refuse("memo", `memo ${index} out of order`);
    if (index === MAX_MEMO) this.#input.refuse("memo", `more than ${MAX_MEMO} in the memo`);
    this.#memo.push(top);
  }

  #get(index: number): void {
    if (index >= this.#memo.length) this.#input.refuse("memo", `memo ${index} is not there`);
    this.#push(this.#memo[index]!);
  }

  #push(value: PickleValue): void {
    if (this.#stack.length === MAX_STACK) {
      this.#input.refuse("stack", `more than ${MAX_STACK} on the stack`);
    }
    this.#stack.push(value);
  }

  #top(): PickleValue {
    const top = this.#stack.at(-1);
    return top === undefined ? this.#underflow() : top;
  }

  #pop(): PickleValue {
    const top = this.#stack.pop();
    return top === undefined ? this.#underflow() : top;
  }

  #popPair(): [PickleValue, PickleValue] {
    const second = this.#pop();
    return [this.#pop(), second];
  }

  #popTriple(): [PickleValue, PickleValue, PickleValue] {
    const third = this.#pop();
    const second = this.#pop();
    return [this.#pop(), second, third];
  }

  #popMarked(): PickleValue[] {
    const items = this.#stack;
    this.#stack = this.#below.pop() ?? this.#input.refuse("stack", "no MARK");
    return items;
  }

  #underflow(): never {
    return this.#input.refuse("stack", "nothing on the stack");
  }
}
