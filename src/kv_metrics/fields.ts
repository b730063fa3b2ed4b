/**
 * The one table of what a KvMetrics holds: names, wire names, types, units and order.
 *
 * Both encodings, the checks and metric names are driven by it. The order is that of SGLang's class,
 * in which a pickle's keys and a MessagePack array's elements stand.
 */

/** How a value travels, and what it may be. A `"share"` is a float that runs from 0 to 1. */
export type KvFieldType = "int" | "share";

/** One value of a KvMetrics. */
export interface KvFieldSpec {
  /** The property's name in TypeScript. */
  readonly name: string;
  /** The attribute's name in SGLang's class. */
  readonly wire: string;
  readonly type: KvFieldType;
  /** The unit, as a metric's description tells it; empty for plain counts and ratios. */
  readonly unit: string;
  /** One line for people: a metric's HELP text. */
  readonly help: string;
}

/** The values, in wire order. */
export const KV_FIELDS = [
  f("requestActiveSlots", "request_active_slots", "int", "requests", "Requests that run"),
  f("requestTotalSlots", "request_total_slots", "int", "requests", "Most requests that may run"),
  f("kvActiveBlocks", "kv_active_blocks", "int", "tokens", "Tokens in the KV pool"),
  f("kvTotalBlocks", "kv_total_blocks", "int", "tokens", "Size of the KV pool"),
  f("numRequestsWaiting", "num_requests_waiting", "int", "requests", "Requests that wait"),
  f("gpuCacheUsagePerc", "gpu_cache_usage_perc", "share", "", "Used share of the KV pool"),
  f("gpuPrefixCacheHitRate", "gpu_prefix_cache_hit_rate", "share", "", "Prefix cache hit rate"),
  f("dataParallelRank", "data_parallel_rank", "int", "", "Data-parallel rank"),
] as const satisfies readonly KvFieldSpec[];

/** How many values there are. */
export const KV_FIELD_COUNT: number = KV_FIELDS.length;

const INDEX: ReadonlyMap<string, number> = new Map(
  KV_FIELDS.map(({ wire }, index): [string, number] => [wire, index]),
);

/**
 * The number of a value by its wire name.
 *
 * @param wire The name.
 * @returns Its place in {@linkcode KV_FIELDS}, or -1 when this release does not know it.
 */
export function kvFieldNumber(wire: string): number {
  return INDEX.get(wire) ?? -1;
}

function f<const Name extends string, const Wire extends string, const Type extends KvFieldType>(
  name: Name,
  wire: Wire,
  type: Type,
  unit: string,
  help: string,
) {
  return { name, wire, type, unit, help } as const;
}
