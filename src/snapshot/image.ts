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
  /** Where it lies in its workspace, or -1 if it is in none; see workspace.ts. */
  readonly at: number;
  /** Where it lies for C, once somebody asked; it never moves. */
  address: bigint | null;
  /** The same of the payload. */
  payloadAddress: bigint | null;
}

/** Something that has an image, and can be given another one for it. */
export interface ImageHolder {
  image: Image;
}

/** Something that makes images: a workspace, or {@linkcode createImage} itself. */
export interface ImageMaker {
  createImage(byteLength: number): Image;
}

/**
 * Makes an empty image with memory of its own.
 *
 * @param byteLength How much it must hold, the length included; rounded up to whole words.
 */
export function createImage(byteLength: number): Image {
  const size = (byteLength + 7) & ~7;
  return imageIn(new ArrayBuffer(size), 0, size, -1);
}

/**
 * Makes an image of a part of a buffer.
 *
 * @param start Where it starts in the buffer, a multiple of 4.
 * @param size How long it is.
 * @param at What it says of its place in a workspace.
 */
export function imageIn(buffer: ArrayBuffer, start: number, size: number, at: number): Image {
  return {
    bytes: new Uint8Array(buffer, start, size),
    words: new Int32Array(buffer, start, size >> 2),
    view: new DataView(buffer, start, size),
    payload: new Uint8Array(buffer, start + PAYLOAD_AT, size - PAYLOAD_AT),
    payloadView: new DataView(buffer, start + PAYLOAD_AT, size - PAYLOAD_AT),
    at,
    address: null,
    payloadAddress: null,
  };
}

/**
 * Makes an image of one payload.
 *
 * @param payload The payload; it is copied.
 * @param maker Where the image is made.
 */
export function imageOf(payload: Uint8Array, maker: ImageMaker = { createImage }): Image {
  const image = maker.createImage(PAYLOAD_AT + payload.length);
  image.view.setUint32(0, payload.length, true);
  image.bytes.set(payload, PAYLOAD_AT);
  return image;
}
