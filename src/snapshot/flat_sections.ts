/**
 * Payloads from before the sections were nested (#26348, layout version 2 as well): each section is
 * a `has_*` flag and a few keys of the map. To the scan they are unknown keys; here they become
 * sections.
 */

import { SnapshotDecodeError } from "../errors.ts";
import { SECTIONS } from "./fields.ts";
import { createLoadSnapshot, type LoadSnapshot, type LoadSnapshotInit } from "./load_snapshot.ts";
import type { RawMsgpack } from "./raw_msgpack.ts";
import { typeNameOf } from "./wire.ts";

type SectionName = (typeof SECTIONS)[number]["name"];

/** How the old layouts spelled a section's keys. */
interface FlatSection {
  readonly flag: string;
  readonly prefix: string;
}

const FLAT: Readonly<Record<SectionName, FlatSection>> = {
  memory: { flag: "has_memory", prefix: "memory_" },
  speculative: { flag: "has_speculative", prefix: "speculative_" },
  lora: { flag: "has_lora", prefix: "lora_" },
  disaggregation: { flag: "has_disaggregation", prefix: "" },
  queues: { flag: "has_queues", prefix: "queue_" },
};

const MODES = ["null", "prefill", "decode"];

/** The name of a mode that an old layout gives as a number; unknown numbers are `"null"`. */
export function modeName(mode: number): string {
  return MODES[mode] ?? "null";
}

/**
 * Turns flat keys into sections, if there are any among the unknown ones.
 *
 * @param snapshot The snapshot as scanned.
 * @returns The snapshot with sections, and with the keys that are still unknown.
 * @throws {SnapshotDecodeError} If a flat key's value has the wrong type.
 */
export function withFlatSections(snapshot: LoadSnapshot): LoadSnapshot {
  const { extra } = snapshot;
  if (extra === null || !SECTIONS.some(({ name }) => FLAT[name].flag in extra)) return snapshot;
  return lift(snapshot, extra);
}

function lift(
  snapshot: LoadSnapshot,
  extra: Readonly<Record<string, RawMsgpack>>,
): LoadSnapshot {
  const rest = new Map(Object.entries(extra));
  const sections: Record<string, unknown> = {};
  for (const section of SECTIONS) {
    const { flag, prefix } = FLAT[section.name];
    const present = takeNumber(rest, flag, true) !== 0;
    const values: Record<string, unknown> = {};
    let missing = 0;
    for (const field of section.fields) {
      if (field.type === "string") {
        values[field.name] = modeName(takeNumber(rest, "disagg_mode", true));
        continue;
      }
      const key = prefix + field.wire;
      if (key === "queue_prealloc_ready") missing = 1; // Younger than this layout.
      values[field.name] = takeNumber(rest, key, field.type === "int");
    }
    // A nested section beside flat keys is the newer one.
    if (present) sections[section.name] = snapshot[section.name] ?? { ...values, missing };
  }
  const left = rest.size === 0
    ? null
    : Object.assign(Object.create(null), Object.fromEntries(rest));
  return createLoadSnapshot({ ...snapshot, ...sections, extra: left } as LoadSnapshotInit);
}

/** Takes a number out of the unknown keys; one that is not there is 0. */
function takeNumber(rest: Map<string, RawMsgpack>, key: string, isInt: boolean): number {
  const raw = rest.get(key);
  if (raw === undefined) return 0;
  rest.delete(key);
  const type = typeNameOf(raw.bytes[0]!);
  if (type === "int" || (type === "float" && !isInt)) {
    const value = Number(raw.value());
    if (!isInt || Number.isSafeInteger(value)) return value;
  }
  throw new SnapshotDecodeError(`expected ${isInt ? "int" : "float"} in ${key}, found ${type}`, 0);
}
