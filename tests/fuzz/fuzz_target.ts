/** Fuzzing of one target: changed inputs, of which those with a new outcome are changed again. */

import { Mutator } from "../support/mutator.ts";
import type { Target } from "./target.ts";

/** Inputs that are kept, at most; a new one then takes the place of another. */
const MAX_POOL = 2_000;
/** Outcomes that are told apart, at most. */
const MAX_OUTCOMES = 20_000;
/** The longest input that is kept. */
const MAX_KEPT_BYTES = 4_096;

/** What came of fuzzing a target. */
export interface FuzzResult {
  readonly target: string;
  readonly executions: number;
  readonly seconds: number;
  /** Each outcome, and the shortest input that had it. */
  readonly outcomes: ReadonlyMap<string, Uint8Array>;
  readonly pool: number;
}

/** An input that breaks what must hold. */
export class FuzzFailure extends Error {
  /** The name of the class. */
  override readonly name = "FuzzFailure";

  constructor(target: string, input: Uint8Array, number: number, seed: number, cause: unknown) {
    const how = `--target ${target} --input ${input.toHex()}`;
    super(`Cannot hold for input ${number} of seed ${seed}: ${cause}\n${how}`, { cause });
  }
}

/**
 * Gives a target inputs.
 *
 * @param corpus Inputs of former runs.
 * @param seed Which inputs; the same ones on every machine.
 * @throws {FuzzFailure} With the first input for which something does not hold.
 */
export async function fuzzTarget(
  target: Target,
  corpus: readonly Uint8Array[],
  executions: number,
  seed: number,
): Promise<FuzzResult> {
  const pool = [...target.seeds, ...corpus];
  const first = pool.length;
  const mutator = new Mutator(pool, seed);
  const outcomes = new Map<string, Uint8Array>();
  const start = performance.now();
  for (let number = 0; number < executions; number++) {
    const input = number < first ? pool[number]! : mutator.next();
    let outcome: string;
    try {
      const told = target.execute(input);
      outcome = typeof told === "string" ? told : await told;
    } catch (error) {
      throw new FuzzFailure(target.name, input, number, seed, error);
    }
    const known = outcomes.get(outcome);
    if (known === undefined ? outcomes.size < MAX_OUTCOMES : input.length < known.length) {
      outcomes.set(outcome, input);
    }
    if (known !== undefined || number < first || input.length > MAX_KEPT_BYTES) continue;
    if (pool.length < MAX_POOL) pool.push(input);
    else pool[first + number % Math.max(1, MAX_POOL - first)] = input;
  }
  const seconds = (performance.now() - start) / 1000;
  return { target: target.name, executions, seconds, outcomes, pool: pool.length };
}
