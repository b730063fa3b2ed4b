/** A slot file in memory. */

import { guardMapping, type MappingGuard } from "./bus_guard.ts";
import { check, type Libc, MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE } from "./libc.ts";

/**
 * A shared mapping of a whole slot file.
 *
 * Slots are reached by address, not as views: one view of a large file would count as garbage
 * collector's memory, and `memcmp` by address is the fastest look there is.
 */
export class Mapping {
  /** The address of the file's first byte. */
  readonly base: bigint;
  /** How much is mapped. */
  readonly byteLength: number;
  readonly #libc: Libc;
  readonly #guard: MappingGuard | null;
  readonly #views: ArrayBuffer[] = [];
  #open = true;

  /**
   * Maps an open file.
   *
   * @throws {SlotFileError} If it cannot be mapped.
   */
  constructor(libc: Libc, fd: number, byteLength: number, access: "read" | "write", path: string) {
    const protection = access === "read" ? PROT_READ : PROT_READ | PROT_WRITE;
    const base = libc.mmap(0n, BigInt(byteLength), protection, MAP_SHARED, fd, 0n);
    check(libc, base === MAP_FAILED ? -1 : 0, "mmap", path);
    this.base = base;
    this.byteLength = byteLength;
    this.#libc = libc;
    this.#guard = guardMapping(libc, base, byteLength);
  }

  /** Whether a load beyond the file's end gives zeros; without a guard it is the process's end. */
  get guarded(): boolean {
    return this.#guard !== null;
  }

  /** Whether that has happened: a page of the file was lost, and the mapping must be made anew. */
  get torn(): boolean {
    return this.#guard !== null && this.#guard.tripped;
  }

  /** A view of a part; it is detached when the mapping closes. */
  view(offset: number, byteLength: number): ArrayBuffer {
    const pointer = Deno.UnsafePointer.create(this.base + BigInt(offset))!;
    const buffer = Deno.UnsafePointerView.getArrayBuffer(pointer, byteLength);
    this.#views.push(buffer);
    return buffer;
  }

  /** Unmaps. Every view is empty from here on, so a late access cannot touch foreign memory. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const buffer of this.#views) buffer.transfer(0);
    this.#guard?.release();
    this.#libc.munmap(this.base, BigInt(this.byteLength));
  }
}
