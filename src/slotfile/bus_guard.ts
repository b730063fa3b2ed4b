/**
 * Keeps a mapped file that another process shrinks from killing this process.
 *
 * A load or a store on a page that lies wholly beyond the file's end raises SIGBUS, whose default
 * is death. Here a handler of that signal puts an anonymous page of zeros under the address when
 * it lies in a guarded mapping, and the instruction runs again; every other SIGBUS goes on to the
 * action that stood before. A signal handler cannot be JavaScript, so it is a page of machine code.
 */

/** What this file needs of libc. */
export const BUS_GUARD_SYMBOLS = {
  // int sigaction(int signum, const struct sigaction *act, struct sigaction *oldact);
  sigaction: {
    parameters: [
      "i32", // int signum
      "buffer", // const struct sigaction *act
      "buffer", // struct sigaction *oldact
    ],
    result: "i32",
  },

  // void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
  mmap: {
    parameters: [
      "usize", // void *addr
      "usize", // size_t length
      "i32", // int prot
      "i32", // int flags
      "i32", // int fd
      "i64", // off_t offset
    ],
    result: "usize",
  },

  // int mprotect(void *addr, size_t len, int prot);
  mprotect: {
    parameters: [
      "usize", // void *addr
      "usize", // size_t len
      "i32", // int prot
    ],
    result: "i32",
  },

  // int munmap(void *addr, size_t length);
  munmap: {
    parameters: [
      "usize", // void *addr
      "usize", // size_t length
    ],
    result: "i32",
  },

  // int getpagesize(void);
  getpagesize: {
    parameters: [],
    result: "i32",
  },
} as const satisfies Deno.ForeignLibraryInterface;

type Libc = Deno.DynamicLibrary<typeof BUS_GUARD_SYMBOLS>["symbols"];

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

const PROT_READ = 1;
const PROT_WRITE = 2;
const PROT_EXEC = 4;
const MAP_PRIVATE_ANONYMOUS = 0x22;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;
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

// The handler's memory: its code, then its data. The code finds the data by its own address, so
// the distance is part of the code; 64 KiB is the largest page size of either architecture.
const DATA_OFFSET = 0x1_0000n;
const DATA_BYTES = 4096;

// The data, in words of 8 bytes. Word 0 must stay what it is in every release: see findTable().
/** The action that stood before, as libc writes it: word 0 is its handler. */
const PREVIOUS = 0;
const PAGE_SIZE = 20;
// Words 24 to 27 stay zero: for the kernel they are the default action.
/** Entries of two words: the range, and whether it tripped. */
const FIRST_ENTRY = 32;
const ENTRY_WORDS = 2;
const DATA_WORDS = DATA_BYTES / 8;

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
 * @param base The address that `mmap` returned.
 * @param byteLength The length of the mapping.
 * @returns The guard, or `null` if there can be none: another operating system or processor,
 * executable memory refused, or every entry taken. Then nothing stands between a shrinking file
 * and the process but a lock.
 * @throws {Deno.errors.NotCapable} Without `--allow-ffi`.
 */
export function guardMapping(base: bigint, byteLength: number): MappingGuard | null {
  const code = machineCode();
  const range = packRange(base, BigInt(byteLength));
  if (code === null || range === null) return null;
  const library = openLibc();
  if (library === null) return null;
  try {
    const current = new BigUint64Array(ACTION_WORDS);
    if (library.symbols.sigaction(SIGBUS, null, current) !== 0) return null;
    const table = findTable(current, code) ?? install(library.symbols, current, code);
    return table === null ? null : claimEntry(table, range);
  } finally {
    library.close();
  }
}

