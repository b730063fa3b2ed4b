/** What an emitter could not send yet: of each rank the newest messages, and no more than so many. */

/** An encoded message. */
type Message = Uint8Array<ArrayBuffer>;

/** Messages by rank. */
export class Backlog {
  readonly #perRank: number;
  readonly #ranks: Map<number, Message[]> = new Map();
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
      kept = [];
      this.#ranks.set(dpRank, kept);
    }
    kept.push(message);
    if (kept.length > this.#perRank) {
      kept.shift();
      return 1;
    }
    this.#length++;
    return 0;
  }

  /**
   * Hands messages on, of each rank the oldest first, until one is not taken.
   *
   * @param send Tells whether it has taken the message.
   */
  flush(send: (message: Message) => boolean): void {
    for (const [dpRank, kept] of this.#ranks) {
      while (kept.length > 0) {
        if (!send(kept[0]!)) return;
        kept.shift();
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
