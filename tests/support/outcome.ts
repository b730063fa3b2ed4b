/** What decoding a payload gave: a snapshot, or the class of what was thrown. */

import { SnapshotDecoder } from "../../src/snapshot/decoder.ts";
import {
  createImage,
  type Image,
  type ImageHolder,
  type ImageMaker,
  imageOf,
  PAYLOAD_AT,
} from "../../src/snapshot/image.ts";
import { decodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import type { LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";

/** A snapshot, or the name of an error's class and its text. */
export type Outcome =
  | { readonly ok: true; readonly snapshot: LoadSnapshot }
  | { readonly ok: false; readonly error: string; readonly message: string };

/** Decodes with a decoder that has seen nothing yet: what all others must say, too. */
export function decodeFresh(payload: Uint8Array): LoadSnapshot {
  return new SnapshotDecoder().decode({ image: imageOf(payload) }, PAYLOAD_AT + payload.length);
}

/** What {@linkcode decodeFresh} gave. */
export function outcomeOf(payload: Uint8Array): Outcome {
  return attempt(() => decodeFresh(payload));
}

/** Decodes with the function that everybody calls, for everything. */
export function outcomeOfAnyone(payload: Uint8Array): Outcome {
  return attempt(() => decodeLoadSnapshot(payload));
}

/** Decodes with a decoder that has seen other payloads, out of the inbox that they came in. */
export function outcomeWith(decoder: SnapshotDecoder, inbox: Inbox, payload: Uint8Array): Outcome {
  const end = inbox.put(payload);
  return attempt(() => decoder.decode(inbox, end));
}

/** What two outcomes have in common when they are of a kind: the texts may differ. */
export function kindOf(outcome: Outcome): LoadSnapshot | string {
  return outcome.ok ? outcome.snapshot : outcome.error;
}

function attempt(decode: () => LoadSnapshot): Outcome {
  try {
    return { ok: true, snapshot: decode() };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { ok: false, error: error.name, message: error.message };
  }
}

/**
 * One buffer that payloads are put into, one after the other, as a reader does: behind the payload
 * stands what the longer ones before it left.
 */
export class Inbox implements ImageHolder {
  image: Image;
  readonly #maker: ImageMaker;

  /** @param maker Where its images are made. */
  constructor(maker: ImageMaker = { createImage }) {
    this.#maker = maker;
    this.image = maker.createImage(64);
  }

  /** Puts a payload in; returns where it ends. */
  put(payload: Uint8Array): number {
    const end = PAYLOAD_AT + payload.length;
    if (this.image.bytes.length < end) this.image = imageOf(payload, this.#maker);
    this.image.view.setUint32(0, payload.length, true);
    this.image.bytes.set(payload, PAYLOAD_AT);
    return end;
  }
}
