/** What the simulated engine is made of: one set of sizes and speeds, the same for each rank. */

/** Sizes of one scheduler, as server arguments and a model would fix them. */
export const LIMITS = {
  /** Tokens that fit the KV pool. */
  maxTotalTokens: 262_144,
  maxRunningRequests: 96,
  /** Most prompt tokens of one prefill batch. */
  chunkTokens: 8_192,
  /** Decode steps between two prefill batches, so that running requests are not starved. */
  decodeStepsPerPrefill: 4,
  loraSlots: 8,
  /** Draft tokens that each running request proposes per decode step. */
  draftTokens: 3,
  /** Longest prompt and longest answer: together they fit the pool, so each request can finish. */
  maxPromptTokens: 65_536,
  maxOutputTokens: 8_192,
  /** What an answer usually takes; admission keeps a share of it free. */
  usualOutputTokens: 900,
} as const;

/** Where the accelerator's memory went, in GB; the KV cache is 70,272 bytes per token. */
export const MEMORY = { weightGb: 61.274, kvCacheGb: 18.421, graphGb: 2.406 } as const;

/** When a scheduler tells its load although no batch ran, in milliseconds. */
export const QUIET = {
  /** Between two publications while requests wait but none can run. */
  stalledMs: 50,
  /** Between two publications while there is nothing to do. */
  idleMs: 250,
} as const;
