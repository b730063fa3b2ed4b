/** The shapes that payloads had lately: a rank often goes back to one, and ranks share them. */

import type { Image } from "./image.ts";
import { Scanner } from "./scanner.ts";
import { fits, maskOf, type Shape } from "./shape.ts";
import { Workspace } from "./workspace.ts";

// More are not kept: a group of many ranks has some hundreds, and whoever sends ever new ones must not
// fill the memory.
const MOST_SHAPES = 1024;
const MOST_BYTES = 4 * 1024 * 1024;
// A longer payload is scanned each time: else each rank could hold so much of it.
const LONGEST = 64 * 1024;
const MOST_LENGTHS = 4096;

/** Finds the shape of a payload, by a scan where it has to. */
export class ShapeCache {
  /** Where the masks lie, and the images of those who share this. */
  readonly workspace: Workspace;
  readonly #scanner: Scanner = new Scanner();
  readonly #byEnd: Map<number, Shape[]> = new Map();
  // Lengths that were scanned: only what comes again is worth being remembered.
  readonly #scannedEnds: Set<number> = new Set();
  #count = 0;
  #byteLength = 0;

  /** Bytes of what is remembered. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** @param workspace Where to compare payloads; without one that is slower. */
  constructor(workspace: Workspace = new Workspace(0)) {
    this.workspace = workspace;
  }

  /**
   * Finds the shape of a payload.
   *
   * @param image The payload.
   * @param end Where it ends in the image.
   * @param own Gets what a scan finds.
   * @returns A known shape, or `own`.
   * @throws {SnapshotDecodeError} If it is not a load snapshot.
   */
  find(image: Image, end: number, own: Shape): Shape {
    const known = this.#byEnd.get(end);
    if (known !== undefined) {
      for (let n = 0; n < known.length; n++) {
        if (fits(image, known[n]!.mask!)) return known[n]!;
      }
    }
    this.#scanner.scan(image, end, own);
    if (end > LONGEST) return own;
    if (!this.#scannedEnds.has(end)) this.#noteLength(end);
    else return this.#remember(own.copy(), image, end);
    return own;
  }

  #remember(shape: Shape, image: Image, end: number): Shape {
    const mask = maskOf(shape, image, end, this.workspace);
    shape.mask = mask;
    if (this.#count >= MOST_SHAPES || this.#byteLength + 3 * mask.size > MOST_BYTES) {
      this.#byEnd.clear();
      this.#count = 0;
      this.#byteLength = 0;
    }
    const known = this.#byEnd.get(end);
    if (known === undefined) this.#byEnd.set(end, [shape]);
    else known.push(shape);
    this.#count++;
    this.#byteLength += 3 * mask.size;
    return shape;
  }

  #noteLength(end: number): void {
    if (this.#scannedEnds.size >= MOST_LENGTHS) this.#scannedEnds.clear();
    this.#scannedEnds.add(end);
  }
}
