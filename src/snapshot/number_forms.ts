/** Which form an encoded number takes: integers their shortest one, floats always 8 bytes. */

import * as fields from "./fields.ts";
import {
  ABSENT,
  FIXINT,
  FLOAT64,
  INT16,
  INT32,
  INT64,
  INT8,
  UINT16,
  UINT32,
  UINT64,
  UINT8,
} from "./wire.ts";

// This module's own: V8 does not fold in what is imported, which would cost 5 % of an encoding.
const { CORE_COUNT, IS_INT } = fields;
const HALF = 2 ** 32;

/**
 * The form of a value of the table.
 *
 * A core value that is its default has none. Like msgspec, 0.0 is the default and -0.0 is not. The
 * place of the decode moments holds 0, so they have none either. In a section's array no default
 * is left out.
 *
 * @param value The value.
 * @param v Its number in the table.
 * @throws {RangeError} If an integer field's value is no integer, or beyond 2^53.
 */
export function formOf(value: number, v: number): number {
  if (IS_INT[v] === 0) {
    return value === 0 && v < CORE_COUNT && Object.is(value, 0) ? ABSENT : FLOAT64;
  }
  if ((value | 0) === value) {
    if (value >= 0) {
      if (value < 0x80) return value === 0 && v < CORE_COUNT ? ABSENT : FIXINT;
      return value < 0x100 ? UINT8 : value < 0x10000 ? UINT16 : UINT32;
    }
    return value >= -0x20 ? FIXINT : value >= -0x80 ? INT8 : value >= -0x8000 ? INT16 : INT32;
  }
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(
      `Cannot encode load snapshot: ${
        fields.VALUES[v]!.name
      } is ${value}, not an integer up to 2^53`,
    );
  }
  return value < 0 ? INT64 : value < HALF ? UINT32 : UINT64;
}
