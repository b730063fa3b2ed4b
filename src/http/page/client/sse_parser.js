// @ts-check
/** Server-Sent Events out of text that arrives in pieces, as the HTML standard reads them. */

/**
 * One event.
 * @typedef {object} SseEvent
 * @property {string} type `message` where the stream names none.
 * @property {string} data Its lines, joined by a line feed.
 */

/** Reads one stream; a reconnection takes a new parser and the id that the last one came to. */
export class SseParser {
  /**
   * The id to resume after. An event that only got half way does not count.
   * @type {string}
   */
  lastEventId;

  /**
   * How long the server wants a client to wait before it comes back, in milliseconds.
   * @type {number | null}
   */
  retryMs = null;

  #rest = "";
  #start = true;
  #type = "";
  #id;
  /** @type {string[]} */
  #data = [];

  /** @param {string} [lastEventId] */
  constructor(lastEventId = "") {
    this.lastEventId = lastEventId;
    this.#id = lastEventId;
  }

  /**
   * Takes the next piece.
   *
   * @param {string} text
   * @returns {SseEvent[]} The events that it completes.
   */
  push(text) {
    if (text === "") return [];
    let all = this.#rest + text;
    if (this.#start) {
      if (all.startsWith("\uFEFF")) all = all.slice(1);
      this.#start = false;
    }
    /** @type {SseEvent[]} */
    const events = [];
    let from = 0;
    for (;;) {
      const end = lineEnd(all, from);
      if (end === null) break;
      const event = this.#line(all.slice(from, end.at));
      if (event !== null) events.push(event);
      from = end.next;
    }
    this.#rest = all.slice(from);
    return events;
  }

  /**
   * @param {string} line
   * @returns {SseEvent | null}
   */
  #line(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const raw = colon < 0 ? "" : line.slice(colon + 1);
    const value = raw.startsWith(" ") ? raw.slice(1) : raw;
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id") { if (!value.includes("\0")) this.#id = value; }
    else if (field === "retry" && /^[0-9]+$/.test(value)) this.retryMs = Number(value);
    return null;
  }

  /** @returns {SseEvent | null} */
  #dispatch() {
    this.lastEventId = this.#id;
    const data = this.#data;
    const type = this.#type;
    this.#data = [];
    this.#type = "";
    return data.length === 0 ? null : { type: type || "message", data: data.join("\n") };
  }
}

/**
 * Finds the end of a line. A carriage return at the very end may be half of a pair: not yet.
 *
 * @param {string} text
 * @param {number} from
 * @returns {{ at: number, next: number } | null}
 */
function lineEnd(text, from) {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 10) return { at, next: at + 1 };
    if (code !== 13) continue;
    if (at + 1 === text.length) return null;
    return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
  }
  return null;
}
