/**
 * The one table of what a load snapshot holds: names, wire names, types, units and order.
 *
 * Decoding, encoding, the JSON view and metric names are all driven by it. The order is the wire's:
 * SGLang writes map keys and array elements in the order of its struct, so do we.
 */

/** How a value travels: `"floats"` is a list of floats or nil. */
export type FieldType = "int" | "float" | "string" | "floats";

/** One value of a snapshot or of a section. */
export interface FieldSpec {
  /** The property's name in TypeScript. */
  readonly name: string;
  /** The key on the wire and in SGLang's JSON. */
  readonly wire: string;
  readonly type: FieldType;
  /** The unit, as a metric's description tells it; empty for plain counts and ratios. */
  readonly unit: string;
  /** One line for people: a metric's HELP text. */
  readonly help: string;
}

/** One optional section: an array on the wire, an object in JSON. */
export interface SectionSpec {
  readonly name: string;
  readonly wire: string;
  /** The name that `include` and metric names use. */
  readonly include: string;
  readonly fields: readonly FieldSpec[];
}

/** The core values, in wire order. */
export const CORE_FIELDS = [
  f("timestamp", "timestamp", "float", "s", "Unix time of the measurement"),
  f("dpRank", "dp_rank", "int", "", "Data-parallel rank"),
  f("numRunningReqs", "num_running_reqs", "int", "requests", "Requests that run"),
  f(
    "numWaitingReqs",
    "num_waiting_reqs",
    "int",
    "requests",
    "Requests in all queues before running",
  ),
  f(
    "numWaitingUncachedTokens",
    "num_waiting_uncached_tokens",
    "int",
    "tokens",
    "Tokens of waiting requests that the cache does not hold",
  ),
  f("numUsedTokens", "num_used_tokens", "int", "tokens", "Tokens in the KV pool"),
  f("numTotalTokens", "num_total_tokens", "int", "tokens", "Used tokens and pending prompt tokens"),
  f(
    "numActiveTokens",
    "num_active_tokens",
    "int",
    "tokens",
    "Total tokens without those that await a KV transfer",
  ),
  f(
    "numPreallocReadyTokens",
    "num_prealloc_ready_tokens",
    "int",
    "tokens",
    "Preallocated tokens that are ready to decode",
  ),
  f("maxTotalNumTokens", "max_total_num_tokens", "int", "tokens", "Size of the KV pool"),
  f("maxRunningRequests", "max_running_requests", "int", "requests", "Most requests that may run"),
  f("tokenUsage", "token_usage", "float", "", "Used share of the KV pool"),
  f("genThroughput", "gen_throughput", "float", "tokens/s", "Generated tokens per second"),
  f("cacheHitRate", "cache_hit_rate", "float", "", "Prefix cache hit rate"),
  f("utilization", "utilization", "float", "", "Utilization, -1 where it does not apply"),
  f(
    "totalPrefillUncachedTokens",
    "total_prefill_uncached_tokens",
    "int",
    "tokens",
    "Uncached tokens prefilled since the start",
  ),
  f(
    "totalPrefillBusyUs",
    "total_prefill_busy_us",
    "int",
    "us",
    "Time spent in prefill since the start",
  ),
  f("decodeMoments", "decode_moments", "floats", "", "Moment sums of the decode step time"),
] as const satisfies readonly FieldSpec[];

