/** Rounds of several sides in turn, so that what disturbs the machine disturbs all of them. */

import type { SideProcess } from "./side_process.ts";

/**
 * Times all sides, one after the other, round by round.
 *
 * @param sides By name.
 * @param rounds How many rounds.
 * @param onRound Is told each round that is done, from 1.
 * @returns Nanoseconds per call, by name and round.
 */
export async function alternate(
  sides: ReadonlyMap<string, SideProcess>,
  rounds: number,
  onRound: (round: number) => void,
): Promise<Record<string, number[]>> {
  const samples: Record<string, number[]> = {};
  for (let round = 1; round <= rounds; round++) {
    for (const [name, side] of sides) (samples[name] ??= []).push(await side.round());
    onRound(round);
  }
  return samples;
}
