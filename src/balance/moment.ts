/**
 * Numbers that the parts of a budget share while it makes a choice.
 *
 * They stand in an array and are not passed as arguments or returned: a number with a fraction that
 * crosses a call is an object on the heap, and a dispatch is to leave none.
 */

/** The places in a {@linkcode Moment}. */
export const NOW_MS = 0;
/** The prefill work of all requests that no report holds yet, in ms. */
export const PENDING_MS = 1;
/** The prefill work of the request, on an average rank, in ms. */
export const REQUEST_MS = 2;
/** How many requests others send for each one that is sent from here. */
export const PER_OWN = 3;
/** Work that others were taken to have sent unseen, in ms. */
export const UNSEEN_MS = 4;

/** The shared numbers. */
export type Moment = Float64Array;

/** Makes them, all 0. */
export function makeMoment(): Moment {
  return new Float64Array(5);
}
