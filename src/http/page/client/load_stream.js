// @ts-check
/**
 * The connection to the server's stream: it is kept, taken up again after the last event, and its
 * state is told. Not an EventSource: that cannot send a token.
 */

import { SseParser } from "./sse_parser.js";

/**
 * - `connecting`: no answer yet.
 * - `live`: events arrive.
 * - `retrying`: it broke, and is tried again.
 * - `refused`: the server wants a token, or another one.
 * @typedef {"connecting" | "live" | "retrying" | "refused"} StreamPhase
 */

/**
 * @typedef {object} StreamOptions
 * @property {string} url
 * @property {(type: string, data: string) => void} onEvent
 * @property {(phase: StreamPhase, reason: string | null) => void} onPhase
 * @property {string | null} [token]
 * @property {number} [silenceMs] How long a stream may be silent until it counts as broken; the server speaks every 5 s.
 */

const SILENCE_MS = 12_000;
const RETRY_MS = 1000;
const LONGEST_RETRY_MS = 15_000;

/** A stream that is kept until it is closed. */
export class LoadStream {
  #options;
  /** @type {string | null} */
  #token;
  /** @type {AbortController} */
  #connection = new AbortController();
  #closed = false;
  #lastEventId = "";
  #retryMs = RETRY_MS;
  #failures = 0;
  /** @type {(() => void) | null} */
  #wake = null;
  /** What the server said when it ended the stream. @type {string | null} */
  #farewell = null;

  /** @param {StreamOptions} options */
  constructor(options) {
    this.#options = options;
    this.#token = options.token ?? null;
  }

  /** Connects, again and again, until it is closed. */
  async run() {
    this.#options.onPhase("connecting", null);
    while (!this.#closed) {
      const end = await this.#connect();
      if (this.#closed) return;
      this.#options.onPhase(end.phase, end.reason);
      await this.#pause(end.phase === "refused" ? null : this.#nextWaitMs());
    }
  }

  /**
   * Connects with another token, at once.
   *
   * @param {string} token
   */
  useToken(token) {
    this.#token = token;
    this.retryNow();
  }

  /** Does not wait any longer, as when the network has come back. */
  retryNow() {
    this.#wake?.();
  }

  /** Ends it. */
  close() {
    this.#closed = true;
    this.#connection.abort();
    this.#wake?.();
  }

  /** @returns {Promise<{ phase: "retrying" | "refused", reason: string }>} How the connection ended. */
  async #connect() {
    const connection = new AbortController();
    this.#connection = connection;
    this.#farewell = null;
    let silent = false;
    const silence = () =>
      setTimeout(() => {
        silent = true;
        connection.abort();
      }, this.#options.silenceMs ?? SILENCE_MS);
    let timer = silence();
    try {
      const response = await fetch(this.#options.url, {
        headers: this.#headers(),
        cache: "no-store",
        credentials: "same-origin",
        signal: connection.signal,
      });
      const refusal = refusalOf(response);
      if (refusal !== null) {
        await response.body?.cancel();
        return refusal;
      }
      const parser = new SseParser(this.#lastEventId);
      const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())
        .getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(timer);
        timer = silence();
        this.#take(parser, value);
      }
      return { phase: "retrying", reason: this.#farewell ?? "the server ended the stream" };
    } catch (error) {
      if (silent) return { phase: "retrying", reason: "nothing is heard of the server" };
      // A browser says why in its console only; what is told here is what a person can act on.
      const reason = error instanceof TypeError ? "the server cannot be reached" : String(error);
      return { phase: "retrying", reason: this.#farewell ?? reason };
    } finally {
      clearTimeout(timer);
    }
  }

  /** @returns {Record<string, string>} */
  #headers() {
    /** @type {Record<string, string>} */
    const headers = { Accept: "text/event-stream" };
    if (this.#token !== null) headers["Authorization"] = `Bearer ${this.#token}`;
    if (this.#lastEventId !== "") headers["Last-Event-ID"] = this.#lastEventId;
    return headers;
  }

  /**
   * @param {SseParser} parser
   * @param {string} text
   */
  #take(parser, text) {
    const events = parser.push(text);
    this.#lastEventId = parser.lastEventId;
    if (parser.retryMs !== null) this.#retryMs = parser.retryMs;
    for (const { type, data } of events) {
      if (type === "bye") {
        this.#farewell = reasonIn(data);
        continue;
      }
      this.#failures = 0;
      this.#options.onPhase("live", null);
      this.#options.onEvent(type, data);
    }
  }

  #nextWaitMs() {
    const factor = 1.6 ** this.#failures++;
    // Pages that lost the same server do not all come back in the same moment.
    const spread = 0.8 + 0.4 * Math.random();
    return Math.min(LONGEST_RETRY_MS, this.#retryMs * factor) * spread;
  }

  /** @param {number | null} ms `null` waits until woken. */
  #pause(ms) {
    return /** @type {Promise<void>} */ (new Promise((resolve) => {
      const timer = ms === null ? undefined : setTimeout(() => this.#wake?.(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
    }));
  }
}

/**
 * @param {Response} response
 * @returns {{ phase: "retrying" | "refused", reason: string } | null}
 */
function refusalOf(response) {
  if (response.status === 401 || response.status === 403) {
    return { phase: "refused", reason: "the server wants a token" };
  }
  if (!response.ok) return { phase: "retrying", reason: `the server answers ${response.status}` };
  const type = response.headers.get("Content-Type") ?? "";
  if (!type.startsWith("text/event-stream")) {
    return { phase: "retrying", reason: "what answers is not the stream" };
  }
  return null;
}

/**
 * @param {string} data JSON with a reason, or the reason itself.
 * @returns {string}
 */
function reasonIn(data) {
  try {
    const value = JSON.parse(data);
    if (typeof value === "string") return value;
    if (typeof value?.reason === "string") return value.reason;
  } catch {
    // Not JSON.
  }
  return data;
}
