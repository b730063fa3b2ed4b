/** Lengths as C takes them. */

// Payloads of SGLang's have some hundred bytes; 32 KiB for what is kept.
const KEPT = 4096;

const kept: (bigint | undefined)[] = new Array(KEPT);

/**
 * A length as a `size_t`. Making a bigint costs more than the call that it is for, 80 ns in a read of
 * a changed slot, so those that are common are made once.
 *
 * @param byteLength A length of 0 or more.
 */
export function sizeT(byteLength: number): bigint {
  return byteLength < KEPT ? kept[byteLength] ??= BigInt(byteLength) : BigInt(byteLength);
}
