/** Other values in the same forms: what a rank publishes next. */

/** Bytes behind each tag of a number, from 0xca on. */
const WIDTHS = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8];

/**
 * Changes numbers of an encoded value, which may be a number or a flat list, and leaves every form
 * as it is.
 *
 * @param value The value.
 * @param bytes Where the new numbers are taken from; a 0 leaves a byte as it is.
 */
export function nudge(value: Uint8Array, bytes: readonly number[]): Uint8Array {
  const result = value.slice();
  let taken = 0;
  const change = (at: number, mask: number) => {
    const byte = bytes[taken++ % bytes.length]!;
    if (byte !== 0) result[at] = (result[at]! & ~mask) | (byte & mask);
  };
  let at = headWidth(value[0]!);
  while (at < value.length) {
    const tag = value[at]!;
    if (tag <= 0x7f) change(at++, 0x7f);
    else if (tag >= 0xe0) change(at++, 0x1f);
    else if (tag >= 0xca && tag <= 0xd3) {
      const next = at + 1 + WIDTHS[tag - 0xca]!;
      // An integer's highest bytes stay, so that it seldom leaves what is exact.
      const first = tag >= 0xcc && next - at === 9 ? at + 3 : at + 1;
      for (let place = first; place < next; place++) change(place, 0xff);
      at = next;
    } else if (tag >= 0xa0 && tag <= 0xbf) at += 1 + (tag & 0x1f);
    else return result;
  }
  return result;
}

/** Bytes of a list's head, or 0. */
function headWidth(tag: number): number {
  if (tag >= 0x90 && tag <= 0x9f) return 1;
  return tag === 0xdc ? 3 : tag === 0xdd ? 5 : 0;
}
