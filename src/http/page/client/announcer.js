// @ts-check
/** What a screen reader is told without being asked: only what a person would want to be called for. */

/// <reference lib="dom" />

import { STATES } from "./rank.js";
import { countOf } from "./format.js";
import { byId } from "./dom.js";

/** News of this time are told together. */
const GATHER_MS = 1500;

/** Tells the news, gathered. */
export class Announcer {
  #element = byId("announcer");
  /** @type {string[]} */
  #news = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer = undefined;

  /** @param {string} text */
  say(text) {
    this.#news.push(text);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#element.textContent = this.#news.splice(0).slice(-4).join(". ");
    }, GATHER_MS);
  }

  /** @param {ReadonlyMap<import("./rank.js").RankState, readonly number[]>} changes */
  sayChanges(changes) {
    for (const state of STATES) {
      const ranks = changes.get(state);
      if (ranks === undefined) continue;
      const who = ranks.length <= 3 ? `Rank ${ranks.join(", ")}` : countOf(ranks.length, "rank");
      this.say(`${who} ${state === "unreported" ? "not reported" : state}`);
    }
  }
}
