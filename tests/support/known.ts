/** What stays of a snapshot for those who know less of it. */

import { SECTIONS } from "../../src/snapshot/fields.ts";
import type { LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";

/** A snapshot as it comes back when it was encoded: what was missing has been written. */
export function asWritten(snapshot: LoadSnapshot): LoadSnapshot {
  return withTails(snapshot, { missing: 0 });
}

/** A snapshot for a reader that passes over what is not in the table, as SGLang's does. */
export function withoutExtras(snapshot: LoadSnapshot): LoadSnapshot {
  return { ...withTails(snapshot, { missing: 0, extra: null }), extra: null };
}

function withTails(snapshot: LoadSnapshot, tail: object): LoadSnapshot {
  const sections = SECTIONS.map(({ name }) => {
    const section = snapshot[name];
    return [name, section === null ? null : { ...section, ...tail }];
  });
  return { ...snapshot, ...Object.fromEntries(sections) };
}
