/** Where JavaScript's memory lies for C. */

import { type Image, PAYLOAD_AT } from "../snapshot/image.ts";

/** The address of bytes. It stays the same as long as they are referenced. */
export function addressOf(bytes: Uint8Array<ArrayBuffer>): bigint {
  return Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes));
}

/** The address of an image's payload. Asking twice costs nothing. */
export function payloadAddressOf(image: Image): bigint {
  return image.payloadAddress ??= addressOf(image.bytes) + BigInt(PAYLOAD_AT);
}
