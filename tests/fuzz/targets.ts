/** All parsers that take bytes or texts of others. */

import type { Target } from "./target.ts";
import { httpTarget } from "./targets/http.ts";
import { kvMsgpackTarget, pickleTarget } from "./targets/kv_metrics.ts";
import { headerTarget, slotFileTarget } from "./targets/slot_file.ts";
import { fixedTarget, payloadTarget, rawTarget } from "./targets/snapshots.ts";
import { endpointTarget, lastEventIdTarget, nameTarget, queryTarget } from "./targets/texts.ts";

/** Makes each target, for whoever disposes of it. */
export const TARGETS: Readonly<Record<string, () => Target>> = {
  "payload": payloadTarget,
  "fixed": fixedTarget,
  "raw-msgpack": rawTarget,
  "header": headerTarget,
  "slot-file": slotFileTarget,
  "pickle": pickleTarget,
  "kv-msgpack": kvMsgpackTarget,
  "endpoint": endpointTarget,
  "name": nameTarget,
  "query": queryTarget,
  "last-event-id": lastEventIdTarget,
  "http": httpTarget,
};

/** Inputs of former runs, a line of hex each; none where no run kept any. */
export function corpusOf(name: string): Uint8Array[] {
  try {
    return Deno.readTextFileSync(corpusUrl(name)).trim().split("\n").map((line) =>
      Uint8Array.fromHex(line)
    );
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** The file that a target's inputs are kept in. */
export function corpusUrl(name: string): URL {
  return new URL(`corpus/${name}.hex`, import.meta.url);
}
