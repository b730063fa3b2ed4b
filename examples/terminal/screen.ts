/** A terminal that is redrawn in place. */

import { writeAll } from "../command_line.ts";

const ENTER_ALTERNATE = "\x1b[?1049h";
const LEAVE_ALTERNATE = "\x1b[?1049l";
const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";
// Terminals that know them show a frame at once; the others ignore them.
const BEGIN_FRAME = "\x1b[?2026h";
const END_FRAME = "\x1b[?2026l";
const HOME = "\x1b[H";
const CLEAR_LINE = "\x1b[K";
const CLEAR_BELOW = "\x1b[J";

/** Takes over the terminal until it is disposed of; what was there before comes back then. */
export class Screen implements Disposable {
  #frame = "";

  constructor() {
    writeAll(ENTER_ALTERNATE + HIDE_CURSOR);
  }

  /**
   * Replaces what is shown.
   *
   * @param frame Lines, each ended by a newline.
   * @param height Lines of the terminal; more are not drawn, so that it does not scroll.
   */
  draw(frame: string, height: number): void {
    this.#frame = frame;
    const lines = frame.trimEnd().split("\n").slice(0, height);
    // Cleared after it is written, never before: so nothing flickers.
    const text = lines.map((line) => line + CLEAR_LINE).join("\r\n");
    writeAll(BEGIN_FRAME + HOME + text + CLEAR_BELOW + END_FRAME);
  }

  /** Gives the terminal back, and leaves the last frame in its history. */
  [Symbol.dispose](): void {
    try {
      writeAll(SHOW_CURSOR + LEAVE_ALTERNATE + this.#frame);
    } catch {
      // A terminal that was closed meanwhile needs nothing back.
    }
  }
}
