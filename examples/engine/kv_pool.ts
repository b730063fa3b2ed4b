/** The KV pool of one rank: who holds how many of its tokens. */

import type { Request } from "./request.ts";

/** A pool of tokens. Requests with a common prefix each hold their own copy, to keep it simple. */
export class KvPool {
  readonly size: number;
  #used = 0;

  constructor(size: number) {
    this.size = size;
  }

  /** Tokens that requests hold. */
  get used(): number {
    return this.#used;
  }

  /** Tokens that nobody holds. */
  get free(): number {
    return this.size - this.#used;
  }

  /** Gives a request more tokens. */
  hold(request: Request, tokens: number): void {
    request.heldTokens += tokens;
    this.#used += tokens;
  }

  /** Takes all tokens of a request back. */
  release(request: Request): void {
    this.#used -= request.heldTokens;
    request.heldTokens = 0;
  }
}
