/** What happens next in virtual time: a heap of events, the earliest first, in order of their entry. */

interface Entry {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** The clock and the future of one simulation. */
export class EventQueue {
  /** The time of the event that runs now, in ms. */
  nowMs = 0;
  readonly #heap: Entry[] = [];
  #order = 0;

  /** Has something happen at a time; not before now. */
  at(atMs: number, run: () => void): void {
    const heap = this.#heap;
    const entry = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run };
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(entry, heap[above]!)) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = entry;
  }

  /** Lets everything happen up to a time. */
  runUntil(endMs: number): void {
    for (let first = this.#heap[0]; first !== undefined && first.atMs <= endMs;) {
      this.#removeFirst();
      this.nowMs = first.atMs;
      first.run();
      first = this.#heap[0];
    }
    this.nowMs = endMs;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++;
      if (!isBefore(heap[below]!, last)) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = last;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
