/** One client of the live stream: what it was told, and whether it keeps up. */

/** Where a client gets what it has not been told yet. */
export interface NewsSource {
  /** All that is news to the client, as one chunk, and marks it as told; `null` if nothing is. */
  newsFor(client: StreamClient): Uint8Array<ArrayBuffer> | null;
  /** The client went away by itself. */
  leave(client: StreamClient): void;
}

/**
 * At most one chunk waits for a client. Until it takes that, it is given nothing else: then the
 * newest of all that it missed.
 */
export class StreamClient {
  /** The number of the last change it was told; -1 for none. */
  seen: number;
  /** The same for the ranks' states. */
  healthSeen = -1;
  /** Whether it was told anything in this stream. */
  isGreeted = false;
  /** When it was opened, in ms of `performance.now`. */
  readonly openedAtMs: number = performance.now();
  /** What it reads. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;

  readonly #source: NewsSource;
  #controller!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  #isHungry = false;
  #isEnded = false;
  #behindSinceMs: number | null = null;

  constructor(source: NewsSource, seen: number) {
    this.#source = source;
    this.seen = seen;
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => {
        this.#isHungry = true;
        this.#behindSinceMs = null;
        this.#feed();
      },
      cancel: () => {
        this.#isEnded = true;
        this.#source.leave(this);
      },
    }, { highWaterMark: 1 });
  }

  /** Tells that there may be news. A client that has not taken its last chunk is behind from now. */
  offer(nowMs: number): void {
    if (this.#isHungry) this.#feed();
    else this.#behindSinceMs ??= nowMs;
  }

  /** For how long news has been waiting for it, in ms. */
  behindMs(nowMs: number): number {
    return this.#behindSinceMs === null ? 0 : nowMs - this.#behindSinceMs;
  }

  /** Ends the stream with a last word. */
  end(lastWord: Uint8Array<ArrayBuffer>): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#isHungry = false;
    this.#controller.enqueue(lastWord);
    this.#controller.close();
  }

  #feed(): void {
    if (this.#isEnded) return;
    const news = this.#source.newsFor(this);
    if (news === null) return;
    // Before the chunk: who waits for one takes it, and asks for the next, within the call.
    this.#isHungry = false;
    this.#controller.enqueue(news);
  }
}
