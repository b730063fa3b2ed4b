// @ts-check
/** Starts the page. */

export {};
