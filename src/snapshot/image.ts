/** A copy of what stands in a slot: four bytes of length, then the payload. */

/** Where the payload starts in an image; the length stands before it, as in the slot. */
export const PAYLOAD_AT = 4;

/** One buffer, seen as bytes, as words and as mixed values. */
export interface Image {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly words: Int32Array<ArrayBuffer>;
  readonly view: DataView<ArrayBuffer>;
  /** The bytes and the values of the payload alone: places in it count from its start. */
  readonly payload: Uint8Array<ArrayBuffer>;
  readonly payloadView: DataView<ArrayBuffer>;
  /** Where the payload lies for C, once somebody asked; it never moves. */
  payloadAddress: bigint | null;
}

/**
 * Makes an empty image.
 *
 * @param byteLength How much it must hold, the length included; rounded up to whole words.
 */
export function createImage(byteLength: number): Image {
  const buffer = new ArrayBuffer((byteLength + 7) & ~7);
  return {
    bytes: new Uint8Array(buffer),
    words: new Int32Array(buffer),
    view: new DataView(buffer),
    payload: new Uint8Array(buffer, PAYLOAD_AT),
    payloadView: new DataView(buffer, PAYLOAD_AT),
    payloadAddress: null,
  };
}

/**
 * Makes an image of one payload.
 *
 * @param payload The payload; it is copied.
 */
export function imageOf(payload: Uint8Array): Image {
  const image = createImage(PAYLOAD_AT + payload.length);
  image.view.setUint32(0, payload.length, true);
  image.bytes.set(payload, PAYLOAD_AT);
  return image;
}