/** The optional sections, in wire order. */
export const SECTIONS = [
  {
    name: "memory",
    wire: "memory",
    include: "memory",
    fields: [
      f("weightGb", "weight_gb", "float", "GB", "Memory of the weights"),
      f("kvCacheGb", "kv_cache_gb", "float", "GB", "Memory of the KV cache"),
      f("graphGb", "graph_gb", "float", "GB", "Memory of CUDA graphs"),
      f("tokenCapacity", "token_capacity", "int", "tokens", "Tokens that fit the KV cache"),
    ],
  },
  {
    name: "speculative",
    wire: "speculative",
    include: "spec",
    fields: [
      f("acceptLength", "accept_length", "float", "tokens", "Mean accepted draft length"),
      f("acceptRate", "accept_rate", "float", "", "Accepted share of draft tokens"),
    ],
  },
  {
    name: "lora",
    wire: "lora",
    include: "lora",
    fields: [
      f("slotsUsed", "slots_used", "int", "adapters", "Adapter slots in use"),
      f("slotsTotal", "slots_total", "int", "adapters", "Adapter slots"),
      f("utilization", "utilization", "float", "", "Used share of the adapter slots"),
    ],
  },
  {
    name: "disaggregation",
    wire: "disaggregation",
    include: "disagg",
    fields: [
      f("mode", "mode", "string", "", "prefill, decode or null"),
      f(
        "prefillBootstrapQueueReqs",
        "prefill_bootstrap_queue_reqs",
        "int",
        "requests",
        "Requests in the prefill bootstrap queue",
      ),
      f(
        "prefillInflightQueueReqs",
        "prefill_inflight_queue_reqs",
        "int",
        "requests",
        "Requests in the prefill in-flight queue",
      ),
      f(
        "decodePreallocQueueReqs",
        "decode_prealloc_queue_reqs",
        "int",
        "requests",
        "Requests in the decode preallocation queue",
      ),
      f(
        "decodeTransferQueueReqs",
        "decode_transfer_queue_reqs",
        "int",
        "requests",
        "Requests in the decode transfer queue",
      ),
      f(
        "decodeRetractedQueueReqs",
        "decode_retracted_queue_reqs",
        "int",
        "requests",
        "Requests in the decode retraction queue",
      ),
      f("kvTransferSpeedGbS", "kv_transfer_speed_gb_s", "float", "GB/s", "Speed of KV transfers"),
      f("kvTransferLatencyMs", "kv_transfer_latency_ms", "float", "ms", "Latency of KV transfers"),
    ],
  },
  {
    name: "queues",
    wire: "queues",
    include: "queues",
    fields: [
      f("waiting", "waiting", "int", "requests", "Requests in the waiting queue"),
      f("grammar", "grammar", "int", "requests", "Requests that wait for a grammar"),
      f("paused", "paused", "int", "requests", "Paused requests"),
      f("retracted", "retracted", "int", "requests", "Retracted requests"),
      f(
        "preallocReady",
        "prealloc_ready",
        "int",
        "requests",
        "Preallocated requests that are ready",
      ),
    ],
  },
] as const satisfies readonly SectionSpec[];

/** The names that `include` takes, sorted as SGLang lists them. */
export const INCLUDE_NAMES = ["all", "core", ...SECTIONS.map((section) => section.include)].sort();

function f<const Name extends string, const Wire extends string, const Type extends FieldType>(
  name: Name,
  wire: Wire,
  type: Type,
  unit: string,
  help: string,
) {
  return { name, wire, type, unit, help } as const;
}

/** Every single value in one numbering, so that a shape can say where each one stands. */
export const VALUES: readonly FieldSpec[] = [
  ...CORE_FIELDS,
  ...SECTIONS.flatMap((section): readonly FieldSpec[] => section.fields),
];

/** The number of a section's first value in {@linkcode VALUES}, by section. */
export const SECTION_START: readonly number[] = SECTIONS.map((section) =>
  VALUES.indexOf(section.fields[0])
);

/** How many core values there are: those of the sections follow them in {@linkcode VALUES}. */
export const CORE_COUNT: number = CORE_FIELDS.length;

/** The number of the decode moments in {@linkcode VALUES}, the only list. */
export const MOMENTS: number = VALUES.findIndex((field) => field.type === "floats");

/** The number of the mode in {@linkcode VALUES}, the only string. */
export const MODE: number = VALUES.findIndex((field) => field.type === "string");

/** By number in {@linkcode VALUES}: 1 for an integer. */
export const IS_INT: Uint8Array = Uint8Array.from(VALUES, ({ type }) => type === "int" ? 1 : 0);
