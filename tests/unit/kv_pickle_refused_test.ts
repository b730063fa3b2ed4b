/** Pickles made to harm, and others that are no KvMetrics: each is refused by its kind. */

import assert from "node:assert/strict";
import { type PickleRefusal, PickleRefusedError } from "../../src/errors.ts";
import { decodeKvMetrics } from "../../src/kv_metrics/codec.ts";
import * as p from "../support/pickle.ts";

const { OP } = p;
const KEY = p.text("kv_active_blocks");
const WHOLE = p.pickle(4, p.kvMetrics([KEY, p.int(512)]));

function errorOf(pickle: Uint8Array): PickleRefusedError {
  try {
    decodeKvMetrics(pickle);
  } catch (error) {
    assert(error instanceof PickleRefusedError, String(error));
    return error;
  }
  assert.fail(`decoded: ${pickle.subarray(0, 100).toHex()}`);
}

/** Asserts the kind of a refusal and what it names. */
function refuses(pickle: Uint8Array, reason: PickleRefusal, what: RegExp | string): void {
  const error = errorOf(pickle);
  assert.equal(error.reason, reason, error.message);
  if (typeof what === "string") assert.equal(error.what, what);
  else assert.match(error.what, what);
}

/** A field of the object with this value. */
function withValue(value: p.Code): p.Code {
  return p.pickle(2, p.kvMetrics([KEY, value]));
}

Deno.test("calls of what runs commands are refused by name, wherever they stand", () => {
  const names: readonly (readonly [module: string, name: string])[] = [
    ["os", "system"],
    ["posix", "system"],
    ["nt", "system"],
    ["subprocess", "Popen"],
    ["builtins", "eval"],
    ["builtins", "exec"],
    ["__builtin__", "eval"],
    ["builtins", "getattr"],
    ["importlib", "import_module"],
    ["copyreg", "_reconstructor"],
    ["numpy.core.multiarray", "_reconstruct"],
    ["numpy", "load"],
    ["msgspec._utils", "_eval_type"],
    ["_codecs", "decode"],
    ["sglang.srt.utils", "kill_process_tree"],
  ];
  for (const [module, name] of names) {
    for (const function_ of [p.global(module, name), p.stackGlobal(module, name)]) {
      const harm = p.reduce(function_, p.text("id"));
      for (const protocol of [2, 3, 4, 5]) {
        refuses(p.pickle(protocol, harm), "global", `${module}.${name}`);
      }
      refuses(p.framed(4, harm), "global", `${module}.${name}`);
      refuses(withValue(harm), "global", `${module}.${name}`);
      refuses(p.pickle(2, p.kvMetrics([harm, p.int(1)])), "global", `${module}.${name}`);
      refuses(p.pickle(2, p.OBJECT, harm, OP.BUILD), "global", `${module}.${name}`);
      refuses(p.pickle(2, harm, p.kvMetrics()), "global", `${module}.${name}`);
    }
  }
});

Deno.test("a refusal tells the place of the instruction, and its text names it", () => {
  const error = errorOf(p.pickle(2, p.reduce(p.global("posix", "system"), p.text("id"))));
  assert.equal(error.offset, 2);
  assert.equal(error.message, "Cannot decode KvMetrics: posix.system at byte 2 (global)");
  assert.equal(error.name, "PickleRefusedError");
  assert.equal(errorOf(p.join(WHOLE, OP.STOP)).offset, WHOLE.length);
});

