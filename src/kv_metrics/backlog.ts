/** What an emitter could not send yet: of each rank the newest messages, and no more than so many. */

/** An encoded message. */
type Message = Uint8Array<ArrayBuffer>;

/** So many messages are handed on in one go: who has a long queue keeps its isolate for others. */
const IN_ONE_GO = 1024;

/** Messages by rank. */
export class Backlog {
  readonly #perRank: number;
  readonly #ranks: Map<number, MessageQueue> = new Map();
  #length = 0;

  /** @param perRank How many messages of a rank are kept, at least 1. */
  constructor(perRank: number) {
    this.#perRank = perRank;
  }

  /** How many messages there are. */
  get length(): number {
    return this.#length;
  }

  /**
   * Keeps a message, as the newest of its rank.
   *
   * @returns How many older ones gave way: 0 or 1.
   */
  keep(dpRank: number, message: Message): number {
    let kept = this.#ranks.get(dpRank);
    if (kept === undefined) {
      kept = new MessageQueue();
      this.#ranks.set(dpRank, kept);
    }
    kept.push(message);
    if (kept.length > this.#perRank) {
      kept.drop();
      return 1;
    }
    this.#length++;
    return 0;
  }

  /**
   * Hands messages on, of each rank the oldest first, until one is not taken, or many were.
   *
   * @param send Tells whether it has taken the message.
   */
  flush(send: (message: Message) => boolean): void {
    let left = IN_ONE_GO;
    for (const [dpRank, kept] of this.#ranks) {
      while (kept.length > 0) {
        if (left-- === 0 || !send(kept.oldest)) return;
        kept.drop();
        this.#length--;
      }
      this.#ranks.delete(dpRank);
    }
  }

  /** Gives all messages up; returns how many. */
  clear(): number {
    const length = this.#length;
    this.#ranks.clear();
    this.#length = 0;
    return length;
  }
}

/** A queue whose oldest message goes without moving all others. */
class MessageQueue {
  #messages: Message[] = [];
  // Those before it have gone.
  #first = 0;

  get length(): number {
    return this.#messages.length - this.#first;
  }

  get oldest(): Message {
    return this.#messages[this.#first]!;
  }

  push(message: Message): void {
    this.#messages.push(message);
  }

  drop(): void {
    this.#first++;
    // Half of the array is empty: moving the rest costs no more than was saved.
    if (this.#first * 2 < this.#messages.length) return;
    this.#messages = this.#messages.slice(this.#first);
    this.#first = 0;
  }
}
