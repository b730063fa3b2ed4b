/** Memory for images and masks that a WebAssembly function reaches as well. */

import { changedSectionsModule } from "./changed_sections_code.ts";
import { createImage, type Image, imageIn } from "./image.ts";

/** Images in a workspace have this size. A payload of SGLang's takes about half of it. */
const IMAGE_SIZE = 1024;
const PAGE_SIZE = 64 * 1024;
// So much for masks; the system gives what is used of it, not more.
const MASKS_SIZE = 2 * 1024 * 1024;

/**
 * Compares two payloads of one shape; see {@linkcode changedSections} in shape.ts.
 *
 * @param now Where the one lies in the workspace.
 * @param before Where the other lies.
 * @param mask Where a mask lies; see {@linkcode Mask}.
 * @param size How long each of these is, a multiple of 16.
 */
export type Compare = (now: number, before: number, mask: number, size: number) => number;

/** Where arrays of words lie. */
export interface Words {
  readonly buffer: ArrayBuffer;
  /** Where the first one starts in the buffer. */
  readonly start: number;
  /** Bytes of each. */
  readonly size: number;
  /** The workspace's, if they are in one: `start` is their place in it then. */
  readonly compare: Compare | null;
}

/**
 * Memory for the images and the masks of one group. What finds no room in it, because it is too long
 * or too late, or because there is no WebAssembly, gets memory of its own: that is slower, no more.
 */
export class Workspace {
  /** Compares two payloads in it, or `null` where that cannot be. */
  readonly compare: Compare | null;
  readonly #buffer: ArrayBuffer;
  readonly #free: Image[] = [];
  #used = 0;

  /** @param images How many images it must hold; 0 is for those who need no speed. */
  constructor(images: number) {
    const opened = images === 0 ? null : open(images * IMAGE_SIZE + MASKS_SIZE);
    this.compare = opened?.compare ?? null;
    this.#buffer = opened?.buffer ?? new ArrayBuffer(0);
  }

  /** Makes an image that holds so many bytes. */
  createImage(byteLength: number): Image {
    if (byteLength > IMAGE_SIZE) return createImage(byteLength);
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const at = this.#allot(IMAGE_SIZE);
    return at < 0 ? createImage(byteLength) : imageIn(this.#buffer, at, IMAGE_SIZE, at);
  }

  /** Takes an image back that is used no more. */
  giveBack(image: Image): void {
    if (image.at >= 0) this.#free.push(image);
  }

  /** Whether an image for so many bytes is better exchanged for one in here. */
  hasBetter(image: Image, byteLength: number): boolean {
    return image.at < 0 && byteLength <= IMAGE_SIZE && this.#free.length > 0;
  }

  /**
   * Makes room for three arrays of words, one behind the other.
   *
   * @param byteLength How long each must be; rounded up to a multiple of 16.
   */
  createWords(byteLength: number): Words {
    const size = (byteLength + 15) & ~15;
    const at = this.#allot(3 * size);
    return at < 0
      ? { buffer: new ArrayBuffer(3 * size), start: 0, size, compare: null }
      : { buffer: this.#buffer, start: at, size, compare: this.compare };
  }

  /** Takes so many bytes; where they start, or -1 if there is no room for them. */
  #allot(size: number): number {
    const at = this.#used;
    if (at + size > this.#buffer.byteLength) return -1;
    this.#used += size;
    return at;
  }
}

let module: WebAssembly.Module | null = null;

function open(byteLength: number): { compare: Compare; buffer: ArrayBuffer } | null {
  // V8 can be told to do without it.
  if (typeof WebAssembly === "undefined") return null;
  try {
    const pages = Math.ceil(byteLength / PAGE_SIZE);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    module ??= changedSectionsModule();
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    return { compare: exports["changed"] as Compare, buffer: memory.buffer as ArrayBuffer };
  } catch (error) {
    // No room for it, or a processor without these instructions.
    if (error instanceof RangeError || error instanceof WebAssembly.CompileError) return null;
    throw error;
  }
}