function openLibc(): Deno.DynamicLibrary<typeof BUS_GUARD_SYMBOLS> | null {
  for (const name of ["libc.so.6", `libc.musl-${Deno.build.arch}.so.1`]) {
    try {
      return Deno.dlopen(name, BUS_GUARD_SYMBOLS);
    } catch (error) {
      if (error instanceof Deno.errors.NotCapable) throw error;
    }
  }
  return null;
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
  for (let index = FIRST_ENTRY; index < DATA_WORDS; index += ENTRY_WORDS) {
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

/** The handler for this processor, or `null` where there is none. */
function machineCode(): Uint8Array<ArrayBuffer> | null {
  if (Deno.build.os !== "linux") return null;
  switch (Deno.build.arch) {
    case "x86_64":
      return Uint8Array.from(X86_64.flat());
    case "aarch64":
      return new Uint8Array(Uint32Array.from(AARCH64.flat()).buffer);
    default:
      return null;
  }
}

// The handler, for two processors: void handler(int, siginfo_t *info, void *context).
//
// It may run at any instruction of any thread: it takes no lock, calls nothing of libc, touches no
// errno, and needs 8 bytes of stack. `data` is DATA_OFFSET behind `code`. The kernel restores all
// registers afterwards; those that the previous handler is called with are left as they came.
//
//   unless info->si_code is BUS_ADRERR (2)                    goto chain
//   for each of the 240 entries
//     if the address, in units, lies in the entry             goto ours
//   chain: previous handler a function?  jump to it with our arguments
//          PENDING?                      return: the instruction faults again
//          SIG_IGN and no fault?         return: signal ignored
//          else                          goto die
//   ours:  entry's second word = 1
//          mmap(page, page size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)
//          worked? return: the instruction runs again
//   die:   rt_sigaction(SIGBUS, default)
//          a fault? return: the instruction faults again, and kills
//          else queue the same signal to this thread, which dies of it when the handler returns

// deno-fmt-ignore
const X86_64: readonly (readonly number[])[] = [
  [0xf3, 0x0f, 0x1e, 0xfa],                         // endbr64
  [0xeb, 0x0a],                                     // jmp start
  [0x6c, 0x6f, 0x61, 0x64, 0x73],                   // .ascii "loads"
  [0x6c, 0x6f, 0x74, 0x73, 0x31],                   // .ascii "lots1"          ; end of signature
  // start:
  [0x83, 0x7e, 0x08, 0x02],                         // cmp dword ptr [rsi+8], 2 ; si_code
  [0x75, 0x3a],                                     // jne chain
  [0x48, 0x8b, 0x46, 0x10],                         // mov rax, [rsi+16]       ; si_addr
  [0x48, 0xc1, 0xe8, 0x0c],                         // shr rax, 12             ; in units
  [0x48, 0x8d, 0x0d, 0xdb, 0x00, 0x01, 0x00],       // lea rcx, [rip+data+256] ; first entry
  [0x41, 0xbb, 0xf0, 0x00, 0x00, 0x00],             // mov r11d, 240           ; entries left
  // next:
  [0x4c, 0x8b, 0x01],                               // mov r8, [rcx]           ; all of it at once
  [0x4d, 0x89, 0xc1],                               // mov r9, r8
  [0x49, 0xc1, 0xe9, 0x1c],                         // shr r9, 28              ; first unit
  [0x41, 0x81, 0xe0, 0xff, 0xff, 0xff, 0x0f],       // and r8d, 0xfffffff      ; number of units
  [0x49, 0x89, 0xc2],                               // mov r10, rax
  [0x4d, 0x29, 0xca],                               // sub r10, r9
  [0x4d, 0x39, 0xc2],                               // cmp r10, r8
  [0x72, 0x25],                                     // jb ours                 ; as unsigned
  [0x48, 0x83, 0xc1, 0x10],                         // add rcx, 16
  [0x41, 0xff, 0xcb],                               // dec r11d
  [0x75, 0xdb],                                     // jnz next
  // chain:
  [0x48, 0x8b, 0x05, 0xa9, 0xff, 0x00, 0x00],       // mov rax, [rip+data]     ; previous handler
  [0x48, 0x83, 0xf8, 0x02],                         // cmp rax, 2              ; PENDING
  [0x77, 0x0d],                                     // ja tail
  [0x74, 0x0a],                                     // je back
  [0x85, 0xc0],                                     // test eax, eax           ; SIG_DFL
  [0x74, 0x48],                                     // jz die
  [0x83, 0x7e, 0x08, 0x00],                         // cmp dword ptr [rsi+8], 0 ; above 0: a fault
  [0x7f, 0x42],                                     // jg die
  // back:
  [0xc3],                                           // ret
  // tail:
  [0xff, 0xe0],                                     // jmp rax
  // ours:
  [0x48, 0xc7, 0x41, 0x08, 0x01, 0x00, 0x00, 0x00], // mov qword ptr [rcx+8], 1 ; tripped
  [0x56],                                           // push rsi
  [0x48, 0x8b, 0x7e, 0x10],                         // mov rdi, [rsi+16]       ; si_addr
  [0x48, 0x8b, 0x35, 0x20, 0x00, 0x01, 0x00],       // mov rsi, [rip+data+160] ; page size
  [0x48, 0x89, 0xf0],                               // mov rax, rsi
  [0x48, 0xf7, 0xd8],                               // neg rax
  [0x48, 0x21, 0xc7],                               // and rdi, rax            ; the page
  [0xba, 0x03, 0x00, 0x00, 0x00],                   // mov edx, 3              ; read and write
  [0x41, 0xba, 0x32, 0x00, 0x00, 0x00],             // mov r10d, 0x32          ; anonymous, fixed
  [0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff],       // mov r8, -1              ; no file
  [0x45, 0x31, 0xc9],                               // xor r9d, r9d            ; offset 0
  [0xb8, 0x09, 0x00, 0x00, 0x00],                   // mov eax, 9              ; mmap
  [0x0f, 0x05],                                     // syscall
  [0x5e],                                           // pop rsi
  [0x48, 0x85, 0xc0],                               // test rax, rax
  [0x79, 0xbe],                                     // jns back                ; below 0: errno
  // die:
  [0x49, 0x89, 0xf1],                               // mov r9, rsi
  [0xbf, 0x07, 0x00, 0x00, 0x00],                   // mov edi, 7              ; SIGBUS
  [0x48, 0x8d, 0x35, 0x06, 0x00, 0x01, 0x00],       // lea rsi, [rip+data+192] ; zeros
  [0x31, 0xd2],                                     // xor edx, edx            ; no old action
  [0x41, 0xba, 0x08, 0x00, 0x00, 0x00],             // mov r10d, 8             ; bytes of a mask
  [0xb8, 0x0d, 0x00, 0x00, 0x00],                   // mov eax, 13             ; rt_sigaction
  [0x0f, 0x05],                                     // syscall
  [0x41, 0x83, 0x79, 0x08, 0x00],                   // cmp dword ptr [r9+8], 0 ; above 0: a fault
  [0x7f, 0x99],                                     // jg back
  [0xb8, 0x27, 0x00, 0x00, 0x00],                   // mov eax, 39             ; getpid
  [0x0f, 0x05],                                     // syscall
  [0x89, 0xc7],                                     // mov edi, eax
  [0xb8, 0xba, 0x00, 0x00, 0x00],                   // mov eax, 186            ; gettid
  [0x0f, 0x05],                                     // syscall
  [0x89, 0xc6],                                     // mov esi, eax
  [0xba, 0x07, 0x00, 0x00, 0x00],                   // mov edx, 7              ; SIGBUS
  [0x4d, 0x89, 0xca],                               // mov r10, r9             ; info
  [0xb8, 0x29, 0x01, 0x00, 0x00],                   // mov eax, 297            ; rt_tgsigqueueinfo
  [0x0f, 0x05],                                     // syscall
  [0xc3],                                           // ret
];

/** The same, in words of 4 bytes: one instruction each, or four letters of the signature. */
// deno-fmt-ignore
const AARCH64: readonly (readonly number[])[] = [
  [0xd503245f], // bti c
  [0x14000003], // b start
  [0x64616f6c], // .ascii "load"
  [0x746f6c73], // .ascii "slot"              ; end of signature
  // start:
  [0xb9400823], // ldr w3, [x1, #8]           ; si_code
  [0x7100087f], // cmp w3, #2
  [0x540001a1], // b.ne chain
  [0xf9400823], // ldr x3, [x1, #16]          ; si_addr
  [0xd34cfc63], // lsr x3, x3, #12            ; in units
  [0x100806e4], // adr x4, data+256           ; first entry
  [0x52801e05], // mov w5, #240               ; entries left
  // next:
  [0xf9400086], // ldr x6, [x4]               ; all of it at once
  [0x92406cc7], // and x7, x6, #0xfffffff     ; number of units
  [0xcb467066], // sub x6, x3, x6, lsr #28    ; units from the first
  [0xeb0700df], // cmp x6, x7
  [0x540001e3], // b.lo ours                  ; as unsigned
  [0x91004084], // add x4, x4, #16
  [0x710004a5], // subs w5, w5, #1
  [0x54ffff21], // b.ne next
  // chain:
  [0x1007fda4], // adr x4, data
  [0xf9400090], // ldr x16, [x4]              ; previous handler
  [0xf1000a1f], // cmp x16, #2                ; PENDING
  [0x540000e8], // b.hi tail
  [0x540000a0], // b.eq back
  [0xb40002d0], // cbz x16, die               ; SIG_DFL
  [0xb9400823], // ldr w3, [x1, #8]
  [0x7100007f], // cmp w3, #0                 ; above 0: a fault
  [0x5400026c], // b.gt die
  // back:
  [0xd65f03c0], // ret
  // tail:
  [0xd61f0200], // br x16                     ; x16 may enter `bti c`
  // ours:
  [0xd2800025], // mov x5, #1
  [0xf9000485], // str x5, [x4, #8]           ; tripped
  [0xaa0103e9], // mov x9, x1
  [0x1007fbe4], // adr x4, data
  [0xf9400823], // ldr x3, [x1, #16]          ; si_addr
  [0xf9405081], // ldr x1, [x4, #160]         ; page size
  [0xcb0103e5], // neg x5, x1
  [0x8a050060], // and x0, x3, x5             ; the page
  [0x52800062], // mov w2, #3                 ; read and write
  [0x52800643], // mov w3, #0x32              ; anonymous, fixed
  [0x92800004], // mov x4, #-1                ; no file
  [0xd2800005], // mov x5, #0                 ; offset 0
  [0x52801bc8], // mov w8, #222               ; mmap
  [0xd4000001], // svc #0
  [0xaa0903e1], // mov x1, x9
  [0xb6fffde0], // tbz x0, #63, back          ; below 0: errno
  // die:
  [0xaa0103e9], // mov x9, x1
  [0x528000e0], // mov w0, #7                 ; SIGBUS
  [0x10080001], // adr x1, data+192           ; zeros
  [0xd2800002], // mov x2, #0                 ; no old action
  [0x52800103], // mov w3, #8                 ; bytes of a mask
  [0x528010c8], // mov w8, #134               ; rt_sigaction
  [0xd4000001], // svc #0
  [0xb9400923], // ldr w3, [x9, #8]
  [0x7100007f], // cmp w3, #0                 ; above 0: a fault
  [0x54fffcac], // b.gt back
  [0x52801588], // mov w8, #172               ; getpid
  [0xd4000001], // svc #0
  [0x2a0003ea], // mov w10, w0
  [0x52801648], // mov w8, #178               ; gettid
  [0xd4000001], // svc #0
  [0x2a0003e1], // mov w1, w0
  [0x2a0a03e0], // mov w0, w10
  [0x528000e2], // mov w2, #7                 ; SIGBUS
  [0xaa0903e3], // mov x3, x9                 ; info
  [0x52801e08], // mov w8, #240               ; rt_tgsigqueueinfo
  [0xd4000001], // svc #0
  [0xd65f03c0], // ret
];
