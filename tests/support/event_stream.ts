/** The live stream as a client reads it. */

import assert from "node:assert/strict";
import { HANG_MS } from "./wait.ts";

/** One event. */
export interface StreamEvent {
  readonly event: string;
  readonly id: string | null;
  readonly data: StreamData;
}

/** The data of all kinds of events together. */
export interface StreamData {
  readonly timestamp: string;
  readonly loads?: readonly (Readonly<Record<string, unknown>> & { readonly dp_rank: number })[];
  readonly dp_size?: number | null;
  readonly ranks?: readonly {
    readonly dp_rank: number;
    readonly state: string;
    readonly age_ms: number | null;
  }[];
  readonly code?: string;
  readonly reason?: string;
}

/** Events of one stream, in order. Cancelled at the end of its scope. */
export class EventStream implements AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";
  #isEnded = false;
  /** How often the server said when to come back. */
  retries = 0;

  constructor(response: Response) {
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    this.#reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The next event, or `null` at the end. */
  async next(): Promise<StreamEvent | null> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        if (block.startsWith("retry: ")) {
          this.retries++;
          continue;
        }
        return parse(block);
      }
      if (this.#isEnded) return null;
      const { done, value } = await this.#read();
      if (done) this.#isEnded = true;
      else this.#text += value;
    }
  }

  /** The next event of a kind; others are passed over. */
  async nextOf(kind: string): Promise<StreamEvent> {
    for (;;) {
      const event = await this.next();
      assert(event !== null, `the stream ended without ${kind}`);
      if (event.event === kind) return event;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel().catch(() => {}); // the server may have ended it
  }

  async #read(): Promise<ReadableStreamReadResult<string>> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const hang = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error("Waited in vain for an event")), HANG_MS);
    });
    try {
      return await Promise.race([this.#reader.read(), hang]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function parse(block: string): StreamEvent {
  const fields = new Map(
    block.split("\n").map((line) => {
      const at = line.indexOf(": ");
      assert(at > 0, line);
      return [line.slice(0, at), line.slice(at + 2)] as const;
    }),
  );
  return {
    event: fields.get("event") ?? "message",
    id: fields.get("id") ?? null,
    data: JSON.parse(fields.get("data") ?? "null"),
  };
}
