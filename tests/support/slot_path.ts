/** A path that no other test has, for a slot file or for what is put in its place. */

import { cString, LOCK_EX, LOCK_NB, LOCK_SH } from "../../src/slotfile/libc.ts";
import { matches, must, raw, RawFile } from "./raw_libc.ts";

/** One path below /dev/shm; whatever is there is gone at the end of a `using` scope. */
export class SlotPath implements Disposable {
  /** The path. */
  readonly path: string;

  constructor(folder = "/dev/shm") {
    this.path = `${folder}/loadslots_test_${crypto.randomUUID()}.shm`;
  }

  /** A neighbour's path, which is cleaned up with this one. */
  beside(name: string): string {
    return `${this.path}.${name}`;
  }

  /** What stands at the path and beside it; at the end of a test that is one file, or none. */
  all(): string[] {
    return matches(`${this.path}*`);
  }

  /** Whether something is at the path. */
  exists(): boolean {
    return this.all().includes(this.path);
  }

  /** All bytes of the file. */
  bytes(): Uint8Array<ArrayBuffer> {
    using file = new RawFile(this.path, { write: false });
    return file.readAll();
  }

  /** Puts a file there, or changes the one that is there in place. */
  put(bytes: Uint8Array<ArrayBuffer>): void {
    using file = new RawFile(this.path, { mode: 0o600 });
    file.truncate(bytes.length);
    file.write(0, bytes);
  }

  /** Changes some bytes in place, without the lock. */
  patch(offset: number, bytes: Uint8Array<ArrayBuffer>): void {
    using file = new RawFile(this.path);
    file.write(offset, bytes);
  }

  /** Gives the file another length, in place. */
  truncate(byteLength: number): void {
    using file = new RawFile(this.path);
    file.truncate(byteLength);
  }

  /** Puts a fresh file in the place of the one that is there, in one step. */
  replace(bytes: Uint8Array<ArrayBuffer>): void {
    const fresh = this.beside("fresh");
    {
      using file = new RawFile(fresh, { mode: 0o600 });
      file.write(0, bytes);
    }
    must(raw.rename(cString(fresh), cString(this.path)), "rename");
  }

  /** Removes the name; whoever has the file open keeps it. */
  unlink(): void {
    must(raw.unlink(cString(this.path)), "unlink");
  }

  /** Takes the lock by a descriptor of its own; held until disposed. */
  hold(mode: "shared" | "exclusive"): Disposable {
    const file = new RawFile(this.path);
    if (file.tryLock((mode === "shared" ? LOCK_SH : LOCK_EX) | LOCK_NB)) return file;
    file[Symbol.dispose]();
    throw new Error(`Cannot lock ${this.path}: it is locked already`);
  }

  /** Whether the lock can be had now. */
  isFree(): boolean {
    using file = new RawFile(this.path);
    return file.tryLock(LOCK_EX | LOCK_NB);
  }

  [Symbol.dispose](): void {
    for (const path of this.all()) {
      if (raw.unlink(cString(path)) < 0) raw.rmdir(cString(path));
    }
  }
}
