/** A snapshot as SGLang's HTTP API shows it. */

import { CORE_FIELDS, type FieldSpec, INCLUDE_NAMES, SECTIONS } from "./fields.ts";
import type { LoadSnapshot } from "./load_snapshot.ts";

/** A snapshot, or one of its sections, under the wire's names. */
export type LoadDict = Record<string, unknown>;

/**
 * Shows a snapshot as SGLang's `to_dict` does: the core values, and each section that is there and
 * asked for, under the wire's snake_case names.
 *
 * @param snapshot The snapshot.
 * @param include Which parts: any of `core`, `memory`, `spec`, `lora`, `disagg`, `queues`, `all`.
 *   The core values are always there. @default {["all"]}
 * @returns A new object. What is in `extra` is not shown.
 * @throws {RangeError} If `include` names another part; the text lists the valid ones.
 *
 * @example
 * ```ts
 * import { createLoadSnapshot, toDict } from "./mod.ts";
 *
 * const dict = toDict(createLoadSnapshot({ numRunningReqs: 3 }), ["core"]);
 * console.log(dict["num_running_reqs"]); // 3
 * ```
 */
export function toDict(snapshot: LoadSnapshot, include?: Iterable<string>): LoadDict {
  const parts = new Set(include ?? ["all"]);
  if (!parts.has("all")) {
    const unknown = [...parts].filter((part) => !INCLUDE_NAMES.includes(part)).sort();
    if (unknown.length > 0) {
      throw new RangeError(
        `Cannot include ${unknown.join(", ")}: valid sections are ${INCLUDE_NAMES.join(", ")}`,
      );
    }
  }
  const dict = pick(snapshot, CORE_FIELDS);
  for (const { name, wire, include: part, fields } of SECTIONS) {
    const section = snapshot[name];
    if (section !== null && (parts.has("all") || parts.has(part))) {
      dict[wire] = pick(section, fields);
    }
  }
  return dict;
}

function pick(values: object, fields: readonly FieldSpec[]): LoadDict {
  const dict: LoadDict = {};
  for (const { name, wire } of fields) dict[wire] = (values as Record<string, unknown>)[name];
  return dict;
}
