/** What a rank says that it has accepted: the dispatch sequence in its report. */

import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";

/** The key on the wire; SGLang's own release of 2026-11 does not have it, forks do. */
const KEY = "last_accepted_dispatch_seq";

/**
 * Reads the number of the last dispatch that a rank has accepted.
 *
 * @param load The rank's report.
 * @param lastTicket The last number that was given out: a later one is not ours.
 * @returns The number, or NaN where the report has none that can be.
 */
export function acceptedSeq(load: LoadSnapshot, lastTicket: number): number {
  const raw = load.extra?.[KEY];
  if (raw === undefined) return NaN;
  let value: unknown;
  try {
    value = raw.value();
  } catch {
    return NaN; // whoever wrote it meant something else
  }
  const isOurs = typeof value === "number" && Number.isInteger(value) && value >= 0 &&
    value <= lastTicket;
  return isOurs ? value as number : NaN;
}