Deno.test("what an error shows is short, and cannot forge a line", () => {
  const { what } = errorOf(p.pickle(4, p.stackGlobal("a\n\u001b[2Jb\u202e", "x".repeat(200))));
  assert.match(what, /^a\\u000a\\u001b\[2Jb\\u202e\.x+\.\.\.$/);
  assert(what.length < 130);
});

Deno.test("the class is taken from any module of SGLang, and from no other", () => {
  const from = (module: string, name = "KvMetrics") =>
    p.pickle(4, p.stackGlobal(module, name), OP.EMPTY_TUPLE, OP.NEWOBJ);
  for (const module of ["sglang.x", "sglang.srt.a_1.b", "sglang.srt.managers.scheduler"]) {
    decodeKvMetrics(from(module));
  }
  const others = [
    "sglang",
    "sglang.",
    "sglangx.a",
    "xsglang.a",
    "os",
    "",
    "sglang/a",
    "sglang.a b",
  ];
  for (const module of others) refuses(from(module), "global", `${module}.KvMetrics`);
  for (
    const name of ["KvMetrics.__init__", "KvMetricsX", "kvmetrics", "Scheduler", "", "__dict__"]
  ) {
    refuses(from("sglang.a", name), "global", `sglang.a.${name}`);
  }
  // Two splits of one path are two names.
  refuses(p.pickle(4, p.stackGlobal("numpy.core", "multiarray.scalar")), "global", /scalar/);
});

Deno.test("a name that is no text is refused", () => {
  const one = p.pickle(4, p.int(1), p.text("KvMetrics"), OP.STACK_GLOBAL);
  refuses(one, "global", "a name of number and str");
  refuses(p.pickle(4, p.CLASS, OP.NONE, OP.STACK_GLOBAL), "global", "a name of KvMetrics and None");
  refuses(p.pickle(2, p.global("m".repeat(300), "x")), "global", /^a name beyond 255 bytes$/);
});

const FOREIGN: Readonly<Record<string, p.Code>> = {
  INST: p.raw("i", ...new TextEncoder().encode("posix\nsystem\n")),
  OBJ: OP.OBJ,
  EXT1: p.raw(0x82, 1),
  EXT2: p.raw(0x83, 1, 0),
  EXT4: p.raw(0x84, 1, 0, 0, 0),
  PERSID: p.raw("P", 0x31, 0x0a),
  BINPERSID: OP.BINPERSID,
  POP: OP.POP,
  POP_MARK: OP.POP_MARK,
  DUP: OP.DUP,
  EMPTY_LIST: OP.EMPTY_LIST,
  LIST: OP.LIST,
  APPEND: OP.APPEND,
  APPENDS: OP.APPENDS,
  DICT: OP.DICT,
  TUPLE1: OP.TUPLE1,
  NEWOBJ_EX: OP.NEWOBJ_EX,
  EMPTY_SET: OP.EMPTY_SET,
  ADDITEMS: OP.ADDITEMS,
  FROZENSET: OP.FROZENSET,
  NEXT_BUFFER: OP.NEXT_BUFFER,
  READONLY_BUFFER: OP.READONLY_BUFFER,
  INT: p.raw("I", 0x31, 0x0a),
  LONG: p.raw("L", 0x31, 0x4c, 0x0a),
  FLOAT: p.raw("F", 0x31, 0x0a),
  STRING: p.raw("S", 0x27, 0x27, 0x0a),
  UNICODE: p.raw("V", 0x0a),
  PUT: p.raw("p", 0x30, 0x0a),
  GET: p.raw("g", 0x30, 0x0a),
  BINSTRING: p.raw("T", 1, 0, 0, 0, 0x61),
  SHORT_BINSTRING: p.raw("U", 1, 0x61),
  BINBYTES: p.raw("B", 1, 0, 0, 0, 0x61),
  BINUNICODE8: p.raw(0x8d, 1, 0, 0, 0, 0, 0, 0, 0, 0x61),
  BINBYTES8: p.raw(0x8e, 1, 0, 0, 0, 0, 0, 0, 0, 0x61),
  BYTEARRAY8: p.raw(0x96, 1, 0, 0, 0, 0, 0, 0, 0, 0x61),
  "opcode 0x00": p.raw(0x00),
  "opcode 0xff": p.raw(0xff),
};

for (const [name, code] of Object.entries(FOREIGN)) {
  Deno.test(`${name} is refused by name, wherever it stands`, () => {
    refuses(p.pickle(2, code), "opcode", name);
    refuses(withValue(code), "opcode", name);
    refuses(p.pickle(2, p.kvMetrics(), code), "opcode", name);
    refuses(p.pickle(2, p.CLASS, p.text("id"), OP.EMPTY_TUPLE, code), "opcode", name);
  });
}

Deno.test("only the state of the object and of a dtype can be set, and only once", () => {
  const state = p.dict([KEY, p.int(1)]);
  const targets: readonly (readonly [p.Code, string])[] = [
    [p.CLASS, "state of KvMetrics"],
    [p.global("numpy", "dtype"), "state of numpy.dtype"],
    [p.global("_codecs", "encode"), "state of _codecs.encode"],
    [p.text("x"), "state of str"],
    [p.int(1), "state of number"],
    [OP.NONE, "state of None"],
    [OP.EMPTY_TUPLE, "state of tuple"],
    [p.kvMetrics(), "state of an object"],
    [p.dtype("i8", "<"), "state of a dtype"],
  ];
  for (const [target, what] of targets) {
    refuses(p.pickle(2, target, OP.NONE, OP.BUILD), "build", what);
    // A dict is at hand but once.
    if (target !== targets[7]![0]) refuses(p.pickle(2, target, state, OP.BUILD), "build", what);
  }
  for (
    const [wrong, kind] of [[OP.NONE, "None"], [p.CLASS, "KvMetrics"], [
      p.text("x"),
      "str",
    ]] as const
  ) {
    refuses(p.pickle(2, p.OBJECT, wrong, OP.BUILD), "build", `${kind} as a state`);
  }
  const pair = p.pickle(2, p.OBJECT, p.int(1), state, OP.TUPLE2, OP.BUILD);
  refuses(pair, "build", "tuple as a state");
});

Deno.test("a call is one of the known ones, with the arguments that belong to it", () => {
  const rebuild = p.global("msgspec._utils", "rebuild");
  const encode = p.global("_codecs", "encode");
  const dtype = p.global("numpy", "dtype");
  const dict = p.dict([KEY, p.int(1)]);
  const calls: readonly (readonly [p.Code, string])[] = [
    [p.reduce(rebuild, p.CLASS), "msgspec._utils.rebuild called with (KvMetrics)"],
    [p.reduce(rebuild, rebuild, dict), "called with (msgspec._utils.rebuild, dict)"],
    [
      p.reduce(rebuild, p.CLASS, p.int(1)),
      "msgspec._utils.rebuild called with (KvMetrics, number)",
    ],
    [p.reduce(rebuild, p.CLASS, dict, p.int(1)), "(KvMetrics, dict, number)"],
    [p.reduce(encode, p.text("a"), p.text("rot13")), "_codecs.encode called with (str, str)"],
    [p.reduce(encode, p.int(1), p.text("latin1")), "_codecs.encode called with (number, str)"],
    [p.reduce(dtype, p.text("i8")), "numpy.dtype called with (str)"],
    [p.reduce(p.text("x"), p.int(1)), "a call of str"],
    [p.reduce(p.int(1)), "a call of number"],
    [p.join(p.CLASS, OP.NONE, OP.REDUCE), "KvMetrics called with None"],
  ];
  for (const [call, what] of calls) {
    const error = errorOf(p.pickle(2, call));
    assert.equal(error.reason, "call");
    assert(error.what.endsWith(what), error.what);
  }
});

Deno.test("an object is made of the class alone, without arguments, and once", () => {
  const made = (target: p.Code, args: p.Code) => p.pickle(2, target, args, OP.NEWOBJ);
  refuses(made(p.global("numpy", "dtype"), OP.EMPTY_TUPLE), "call", "an object of numpy.dtype");
  refuses(made(p.text("x"), OP.EMPTY_TUPLE), "call", "an object of str");
  refuses(made(p.CLASS, p.tuple(p.int(1))), "call", "an object of KvMetrics");
  refuses(made(p.CLASS, OP.NONE), "call", "an object of KvMetrics");
  refuses(withValue(p.OBJECT), "call", "a second object");
  refuses(p.pickle(2, p.OBJECT, p.reduce(p.CLASS)), "call", "a second object");
});

Deno.test("the memo is filled in order and read where something is", () => {
  const put = (index: number) => p.raw("q", index);
  const get = (index: number) => p.raw("h", index);
  refuses(p.pickle(2, p.text("a"), put(1)), "memo", "memo 1 out of order");
  refuses(p.pickle(2, p.text("a"), put(0), put(0)), "memo", "memo 0 out of order");
  refuses(p.pickle(2, p.text("a"), p.raw("r", 1, 0, 0, 0)), "memo", "memo 1 out of order");
  refuses(p.pickle(2, p.text("a"), p.raw("r", 255, 255, 255, 255)), "memo", /4294967295/);
  refuses(p.pickle(2, get(0)), "memo", "memo 0 is not there");
  refuses(p.pickle(2, p.text("a"), put(0), get(1)), "memo", "memo 1 is not there");
  refuses(p.pickle(2, p.raw("j", 255, 255, 255, 255)), "memo", "memo 4294967295 is not there");
  refuses(p.pickle(2, put(0)), "stack", "nothing on the stack");
  refuses(p.pickle(2, p.text("a"), OP.MARK, OP.MEMOIZE), "stack", "nothing on the stack");
  refuses(p.pickle(2, OP.NONE, p.repeat(513, OP.MEMOIZE)), "memo", "more than 512 in the memo");
});

Deno.test("what the memo holds cannot be changed behind its user's back", () => {
  const dict = p.join(OP.EMPTY_DICT, p.raw("q", 0));
  const later = p.join(p.raw("h", 0), KEY, p.int(7), OP.SETITEM);
  refuses(p.pickle(2, p.OBJECT, dict, OP.BUILD, later), "dict", "items of a dict that is done");
  const rebuilt = p.reduce(p.global("msgspec._utils", "rebuild"), p.CLASS, dict);
  refuses(p.pickle(2, rebuilt, later), "dict", "items of a dict that is done");
  const filled = p.join(dict, KEY, p.int(1), OP.SETITEM, KEY, p.int(2), OP.SETITEM);
  refuses(p.pickle(2, filled), "dict", "items of a dict that is done");
});

Deno.test("a chain and a nest of the memo are refused before they grow", () => {
  // Each level holds the one before it twice: 2^n values, were it spelled out.
  const level = (n: number) => p.join(p.raw("h", n), p.raw("h", n), OP.TUPLE2, p.raw("q", n + 1));
  const bomb = p.pickle(
    2,
    p.text("a"),
    p.raw("q", 0),
    ...Array.from({ length: 200 }, (_, n) => level(n)),
  );
  refuses(bomb, "depth", "a tuple in a tuple");
  const chain = Array.from({ length: 200 }, (_, n) => p.join(p.raw("h", n), p.raw("q", n + 1)));
  refuses(p.pickle(2, p.text("a"), p.raw("q", 0), ...chain), "stack", /more than 128/);
});

Deno.test("the dict is one, of text and plain values, each field once", () => {
  refuses(p.pickle(2, OP.EMPTY_DICT, OP.EMPTY_DICT), "dict", "a second dict");
  refuses(p.pickle(2, p.kvMetrics([p.int(1), p.int(1)])), "dict", "number as a key");
  refuses(p.pickle(2, p.kvMetrics([OP.NONE, p.int(1)])), "dict", "None as a key");
  const twice = p.pickle(2, p.kvMetrics([KEY, OP.NONE], [KEY, p.int(1)]));
  refuses(twice, "dict", "kv_active_blocks twice");
  const odd = p.pickle(2, p.OBJECT, OP.EMPTY_DICT, OP.MARK, KEY, OP.SETITEMS);
  refuses(odd, "dict", "a key without a value");
  refuses(p.pickle(2, p.OBJECT, KEY, p.int(1), OP.SETITEM), "dict", "items of an object");
});

Deno.test("keys that mean something in JavaScript mean nothing", () => {
  const keys = ["__proto__", "constructor", "prototype", "toString", "requestActiveSlots"];
  const entries = keys.map((key) => [p.text(key), p.int(7)] as const);
  const message = decodeKvMetrics(p.pickle(4, p.kvMetrics(...entries, [KEY, p.int(512)])));
  assert.equal(message.kvActiveBlocks, 512);
  assert.equal(message.requestActiveSlots, null);
  assert.equal(Object.getPrototypeOf(message), Object.prototype);
  assert.equal(Object.keys(message).length, 8);
  assert.equal(({} as Record<string, unknown>)["kvActiveBlocks"], undefined);
  refuses(p.pickle(4, p.kvMetrics([p.text("__proto__"), p.CLASS])), "value", /in __proto__$/);
});

Deno.test("a field holds a number or None", () => {
  const wrong: readonly (readonly [p.Code, string])[] = [
    [p.text("7"), "str"],
    [p.bytes(7), "bytes"],
    [p.CLASS, "KvMetrics"],
    [OP.EMPTY_TUPLE, "tuple"],
    [p.tuple(p.int(1)), "tuple"],
    [p.dtype("i8", "<"), "a dtype"],
  ];
  for (const [value, kind] of wrong) {
    refuses(withValue(value), "value", `${kind} in kv_active_blocks`);
    refuses(p.pickle(2, p.reduce(p.CLASS, value)), /tuple/.test(kind) ? "depth" : "value", /./);
  }
  refuses(p.pickle(2, p.kvMetrics([p.text("later"), p.tuple()])), "value", "tuple in later");
});

Deno.test("the end is one object and nothing else", () => {
  refuses(p.pickle(2), "result", "nothing at the end");
  refuses(p.pickle(2, p.int(1)), "result", "number at the end");
  refuses(p.pickle(2, p.CLASS), "result", "KvMetrics at the end");
  refuses(p.pickle(2, p.dict([KEY, p.int(1)])), "result", "dict at the end");
  refuses(p.pickle(2, p.scalar("i1", "|", 1)), "result", "number at the end");
  refuses(p.pickle(2, OP.NONE, p.kvMetrics()), "result", "more than one value at the end");
  refuses(p.pickle(2, OP.MARK, p.kvMetrics()), "result", "more than one value at the end");
});

Deno.test("more cannot be taken from the stack than lies on it, down to the mark", () => {
  for (const code of [OP.TUPLE2, OP.TUPLE3, OP.REDUCE, OP.NEWOBJ, OP.BUILD, OP.STACK_GLOBAL]) {
    refuses(p.pickle(2, code), "stack", "nothing on the stack");
    refuses(p.pickle(2, p.OBJECT, OP.MARK, code), "stack", "nothing on the stack");
  }
  for (const code of [OP.TUPLE, OP.SETITEMS]) refuses(p.pickle(2, code), "stack", "no MARK");
  refuses(p.pickle(2, OP.MARK, OP.SETITEMS), "stack", "nothing on the stack");
  refuses(p.pickle(2, p.int(1), OP.SETITEM), "stack", "nothing on the stack");
});

Deno.test("the protocol comes first, once, and is one from 2 to 5", () => {
  for (const protocol of [0, 1, 6, 255]) {
    refuses(p.pickle(protocol, p.kvMetrics()), "protocol", `protocol ${protocol}`);
  }
  refuses(p.pickle(2, p.raw(0x80, 2), p.kvMetrics()), "protocol", "a protocol within");
});

Deno.test("a frame is the whole rest, at the start", () => {
  const body = p.join(p.kvMetrics(), OP.STOP);
  for (const length of [0, 1, body.length - 1, body.length + 1, 2 ** 32 + body.length, 2 ** 53]) {
    const wrong = p.join(p.raw(0x80, 4, 0x95), p.uint(8, length), body);
    refuses(wrong, "frame", "a frame that is not the rest");
  }
  refuses(p.pickle(4, p.kvMetrics(), p.raw(0x95), p.uint(8, 1)), "frame", "a frame within");
  const twice = p.join(
    p.raw(0x95),
    p.uint(8, 9 + body.length),
    p.raw(0x95),
    p.uint(8, body.length),
  );
  refuses(p.join(p.raw(0x80, 4), twice, body), "frame", "a frame within");
});

Deno.test("something behind the end is refused, whatever it is", () => {
  for (const byte of [0x00, 0x2e, 0x80, 0xff]) {
    const pickle = p.join(p.pickle(2, p.kvMetrics()), p.raw(byte));
    refuses(pickle, "trailing", "1 bytes behind the end");
  }
  const two = p.join(p.pickle(2, p.kvMetrics()), p.pickle(2, p.kvMetrics()));
  refuses(two, "trailing", /bytes behind the end/);
});

Deno.test("text is UTF-8, and a protocol-2 byte is a letter below 256", () => {
  for (const content of [[0xff], [0xc3], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xc0, 0x80]]) {
    refuses(p.pickle(4, p.raw(0x8c, content.length, ...content)), "text", "text that is not UTF-8");
  }
  const encode = p.reduce(p.global("_codecs", "encode"), p.longText("aé"), p.text("latin1"));
  refuses(withValue(encode), "value", "bytes in kv_active_blocks");
  const wide = p.reduce(p.global("_codecs", "encode"), p.longText("Ā"), p.text("latin1"));
  refuses(withValue(wide), "text", "a letter that is no byte");
});
