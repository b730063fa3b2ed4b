/**
 * Keeps a mapped file that another process shrinks from killing this process.
 *
 * A load or a store on a page that lies wholly beyond the file's end raises SIGBUS, whose default
 * is death. Here a handler of that signal puts an anonymous page of zeros under the address when
 * it lies in a guarded mapping, and the instruction runs again; every other SIGBUS goes on to the
 * action that stood before. A signal handler cannot be JavaScript, so it is a page of machine code.
 */

import { DATA_BYTES, DATA_OFFSET, ENTRY_COUNT, machineCode } from "./bus_guard_code.ts";
import {
  type Libc,
  MAP_FAILED,
  MAP_PRIVATE_ANONYMOUS,
  PROT_EXEC,
  PROT_READ,
  PROT_WRITE,
} from "./libc.ts";

/** One guarded mapping. */
export interface MappingGuard {
  /**
   * Whether a page of the mapping was replaced by zeros. Such a page shows the file no more, not
   * even after the file has grown again, and what is stored there is lost: map the file anew.
   * Ask after a read or a store, on the thread that did it.
   */
  readonly tripped: boolean;
  /**
   * Ends the guard; twice is fine. Call it before `munmap`: the addresses may belong to another
   * mapping right afterwards, whose faults are not ours to hide.
   */
  release(): void;
}

const SIGBUS = 7;
const SA_SIGINFO = 0x4n;
const SA_ONSTACK = 0x0800_0000n;
const SA_RESTART = 0x1000_0000n;
const SA_NODEFER = 0x4000_0000n;

// struct sigaction of libc, in words of 8 bytes. glibc and musl have the same on x86_64 and
// aarch64: handler at 0, a mask of 128 bytes at 8, int flags at 136, restorer at 144.
const ACTION_HANDLER = 0;
const ACTION_MASK = 1;
const ACTION_FLAGS = 17;
const ACTION_WORDS = 19;

// The data, in words of 8 bytes. Word 0 must stay what it is in every release: see findTable().
/** The action that stood before, as libc writes it: word 0 is its handler. */
const PREVIOUS = 0;
const PAGE_SIZE = 20;
// Words 24 to 27 stay zero: for the kernel they are the default action.
/** Entries of two words: the range, and whether it tripped. */
const FIRST_ENTRY = 32;
const ENTRY_WORDS = 2;
const LAST_ENTRY = FIRST_ENTRY + ENTRY_COUNT * ENTRY_WORDS;

/** In place of the previous handler while it is not known; the machine code compares with it. */
const PENDING = 2n;

// A range is one word, so nobody ever sees half of one: the address in units of 4 KiB above bit
// 28, the length in such units below. A free entry is 0, a range of no length.
const UNIT_BITS = 12n;
const COUNT_BITS = 28n;
const ADDRESS_LIMIT = 1n << 48n;

/** How much of the code's beginning is the same in every release; see findTable(). */
const SIGNATURE_BYTES = 16;

/**
 * Guards a mapping against a shrinking file.
 *
 * The first guard of a process installs the handler, which then stays for good; it is found by
 * its bytes, so all workers and all copies of this module share it. A worker that is terminated
 * without a release keeps its entry taken.
 *
 * @param libc libc.
 * @param base The address that `mmap` returned.
 * @param byteLength The length of the mapping.
 * @returns The guard, or `null` if there can be none: another operating system or processor,
 * executable memory refused, or every entry taken. Then nothing stands between a shrinking file
 * and the process but a lock.
 * @throws {Deno.errors.NotCapable} Without `--allow-ffi`.
 */
export function guardMapping(
  libc: Libc,
  base: bigint,
  byteLength: number,
): MappingGuard | null {
  const code = machineCode();
  const range = packRange(base, BigInt(byteLength));
  if (code === null || range === null) return null;
  const current = new BigUint64Array(ACTION_WORDS);
  if (libc.sigaction(SIGBUS, null, current) !== 0) return null;
  const table = findTable(current, code) ?? install(libc, current, code);
  return table === null ? null : claimEntry(table, range);
}

function packRange(base: bigint, byteLength: bigint): bigint | null {
  const end = base + byteLength;
  if (base <= 0n || byteLength <= 0n || end > ADDRESS_LIMIT) return null;
  const first = base >> UNIT_BITS;
  const count = ((end - 1n) >> UNIT_BITS) - first + 1n;
  return count >> COUNT_BITS === 0n ? (first << COUNT_BITS) | count : null;
}

/**
 * Our handler's data, if our handler acts on SIGBUS, at once or after handlers that other releases
 * of this module put before it: those begin with the same signature and tell in word 0 of their
 * data who follows. Without that look two releases would pile up handlers in turn.
 */
