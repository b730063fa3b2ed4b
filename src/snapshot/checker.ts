/** Whether bytes are a load snapshot, and whose: for those who pass it on. */

import { buildSnapshot } from "./build_snapshot.ts";
import { VALUES } from "./fields.ts";
import { withFlatSections } from "./flat_sections.ts";
import type { Image } from "./image.ts";
import { readAny } from "./read_value.ts";
import { Shape } from "./shape.ts";
import { ShapeCache } from "./shape_cache.ts";
import { INT64, UINT64 } from "./wire.ts";

const DP_RANK = VALUES.findIndex((field) => field.wire === "dp_rank");

/** Checks payloads as strictly as a decoder does, without making snapshots. */
export class SnapshotChecker {
  readonly #shapes: ShapeCache = new ShapeCache();
  readonly #own: Shape = new Shape();

  /**
   * Checks a payload.
   *
   * @param image An image with the payload.
   * @param end Where the payload ends in it.
   * @returns The rank that the payload names.
   * @throws {SnapshotDecodeError} If the payload is not a load snapshot.
   */
  check(image: Image, end: number): number {
    const shape = this.#shapes.find(image, end, this.#own);
    const { places, extra } = shape;
    const view = image.payloadView;
    for (let v = 0; v < places.length; v++) {
      const form = places[v]! & 15;
      if (form === UINT64 || form === INT64) readAny(view, places[v]!);
    }
    if (extra !== null) withFlatSections(buildSnapshot(shape, image, shape.sections, null));
    return readAny(view, places[DP_RANK]!);
  }
}
