/** Where things stand in a slot file. No I/O. */

/** The first four bytes of every slot file. */
export const MAGIC = "SLNS";

/** The same, read as a little-endian word. */
export const MAGIC_WORD = 0x534e4c53;

/** The layout that is written: MessagePack payloads behind a length. */
export const VERSION = 2;

/** The first layout: fixed values without a length. It is read, never written. */
export const FIXED_VERSION = 1;

/** Bytes of the header: magic, u16 version, u16 dp size, u32 slot size, all little endian. */
export const HEADER_SIZE = 12;

/** Bytes of one rank's slot, as SGLang writes it. */
export const SLOT_SIZE: number = 16 * 1024;

/** Bytes of the length at the start of a slot. */
export const LENGTH_SIZE = 4;

/** The most ranks that a header can name. */
export const MAX_DP_SIZE = 0xffff;

/** Slots larger than this are refused: no load is that large. */
export const MAX_SLOT_SIZE: number = 4 * 1024 * 1024;

/** What a header says. */
export interface Header {
  readonly version: number;
  readonly dpSize: number;
  readonly slotSize: number;
}

/** A header, or why it is none. */
export type HeaderCheck =
  | { readonly ok: true; readonly header: Header }
  | {
    readonly ok: false;
    readonly reason: "unfinished" | "magic" | "version" | "dp-size" | "slot-size";
  };

/**
 * How long a slot file is.
 *
 * @param dpSize Number of ranks, 1..65535.
 * @param slotSize Bytes of a slot. @default {16384}
 * @returns Its length in bytes.
 * @throws {RangeError} If a number is out of range.
 *
 * @example
 * ```ts
 * import { fileSize } from "./mod.ts";
 *
 * console.log(fileSize(2)); // 32780
 * ```
 */
export function fileSize(dpSize: number, slotSize: number = SLOT_SIZE): number {
  checkDpSize(dpSize);
  checkSlotSize(slotSize);
  return HEADER_SIZE + dpSize * slotSize;
}

/**
 * Where a rank's slot starts.
 *
 * @param dpRank The rank, from 0.
 * @param slotSize Bytes of a slot. @default {16384}
 * @returns Its place in the file, in bytes.
 * @throws {RangeError} If a number is out of range.
 *
 * @example
 * ```ts
 * import { slotOffset } from "./mod.ts";
 *
 * console.log(slotOffset(1)); // 16396
 * ```
 */
export function slotOffset(dpRank: number, slotSize: number = SLOT_SIZE): number {
  if (!Number.isInteger(dpRank) || dpRank < 0 || dpRank >= MAX_DP_SIZE) {
    throw new RangeError(`Cannot place dp rank ${dpRank}: not an integer from 0 to 65534`);
  }
  checkSlotSize(slotSize);
  return HEADER_SIZE + dpRank * slotSize;
}

/** Throws a RangeError unless `dpSize` fits a header. */
export function checkDpSize(dpSize: number): void {
  if (Number.isInteger(dpSize) && dpSize >= 1 && dpSize <= MAX_DP_SIZE) return;
  throw new RangeError(`Cannot use dp size ${dpSize}: not an integer from 1 to ${MAX_DP_SIZE}`);
}

/** Throws a RangeError unless `dpRank` is a rank of the group. */
export function checkDpRank(dpRank: number, dpSize: number): void {
  if (Number.isInteger(dpRank) && dpRank >= 0 && dpRank < dpSize) return;
  throw new RangeError(`Cannot use dp rank ${dpRank}: the group has ranks 0 to ${dpSize - 1}`);
}

/** Throws a RangeError unless a slot of that size can hold a payload and stays aligned. */
export function checkSlotSize(slotSize: number): void {
  const fits = slotSize > LENGTH_SIZE && slotSize <= MAX_SLOT_SIZE && slotSize % 4 === 0;
  if (Number.isInteger(slotSize) && fits) return;
  throw new RangeError(
    `Cannot use slot size ${slotSize}: not a multiple of 4 from 8 to ${MAX_SLOT_SIZE}`,
  );
}

/** A header as it stands in the file, in words of four bytes. */
export function headerWords({ version, dpSize, slotSize }: Header): Int32Array<ArrayBuffer> {
  const words = new Int32Array(HEADER_SIZE / 4);
  const view = new DataView(words.buffer);
  view.setUint32(0, MAGIC_WORD, true);
  view.setUint16(4, version, true);
  view.setUint16(6, dpSize, true);
  view.setUint32(8, slotSize, true);
  return words;
}

/** Reads and checks a header. */
export function decodeHeader(view: DataView): HeaderCheck {
  const magic = view.getUint32(0, true);
  const version = view.getUint16(4, true);
  const dpSize = view.getUint16(6, true);
  const slotSize = view.getUint32(8, true);
  // The creator fills the header from its start, so a zero behind the magic is not yet written.
  if (magic === 0) return { ok: false, reason: "unfinished" };
  if (magic !== MAGIC_WORD) return { ok: false, reason: "magic" };
  if (version === 0 || dpSize === 0 || slotSize === 0) return { ok: false, reason: "unfinished" };
  if (version !== VERSION && version !== FIXED_VERSION) return { ok: false, reason: "version" };
  const least = version === FIXED_VERSION ? 304 : LENGTH_SIZE + 1;
  if (slotSize < least || slotSize > MAX_SLOT_SIZE) return { ok: false, reason: "slot-size" };
  return { ok: true, header: { version, dpSize, slotSize } };
}
