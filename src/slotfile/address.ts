/** Where JavaScript's memory lies for C. */

import { type Image, PAYLOAD_AT } from "../snapshot/image.ts";

/** The address of an image's first byte. It is found once, for that is slow. */
export function addressOf(image: Image): bigint {
  return image.address ??= Deno.UnsafePointer.value(Deno.UnsafePointer.of(image.bytes));
}

/** The address of an image's payload. */
export function payloadAddressOf(image: Image): bigint {
  return image.payloadAddress ??= addressOf(image) + BigInt(PAYLOAD_AT);
}
