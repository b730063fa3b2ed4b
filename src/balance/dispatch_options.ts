/** What a budget can be told, when it is made and with each choice. */

import type { RankHealth } from "../slotfile/rank_health.ts";
import type { RandomSource } from "./chance.ts";

/**
 * How a rank is chosen:
 *
 * - `"expected_wait"`: the rank where the request is expected to wait least; only ranks that are
 *   live, by reports and by what was sent since. The default.
 * - `"round_robin"`, `"total_requests"`, `"total_tokens"`: as SGLang's data-parallel controller does,
 *   rule by rule. They know no health, and believe each report.
 */
export type DispatchMethod = "expected_wait" | "round_robin" | "total_requests" | "total_tokens";

/** Options of `DpBudget`. */
export interface DpBudgetOptions {
  /**
   * The clock, in milliseconds since 1970 as the reports' timestamps are, where a call brings no
   * time of its own.
   *
   * @default {Date.now}
   */
  readonly now?: () => number;
  /**
   * Numbers from 0 to below 1. It is asked for a seed when the budget is made; a source with a seed of
   * its own makes all choices repeatable.
   *
   * @default {Math.random}
   */
  readonly random?: RandomSource;
  /**
   * From which age of its report on a rank is left out, in milliseconds.
   *
   * @default {10_000}
   */
  readonly staleAfterMs?: number;
  /**
   * How long after its dispatch a request may be missing in a rank's report, in milliseconds: the
   * way to the rank, and a turn of its loop. Reports that were made earlier cannot hold it, and do
   * not wipe it out.
   *
   * @default {20}
   */
  readonly reportLagMs?: number;
  /**
   * How a rank says which requests its report holds. `"timestamp"`: by the time of the report, and
   * {@linkcode DpBudgetOptions.reportLagMs}. `"dispatch_seq"`: exactly, by
   * `last_accepted_dispatch_seq`, where the engine sends it and the caller gives each request its
   * ticket as dispatch sequence.
   *
   * @default {"timestamp"}
   */
  readonly acknowledgement?: "timestamp" | "dispatch_seq";
  /**
   * How many requests are remembered, 1 to 2^24. When there are more, the oldest are forgotten.
   *
   * @default {65_536}
   */
  readonly ledgerSize?: number;
  /**
   * How long a rank that was away takes until it gets its full share, in milliseconds.
   *
   * @default {5_000}
   */
  readonly rampMs?: number;
  /**
   * What to do when no rank may be chosen: throw a `NoRankAvailableError`, or take all that are not
   * drained in turn.
   *
   * @default {"throw"}
   */
  readonly whenNone?: "throw" | "round_robin";
  /**
   * How many ranks, taken at random, are compared for a choice. 2 is the power of two choices.
   *
   * @default {all; 4 in a group of more than 16 ranks while other routers are seen to send there}
   */
  readonly choices?: number;
  /**
   * How much each rank is to get beside the others, above 0; one value for each rank. Their speed
   * need not stand here: what is slower has longer waits. A router whose group changes its size
   * keeps those of the ranks that it still has; further ranks get 1.
   *
   * @default {1 for each}
   */
  readonly weights?: readonly number[];
  /**
   * How many routers spread requests over these ranks without seeing each other's. Left out, it is
   * estimated from what the ranks report beyond what was sent from here.
   */
  readonly routers?: number;
  /**
   * Time that a prefill takes per token, in milliseconds, where the engine does not count it.
   *
   * @default {0.05}
   */
  readonly prefillMsPerToken?: number;
  /**
   * How much longer than elsewhere a request may have to wait on the rank that holds its prefix, in
   * milliseconds.
   *
   * @default {100}
   */
  readonly affinitySlackMs?: number;
}

/** What one choice can be told. The object is only read, and may be used again. */
export interface DispatchOptions {
  /** Prompt tokens that are to be prefilled. Without it, what others had on average is taken. */
  readonly estimatedTokens?: number | undefined;
  /** A key of the prompt's prefix: requests with the same one go to the same rank, load permitting. */
  readonly prefixKey?: string | undefined;
  /** The rank that is known to hold the prefix; taken if its load permits. */
  readonly preferredRank?: number | undefined;
  /** The time, in milliseconds since 1970. */
  readonly nowMs?: number | undefined;
}

/** What an update can bring besides the loads. */
export interface UpdateOptions {
  /** What the reader's `health()` says; without it, the reports' timestamps decide. */
  readonly health?: readonly RankHealth[] | undefined;
  /** The time, in milliseconds since 1970. */
  readonly nowMs?: number | undefined;
}

/** {@linkcode DpBudgetOptions}, checked and with the defaults filled in. */
export type CheckedOptions = Required<Omit<DpBudgetOptions, "routers" | "choices">> & {
  readonly routers: number | null;
  readonly choices: number | null;
};

/** Fills in the defaults; throws a `RangeError` for what cannot be. */
export function checkOptions(dpSize: number, options: DpBudgetOptions): CheckedOptions {
  checkWhole("dpSize", dpSize, 65_535);
  const checked: CheckedOptions = {
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    staleAfterMs: options.staleAfterMs ?? 10_000,
    reportLagMs: options.reportLagMs ?? 20,
    acknowledgement: options.acknowledgement ?? "timestamp",
    ledgerSize: options.ledgerSize ?? 65_536,
    rampMs: options.rampMs ?? 5_000,
    whenNone: options.whenNone ?? "throw",
    choices: options.choices ?? null,
    weights: options.weights ?? Array.from({ length: dpSize }, () => 1),
    routers: options.routers ?? null,
    prefillMsPerToken: options.prefillMsPerToken ?? 0.05,
    affinitySlackMs: options.affinitySlackMs ?? 100,
  };
  for (const name of ["staleAfterMs", "reportLagMs", "rampMs", "affinitySlackMs"] as const) {
    if (!(checked[name] >= 0)) throw new RangeError(`Cannot use ${name} ${checked[name]}: below 0`);
  }
  checkWhole("ledgerSize", checked.ledgerSize, 2 ** 24);
  if (checked.choices !== null) checkWhole("choices", checked.choices, Infinity);
  if (checked.routers !== null) checkWhole("routers", checked.routers, 1e6);
  const { prefillMsPerToken, weights } = checked;
  if (!(prefillMsPerToken > 0 && prefillMsPerToken <= 10)) {
    throw new RangeError(`Cannot use prefillMsPerToken ${prefillMsPerToken}: not in 0..10`);
  }
  if (weights.length !== dpSize || !weights.every((weight) => weight >= 1e-3 && weight <= 1e3)) {
    throw new RangeError(`Cannot use weights: not one of 0.001..1000 for each of ${dpSize} ranks`);
  }
  return checked;
}

function checkWhole(name: string, value: number, most: number): void {
  const isWhole = Number.isInteger(value) || value === Infinity;
  if (!isWhole || value < 1 || value > most) {
    throw new RangeError(`Cannot use ${name} ${value}: not a whole number of 1..${most}`);
  }
}
