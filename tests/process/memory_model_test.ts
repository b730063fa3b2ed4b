/**
 * What loadslots relies on in this Deno: that memory mapped by FFI is what JavaScript reads and
 * writes, and that other processes' stores are seen there, whole and in their order. If one of these
 * tests fails with a newer Deno, reading without a lock has to be thought over again.
 */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE } from "../../src/slotfile/libc.ts";
import { Child } from "../support/child.ts";
import { must, raw, RawFile } from "../support/raw_libc.ts";
import { SlotPath } from "../support/slot_path.ts";
import { until } from "../support/wait.ts";

const SIDE = fileURLToPath(new URL("./fixtures/memory_side.ts", import.meta.url));
const BYTES = 64 * 1024;

/** A file in memory, mapped here. */
class Shared implements Disposable {
  readonly file: SlotPath = new SlotPath();
  readonly base: bigint;
  readonly buffer: ArrayBuffer;

  constructor() {
    this.file.put(new Uint8Array(BYTES));
    using open = new RawFile(this.file.path);
    const protection = PROT_READ | PROT_WRITE;
    this.base = raw.mmap(0n, BigInt(BYTES), protection, MAP_SHARED, open.fd, 0n);
    assert.notEqual(this.base, MAP_FAILED);
    this.buffer = viewAt(this.base, BYTES);
  }

  [Symbol.dispose](): void {
    this.buffer.transfer(0);
    must(raw.munmap(this.base, BigInt(BYTES)), "munmap");
    this.file[Symbol.dispose]();
  }
}

function viewAt(base: bigint, byteLength: number): ArrayBuffer {
  return Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(base)!, byteLength);
}

/** A process that maps the same file. */
async function sideOf(shared: Shared, role: string, ...args: readonly string[]): Promise<Child> {
  const child = Child.deno(["--allow-ffi", "--allow-read", SIDE, role, shared.file.path, ...args]);
  assert.equal(await child.line(), "ready");
  return child;
}

Deno.test("a view of mapped memory is that memory, not a copy of it", () => {
  using shared = new Shared();
  const words = new Int32Array(shared.buffer);
  const again = new Int32Array(viewAt(shared.base, 16));
  words[1] = 0x01020304;
  assert.equal(again[1], 0x01020304);
  assert.deepEqual(shared.file.bytes().subarray(4, 8), Uint8Array.of(4, 3, 2, 1));
  shared.file.patch(8, Uint8Array.of(7, 0, 0, 0));
  assert.deepEqual([words[2], again[2]], [7, 7]);
  assert.equal(Deno.UnsafePointer.value(Deno.UnsafePointer.of(words)), shared.base);
  again.buffer.transfer(0);
});

Deno.test("a view is valid for as long as memory is mapped, whatever is collected meanwhile", () => {
  using shared = new Shared();
  const words = new Int32Array(shared.buffer);
  let garbage = 0;
  for (let round = 0; round < 200; round++) {
    words[round] = round;
    // Enough for many collections, small and large.
    for (let n = 0; n < 20; n++) garbage += new Uint8Array(256 * 1024).fill(round).at(-1)!;
  }
  assert.equal(garbage, 20 * Array.from({ length: 200 }, (_, n) => n).reduce((a, b) => a + b));
  assert.deepEqual([...words.subarray(0, 200)], Array.from({ length: 200 }, (_, n) => n));
});

Deno.test("a view that was given back is empty, and touches nothing any more", () => {
  using shared = new Shared();
  const buffer = viewAt(shared.base, 16);
  const words = new Int32Array(buffer);
  words[0] = 5;
  const taken = buffer.transfer(0);
  assert.deepEqual([taken.byteLength, buffer.detached, words.length], [0, true, 0]);
  words[0] = 6;
  assert.equal(words[0], undefined);
  assert.equal(new Int32Array(shared.buffer)[0], 5);
});

Deno.test("the address of bytes stays the same while they are referenced", () => {
  const bytes = new Uint8Array(4096).fill(9);
  const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes));
  let garbage = 0;
  for (let n = 0; n < 2000; n++) garbage += new Uint8Array(64 * 1024).length;
  assert.equal(garbage, 2000 * 64 * 1024);
  assert.equal(Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes)), address);
  assert.equal(new Uint8Array(viewAt(address, 4096))[4095], 9);
});

Deno.test("no increment of two processes is lost: atomics on mapped memory are the processor's", async () => {
  using shared = new Shared();
  const words = new Int32Array(shared.buffer);
  const count = 500_000;
  await using side = await sideOf(shared, "adds", `${count}`);
  await side.say("go");
  for (let n = 0; n < count; n++) Atomics.add(words, 0, 1);
  assert.equal(await side.line(), "done");
  assert.equal(words[0], 2 * count);
  let exchanged = 0;
  while (exchanged < 1000) {
    const now = Atomics.load(words, 0);
    if (Atomics.compareExchange(words, 0, now, now + 1) === now) exchanged++;
  }
  assert.equal(words[0], 2 * count + 1000);
});

Deno.test("another process's stores are seen without a lock, an atomic or a system call", async () => {
  using shared = new Shared();
  const words = new Int32Array(shared.buffer);
  await using side = await sideOf(shared, "answers");
  await side.say("go");
  for (let n = 1; n <= 1000; n++) {
    words[0] = n;
    // Plain loads in a loop that nothing interrupts: the compiler must not read once only.
    let turns = 0;
    while (words[1] !== n && turns < 1e9) turns++;
    assert.equal(words[1], n, `not seen in ${turns} turns`);
  }
  words[0] = -1;
  assert.equal(await side.line(), "done");
});

Deno.test("stores are seen in their order, as a copy without the lock needs it", {
  ignore: Deno.build.arch !== "x86_64",
}, async () => {
  using shared = new Shared();
  const words = new Int32Array(shared.buffer);
  await using side = await sideOf(shared, "counts");
  await side.say("go");
  await until("it counts", () => words[1] !== 0);
  let changes = 0;
  for (let n = 0; n < 5_000_000; n++) {
    // It stores the first, then the second, each a cache line for itself; these are read the other
    // way round. So the first can only be ahead.
    const second = words[32]!;
    const first = words[0]!;
    if (first < second) assert.fail(`${second} was seen before ${first}`);
    if (first !== second) changes++;
  }
  assert(changes > 0, "the other process stored meanwhile");
  words[64] = 1;
  assert.equal(await side.line(), "done");
});

Deno.test("memcpy and memcmp by address see what another process stores by memory", async () => {
  using shared = new Shared();
  const copy = new Uint8Array(1024);
  const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(copy));
  await using side = await sideOf(shared, "fills");
  for (let value = 1; value <= 50; value++) {
    await side.say(`${value}`);
    assert.equal(await side.line(), "filled");
    assert.notEqual(raw.memcmp(shared.base, address, 1024n), 0);
    raw.memcpy(address, shared.base, 1024n);
    assert(copy.every((byte) => byte === value));
    assert.equal(raw.memcmp(shared.base, address, 1024n), 0);
  }
});
