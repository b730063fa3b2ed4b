/** From snapshots to bytes, for one rank: where only values changed, only values are written. */

import { Draft } from "./draft.ts";
import type { Image } from "./image.ts";
import type { LoadSnapshot } from "./load_snapshot.ts";
import { Outline } from "./outline.ts";

/**
 * So many payloads are kept. A rank's counts wander over the same few widths, and its queues run
 * empty and fill again: what it had a while ago, it will have again.
 */
const DRAFTS = 8;
/** Of those with longer images, only the last one is kept. */
const LARGE = 64 * 1024;

/**
 * Encodes the snapshots of one rank exactly as msgspec does for SGLang's struct: keys in the
 * struct's order, defaults left out, each integer in its shortest form, each float in 8 bytes.
 *
 * It keeps the last payload, and some before that had other keys or other forms. A snapshot with
 * the keys and forms of one of them, which is the rule, costs one store for each value that differs.
 */
export class SnapshotEncoder {
  readonly #outline: Outline = new Outline();
  readonly #drafts: Draft[] = [new Draft()];
  // The one that was used last, and the one to be given up next.
  #draft: Draft = this.#drafts[0]!;
  #oldest = 0;

  /** The image that was encoded last: four bytes of length, then the payload. */
  get image(): Image {
    return this.#draft.image;
  }

  /**
   * Encodes a snapshot into {@linkcode image}, which can be another one than before.
   *
   * @param snapshot The snapshot.
   * @returns Where the payload ends in the image.
   * @throws {TypeError} If a field has the wrong type.
   * @throws {RangeError} If an integer field is no integer or beyond 2^53, or an extra is none.
   */
  encode(snapshot: LoadSnapshot): number {
    const outline = this.#outline;
    const draft = this.#draft;
    outline.take(snapshot);
    if (draft.suits(outline) && draft.replace(outline)) return draft.end;
    return this.#encodeIntoOther(snapshot);
  }

  #encodeIntoOther(snapshot: LoadSnapshot): number {
    const outline = this.#outline;
    outline.findForms();
    for (const draft of this.#drafts) {
      if (!draft.suits(outline) || !draft.hasForms(outline)) continue;
      this.#draft = draft;
      draft.replace(outline);
      return draft.end;
    }
    const draft = this.#draft = this.#free();
    draft.write(outline, snapshot);
    return draft.end;
  }

  /** A draft that may be written anew. */
  #free(): Draft {
    const drafts = this.#drafts;
    const large = drafts.find((draft) => draft.image.bytes.length > LARGE);
    if (large !== undefined) return large;
    if (this.#draft.isSpent) return this.#draft;
    if (drafts.length < DRAFTS) {
      const draft = new Draft();
      drafts.push(draft);
      return draft;
    }
    const draft = drafts[this.#oldest]!;
    this.#oldest = (this.#oldest + 1) % DRAFTS;
    return draft;
  }
}
