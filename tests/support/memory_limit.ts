/**
 * Memory that a process may use, limited by a cgroup: a limit of address space would forbid V8 to
 * start, for it reserves far more than it ever uses.
 */

const V1 = "/sys/fs/cgroup/memory";
const V2 = "/sys/fs/cgroup";

/** A cgroup of a test's own. */
export class MemoryLimit implements Disposable {
  /** Where a process enters it, by writing its number. */
  readonly door: string;
  readonly #folder: string;
  readonly #peak: string;

  private constructor(folder: string, limit: string, peak: string, bytes: number) {
    this.#folder = folder;
    this.door = `${folder}/cgroup.procs`;
    this.#peak = peak;
    Deno.mkdirSync(folder);
    try {
      Deno.writeTextFileSync(`${folder}/${limit}`, `${bytes}`);
    } catch (error) {
      Deno.removeSync(folder);
      throw error;
    }
  }

  /**
   * Makes one.
   *
   * @returns The limit, or why this machine does not allow it.
   */
  static make(bytes: number): MemoryLimit | string {
    const name = `loadslots_test_${crypto.randomUUID()}`;
    try {
      return new MemoryLimit(
        `${V1}/${name}`,
        "memory.limit_in_bytes",
        "memory.max_usage_in_bytes",
        bytes,
      );
    } catch (first) {
      try {
        return new MemoryLimit(`${V2}/${name}`, "memory.max", "memory.peak", bytes);
      } catch (second) {
        return `${first}; ${second}`;
      }
    }
  }

  /** The most that was ever used in it, in bytes. */
  get peakBytes(): number {
    return Number(Deno.readTextFileSync(`${this.#folder}/${this.#peak}`));
  }

  /** All processes in it have to be gone. */
  [Symbol.dispose](): void {
    Deno.removeSync(this.#folder);
  }
}
