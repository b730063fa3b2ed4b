/** Whether this process may have executable memory. */

import {
  type Libc,
  MAP_FAILED,
  MAP_PRIVATE_ANONYMOUS,
  PROT_EXEC,
  PROT_READ,
  PROT_WRITE,
} from "./libc.ts";

/**
 * Asks for a page of it, and gives it back. Some sandboxes refuse it, and there V8 would end the
 * whole process at the first WebAssembly module.
 */
export function mayHaveExecutableMemory(libc: Libc): boolean {
  const length = BigInt(libc.getpagesize());
  const protection = PROT_READ | PROT_WRITE | PROT_EXEC;
  const address = libc.mmap(0n, length, protection, MAP_PRIVATE_ANONYMOUS, -1, 0n);
  if (address === MAP_FAILED) return false;
  libc.munmap(address, length);
  return true;
}
