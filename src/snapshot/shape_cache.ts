/** The shapes that payloads had lately: a rank often goes back to one, and ranks share them. */

import type { Image } from "./image.ts";
import { Scanner } from "./scanner.ts";
import { hasShape, type Shape } from "./shape.ts";

// More are not kept: an engine uses a few dozen, and whoever sends others must not fill the memory.
const MOST_SHAPES = 256;

/** Finds the shape of a payload, by a scan where it has to. */
export class ShapeCache {
  readonly #scanner: Scanner = new Scanner();
  readonly #byEnd: Map<number, Shape[]> = new Map();
  #count = 0;

  /**
   * Finds the shape of a payload.
   *
   * @param image The payload.
   * @param end Where it ends in the image.
   * @throws {SnapshotDecodeError} If it is not a load snapshot.
   */
  find(image: Image, end: number): Shape {
    let shapes = this.#byEnd.get(end);
    if (shapes !== undefined) {
      for (let n = 0; n < shapes.length; n++) {
        if (hasShape(image, shapes[n]!)) return shapes[n]!;
      }
    }
    const shape = this.#scanner.scan(image, end);
    if (this.#count >= MOST_SHAPES) {
      this.#byEnd.clear();
      this.#count = 0;
      shapes = undefined;
    }
    if (shapes === undefined) this.#byEnd.set(end, [shape]);
    else shapes.push(shape);
    this.#count++;
    return shape;
  }
}
