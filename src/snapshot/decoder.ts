/** From bytes to snapshots, for one rank: each payload is compared with the one before it. */

import { buildSnapshot } from "./build_snapshot.ts";
import { withFlatSections } from "./flat_sections.ts";
import type { Image, ImageHolder } from "./image.ts";
import type { LoadSnapshot } from "./load_snapshot.ts";
import { changedSections, Shape } from "./shape.ts";
import { ShapeCache } from "./shape_cache.ts";

const FIRST_CAPACITY = 1024;

/**
 * Decodes the payloads of one rank.
 *
 * It keeps the last payload. Where the next one differs from it in values only, which is the rule,
 * the values are read from the places that are known, without looking at a key, and sections in
 * which nothing changed are the same objects as before.
 */
export class SnapshotDecoder {
  readonly #shapes: ShapeCache;
  #image: Image;
  readonly #own: Shape = new Shape();
  // The shape of the image, or `null` where its payload is not a load snapshot.
  #shape: Shape | null = null;
  #end = 0;
  #last: LoadSnapshot | null = null;

  /**
   * @param shapes Shapes to share with the decoders of other ranks.
   */
  constructor(shapes: ShapeCache = new ShapeCache()) {
    this.#shapes = shapes;
    this.#image = shapes.workspace.createImage(FIRST_CAPACITY);
  }

  /** The image that was decoded last, also when decoding failed. */
  get image(): Image {
    return this.#image;
  }

  /** Bytes of it that count, from its start; 0 before the first. */
  get end(): number {
    return this.#end;
  }

  /**
   * Decodes a payload, and keeps its image.
   *
   * @param holder Has the image with the payload; gets the one that was kept before in its place,
   *   to be filled anew. So nothing is copied.
   * @param end Where the payload ends in it.
   * @returns The snapshot.
   * @throws {SnapshotDecodeError} If the payload is not a load snapshot.
   */
  decode(holder: ImageHolder, end: number): LoadSnapshot {
    const { image } = holder;
    const before = this.#image;
    const last = this.#last;
    const mask = this.#shape === null ? null : this.#shape.mask;
    holder.image = before;
    this.#image = image;
    this.#last = null;
    if (last !== null && mask !== null && end === this.#end) {
      const changed = changedSections(image, before, mask);
      if (changed >= 0) return this.#build(changed, last);
    }
    this.#shape = null;
    this.#end = end;
    const shape = this.#shape = this.#shapes.find(image, end, this.#own);
    return this.#build(shape.sections, null);
  }

  #build(renewed: number, last: LoadSnapshot | null): LoadSnapshot {
    const snapshot = buildSnapshot(this.#shape!, this.#image, renewed, last);
    this.#last = snapshot;
    return snapshot.extra === null ? snapshot : withFlatSections(snapshot);
  }
}