function findTable(action: BigUint64Array, code: Uint8Array<ArrayBuffer>): BigUint64Array | null {
  let handler = action[ACTION_HANDLER];
  // Ours begins on a page boundary and ends before the next one, so only such a handler is read,
  // and never beyond memory that is surely mapped. 0, 1 and PENDING are not addresses.
  while (handler !== undefined && handler > PENDING && handler % 4096n === 0n) {
    const found = new Uint8Array(code.length);
    viewOf(handler).copyInto(found);
    if (sameBytes(found, code, code.length)) return tableOf(handler);
    if (!sameBytes(found, code, SIGNATURE_BYTES)) return null;
    handler = Atomics.load(tableOf(handler), PREVIOUS);
  }
  return null;
}

function install(
  libc: Libc,
  current: BigUint64Array,
  code: Uint8Array<ArrayBuffer>,
): BigUint64Array | null {
  const length = DATA_OFFSET + BigInt(DATA_BYTES);
  const writable = PROT_READ | PROT_WRITE;
  const address = libc.mmap(0n, length, writable, MAP_PRIVATE_ANONYMOUS, -1, 0n);
  if (address === MAP_FAILED) return null;
  new Uint8Array(viewOf(address).getArrayBuffer(code.length)).set(code);
  const table = tableOf(address);
  table[PREVIOUS] = PENDING;
  table[PAGE_SIZE] = BigInt(libc.getpagesize());
  // Memory is writable or executable, never both. A page that becomes executable for the first
  // time also has the kernel bring aarch64's instruction cache up to date.
  if (libc.mprotect(address, DATA_OFFSET, PROT_READ | PROT_EXEC) !== 0) {
    libc.munmap(address, length);
    return null;
  }
  const action = new BigUint64Array(ACTION_WORDS);
  action[ACTION_HANDLER] = address;
  // The previous handler, called by ours, finds the signals blocked that it asked for.
  action.set(current.subarray(ACTION_MASK, ACTION_FLAGS), ACTION_MASK);
  action[ACTION_FLAGS] = SA_SIGINFO | SA_ONSTACK | SA_RESTART |
    ((current[ACTION_FLAGS] ?? 0n) & SA_NODEFER);
  // libc writes the previous action straight into the data. Until it has, the handler reads
  // PENDING and has the instruction fault again. What `current` says is not used for it: another
  // isolate may have installed its handler since, and ours then goes before that one, for good.
  if (libc.sigaction(SIGBUS, action, table.subarray(PREVIOUS, ACTION_WORDS)) !== 0) {
    libc.munmap(address, length);
    return null;
  }
  return table;
}

function claimEntry(table: BigUint64Array, range: bigint): MappingGuard | null {
  for (let index = FIRST_ENTRY; index < LAST_ENTRY; index += ENTRY_WORDS) {
    // Pairs with the exchange of other isolates, one of which gets a free entry, with the store in
    // release() that freed it, and with the handler's one load of the word.
    if (Atomics.compareExchange(table, index, 0n, range) === 0n) {
      // Nobody uses the mapping yet, so no trip of ours can be lost. A late one of the entry's
      // previous owner may follow: it costs a needless mapping, no more.
      Atomics.store(table, index + 1, 0n);
      return new TableEntry(table, index);
    }
  }
  return null;
}

class TableEntry implements MappingGuard {
  readonly #table: BigUint64Array;
  readonly #index: number;
  #released: { readonly tripped: boolean } | null = null;

  constructor(table: BigUint64Array, index: number) {
    this.#table = table;
    this.#index = index;
  }

  get tripped(): boolean {
    // Pairs with the handler's store, which comes before the zeros are there to read.
    return this.#released?.tripped ?? Atomics.load(this.#table, this.#index + 1) !== 0n;
  }

  release(): void {
    if (this.#released !== null) return;
    this.#released = { tripped: this.tripped };
    // Pairs with the exchange in claimEntry(): from here on the entry is another's.
    Atomics.store(this.#table, this.#index, 0n);
  }
}

function viewOf(address: bigint): Deno.UnsafePointerView {
  const pointer = Deno.UnsafePointer.create(address);
  if (pointer === null) throw new RangeError("Cannot view memory: the address is null");
  return new Deno.UnsafePointerView(pointer);
}

function tableOf(handler: bigint): BigUint64Array<ArrayBuffer> {
  return new BigUint64Array(viewOf(handler + DATA_OFFSET).getArrayBuffer(DATA_BYTES));
}

function sameBytes(a: Uint8Array, b: Uint8Array, length: number): boolean {
  for (let index = 0; index < length; index++) if (a[index] !== b[index]) return false;
  return true;
}
