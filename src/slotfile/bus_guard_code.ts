/** The signal handler of bus_guard.ts, as machine code for two processors. */

// The handler's memory: its code, then its data. The code finds the data by its own address, so
// the distance is part of the code; 64 KiB is the largest page size of either architecture.
export const DATA_OFFSET = 0x1_0000n;
export const DATA_BYTES = 0x1_0000;
/** How many ranges the data has room for, behind its first 256 bytes. */
export const ENTRY_COUNT = 4080;

/** The handler for this processor, or `null` where there is none. */
export function machineCode(): Uint8Array<ArrayBuffer> | null {
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
//   for each of the 4080 entries
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
  [0x41, 0xbb, 0xf0, 0x0f, 0x00, 0x00],             // mov r11d, 4080          ; entries left
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
  [0x5281fe05], // mov w5, #4080              ; entries left
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
