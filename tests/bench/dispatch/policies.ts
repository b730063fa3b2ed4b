/** Who chooses a rank: SGLang, loadslots, chance, turns, and an oracle. Each router has its own. */

import { Random } from "../../../examples/engine/random.ts";
import { DpBudget } from "../../../src/balance/dp_budget.ts";
import type { DpBudgetOptions } from "../../../src/balance/dispatch_options.ts";
import type { LoadSnapshot } from "../../../src/snapshot/load_snapshot.ts";
import type { RankModel, SimRequest } from "./rank_model.ts";

/** SGLang's controller reads the loads at most this often, before a dispatch; so does ours here. */
const REFRESH_MS = 20;

/** What a router sees of the world. */
export interface View {
  readonly ranks: number;
  readonly seed: number;
  readonly router: number;
  readonly staleAfterMs: number;
  /** What is published and has arrived. */
  readLoads(): LoadSnapshot[];
  /** The Unix time that goes with the loads, in ms. */
  unixMs(): number;
  /** The truth, for the oracle alone. */
  readonly truth: readonly RankModel[];
}

/** One router. */
export interface Policy {
  choose(request: SimRequest): number;
  onComplete(request: SimRequest): void;
}

/** A router that need not know how long a prompt is. */
interface LengthPolicy extends Policy {
  choose(request: SimRequest, isLengthKnown?: boolean): number;
}

/** Makes a router. */
export type PolicyMaker = (view: View) => Policy;

/** Those that are compared, by name. */
export const POLICIES = {
  "SGLang total_requests": (view) => sglang(view, "total_requests"),
  "SGLang total_tokens": (view) => sglang(view, "total_tokens"),
  "loadslots": (view) => expectedWait(view),
  "loadslots, no lengths": withoutLengths,
  "round robin": (view) => {
    let next = view.router % view.ranks;
    return { choose: () => (next = (next + 1) % view.ranks), onComplete: () => {} };
  },
  "random": (view) => {
    const random = new Random(view.seed, 100 + view.router);
    return { choose: () => random.index(view.ranks), onComplete: () => {} };
  },
  "oracle": oracle,
} as const satisfies Readonly<Record<string, PolicyMaker>>;

/** The name of one who chooses. */
export type PolicyName = keyof typeof POLICIES;

/** SGLang's algorithm, with its refresh; tests/peers compares `DpBudget` with its own. */
function sglang(view: View, method: "total_requests" | "total_tokens"): Policy {
  const budget = new DpBudget(view.ranks, { now: () => view.unixMs() });
  const refresh = refresher(view, budget);
  return {
    choose({ promptTokens }) {
      refresh();
      // Its controller gives the prompt's length to total_tokens only.
      const estimatedTokens = method === "total_tokens" ? promptTokens : undefined;
      return budget.dispatch(method, { estimatedTokens });
    },
    onComplete: () => {},
  };
}

/** Ours, as it comes; options are for trying things out. */
export function expectedWait(view: View, options: DpBudgetOptions = {}): LengthPolicy {
  const random = new Random(view.seed, 200 + view.router);
  const budget = new DpBudget(view.ranks, {
    now: () => view.unixMs(),
    random: () => random.uniform(),
    staleAfterMs: view.staleAfterMs,
    ...options,
  });
  const refresh = refresher(view, budget);
  return {
    choose(request, isLengthKnown = true) {
      refresh();
      const estimatedTokens = isLengthKnown ? request.promptTokens : undefined;
      const rank = budget.dispatch("expected_wait", { estimatedTokens });
      request.ticket = budget.lastTicket;
      return rank;
    },
    onComplete: ({ ticket }) => void budget.complete(ticket),
  };
}

/** Ours where the prompts' lengths are not known. */
function withoutLengths(view: View): Policy {
  const policy = expectedWait(view);
  return { ...policy, choose: (request) => policy.choose(request, false) };
}

function refresher(view: View, budget: DpBudget): () => void {
  let lastMs = -Infinity;
  return () => {
    const nowMs = view.unixMs();
    if (nowMs - lastMs < REFRESH_MS) return;
    lastMs = nowMs;
    budget.update(view.readLoads());
  };
}

/** Knows everything at once, each answer's length included; takes the earliest first token. */
function oracle(view: View): Policy {
  return {
    choose({ promptTokens, outputTokens }) {
      let found = 0;
      let least = Infinity;
      for (const rank of view.truth) {
        if (!rank.isAlive) continue;
        // As with ours, what runs is spread evenly where nobody waits.
        const cost = rank.trueWaitMs(promptTokens, outputTokens) + rank.prefillMs(promptTokens) +
          rank.fill() * 50;
        if (cost < least) {
          least = cost;
          found = rank.dpRank;
        }
      }
      return found;
    },
    onComplete: () => {},
  };
}
