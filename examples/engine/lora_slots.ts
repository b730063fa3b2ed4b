/** The adapters that the running requests of one scheduler use. */

/** A fixed number of slots; requests with the same adapter share one. */
export class LoraSlots {
  readonly total: number;
  readonly #users = new Map<number, number>();

  constructor(total: number) {
    this.total = total;
  }

  /** Slots in use. */
  get used(): number {
    return this.#users.size;
  }

  /** @returns Whether a request with this adapter can run now; if so it holds the slot. */
  acquire(adapter: number | null): boolean {
    if (adapter === null) return true;
    const users = this.#users.get(adapter) ?? 0;
    if (users === 0 && this.#users.size === this.total) return false;
    this.#users.set(adapter, users + 1);
    return true;
  }

  /** Gives back what {@linkcode LoraSlots.acquire} took. */
  release(adapter: number | null): void {
    if (adapter === null) return;
    const users = this.#users.get(adapter) ?? 0;
    if (users > 1) this.#users.set(adapter, users - 1);
    else this.#users.delete(adapter);
  }
}
