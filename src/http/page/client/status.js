// @ts-check
/** The connection in words: beside the name, and in the middle where there is nothing else to show. */

/// <reference lib="dom" />

import { age } from "./format.js";
import { byId, setText, show } from "./dom.js";

/** @typedef {import("./load_stream.js").StreamPhase} StreamPhase */

/**
 * What is known of the connection.
 * @typedef {object} Connection
 * @property {StreamPhase} phase
 * @property {string | null} reason
 * @property {number | null} heardAt When the last event came, by the page's own clock, in ms.
 */

/** The words. */
export class Status {
  #text = byId("connection-text");
  #connection = byId("connection");
  #notice = byId("notice");
  #title = byId("notice-title");
  #explanation = byId("notice-text");
  #form = byId("token-form");
  #content = byId("content");

  /** @param {(token: string) => void} onToken */
  constructor(onToken) {
    const input = /** @type {HTMLInputElement} */ (byId("token"));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      onToken(input.value.trim());
      input.value = "";
    });
  }

  /**
   * @param {Connection} connection
   * @param {import("./group.js").Group} group
   * @param {number} now
   */
  update(connection, group, now) {
    const { phase, reason } = connection;
    document.body.dataset["phase"] = phase;
    setText(this.#text, pillText(connection, now));
    if (this.#connection.title !== (reason ?? "")) this.#connection.title = reason ?? "";
    const notice = noticeOf(connection, group);
    const askToken = phase === "refused";
    show(this.#content, group.ranks.length > 0);
    show(this.#notice, notice !== null);
    show(this.#form, askToken);
    if (notice === null) return;
    setText(this.#title, notice.title);
    setText(this.#explanation, notice.text);
  }
}

/**
 * @param {Connection} connection
 * @param {number} now
 * @returns {string}
 */
export function pillText({ phase, heardAt }, now) {
  switch (phase) {
    case "live":
      return "Live";
    case "connecting":
      return "Connecting";
    case "refused":
      return "Token needed";
    case "retrying": {
      const silence = heardAt === null || now - heardAt < 1000
        ? ""
        : `, last heard ${age(now - heardAt)} ago`;
      return `Connection lost, retrying${silence}`;
    }
  }
}

/**
 * @param {Connection} connection
 * @param {import("./group.js").Group} group
 * @returns {{ title: string, text: string } | null}
 */
export function noticeOf({ phase, reason }, group) {
  if (phase === "refused") {
    return {
      title: "A token is needed",
      text: "It stays in this page's memory only. In an address it goes behind #token=.",
    };
  }
  if (phase === "retrying" && !group.isTold) {
    return { title: "No connection", text: `Retrying: ${reason ?? "the server is silent"}.` };
  }
  if (phase === "live" && group.isTold && group.ranks.length === 0) {
    return {
      title: "No engine there",
      text:
        "The server runs, but no engine publishes its load yet. It is shown as soon as it does.",
    };
  }
  return null;
}
