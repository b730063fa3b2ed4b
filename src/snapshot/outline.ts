/** What is taken out of a snapshot before anything is encoded. */

import { SECTION_START, SECTIONS, VALUES } from "./fields.ts";
import type { LoadSnapshot } from "./load_snapshot.ts";
import { formOf } from "./number_forms.ts";

/** How many words the forms of all values take. */
export const FORM_WORDS: number = Math.ceil(VALUES.length / 8);

const ALL_SECTIONS = (1 << SECTIONS.length) - 1;

/**
 * The numbers of one snapshot, in the order of the table, and what decides where they will stand.
 * One is used again and again, so that encoding allocates nothing.
 */
export class Outline {
  /** The numbers; 0 where a section is not there. */
  readonly values: Float64Array = new Float64Array(VALUES.length);
  /** The same, as pairs of words: NaN is equal to itself there, and -0.0 is not to 0. */
  readonly words: Int32Array = new Int32Array(this.values.buffer);
  /** The forms of the numbers, four bits each; see {@linkcode findForms}. */
  readonly forms: Int32Array = new Int32Array(FORM_WORDS);
  /** One bit for each section that is there, the first section's lowest. */
  sections = 0;
  /** The decode moments, or `null` without them. */
  moments: readonly number[] | null = null;
  /** How many there are, or -1 for none at all. */
  momentCount = -1;
  /** The disaggregation mode; empty without that section. */
  mode = "";
  /** Whether it has keys or elements that the table does not know. */
  hasUnknown = false;

  /**
   * Takes a snapshot.
   *
   * @param snapshot The snapshot; its types are checked, for it may come from JavaScript.
   * @throws {TypeError} If a field has the wrong type.
   */
  take(snapshot: LoadSnapshot): void {
    const { values } = this;
    const { memory, speculative, lora, disaggregation, queues } = snapshot;
    const before = this.sections;
    // Until the end of this is reached, there may be something of every section.
    this.sections = ALL_SECTIONS;
    let v = 0;
    let sections = 0;
    let hasUnknown = snapshot.extra !== null;
    values[v++] = number(snapshot.timestamp);
    values[v++] = number(snapshot.dpRank);
    values[v++] = number(snapshot.numRunningReqs);
    values[v++] = number(snapshot.numWaitingReqs);
    values[v++] = number(snapshot.numWaitingUncachedTokens);
    values[v++] = number(snapshot.numUsedTokens);
    values[v++] = number(snapshot.numTotalTokens);
    values[v++] = number(snapshot.numActiveTokens);
    values[v++] = number(snapshot.numPreallocReadyTokens);
    values[v++] = number(snapshot.maxTotalNumTokens);
    values[v++] = number(snapshot.maxRunningRequests);
    values[v++] = number(snapshot.tokenUsage);
    values[v++] = number(snapshot.genThroughput);
    values[v++] = number(snapshot.cacheHitRate);
    values[v++] = number(snapshot.utilization);
    values[v++] = number(snapshot.totalPrefillUncachedTokens);
    values[v++] = number(snapshot.totalPrefillBusyUs);
    if (memory !== null) {
      sections |= 1;
      if (memory.extra !== null) hasUnknown = true;
      v = SECTION_START[0]!;
      values[v++] = number(memory.weightGb);
      values[v++] = number(memory.kvCacheGb);
      values[v++] = number(memory.graphGb);
      values[v++] = number(memory.tokenCapacity);
    }
    if (speculative !== null) {
      sections |= 2;
      if (speculative.extra !== null) hasUnknown = true;
      v = SECTION_START[1]!;
      values[v++] = number(speculative.acceptLength);
      values[v++] = number(speculative.acceptRate);
    }
    if (lora !== null) {
      sections |= 4;
      if (lora.extra !== null) hasUnknown = true;
      v = SECTION_START[2]!;
      values[v++] = number(lora.slotsUsed);
      values[v++] = number(lora.slotsTotal);
      values[v++] = number(lora.utilization);
    }
    if (disaggregation !== null) {
      sections |= 8;
      if (disaggregation.extra !== null) hasUnknown = true;
      v = SECTION_START[3]! + 1; // The first is the mode, a string.
      values[v++] = number(disaggregation.prefillBootstrapQueueReqs);
      values[v++] = number(disaggregation.prefillInflightQueueReqs);
      values[v++] = number(disaggregation.decodePreallocQueueReqs);
      values[v++] = number(disaggregation.decodeTransferQueueReqs);
      values[v++] = number(disaggregation.decodeRetractedQueueReqs);
      values[v++] = number(disaggregation.kvTransferSpeedGbS);
      values[v++] = number(disaggregation.kvTransferLatencyMs);
    }
    if (queues !== null) {
      sections |= 16;
      if (queues.extra !== null) hasUnknown = true;
      v = SECTION_START[4]!;
      values[v++] = number(queues.waiting);
      values[v++] = number(queues.grammar);
      values[v++] = number(queues.paused);
      values[v++] = number(queues.retracted);
      values[v++] = number(queues.preallocReady);
    }
    this.hasUnknown = hasUnknown;
    this.moments = snapshot.decodeMoments;
    this.momentCount = momentCount(this.moments);
    this.mode = disaggregation === null ? "" : mode(disaggregation.mode);
    this.#clear(before & ~sections);
    this.sections = sections;
  }

  /**
   * Fills {@linkcode forms} in.
   *
   * @throws {RangeError} If an integer field is no integer, or beyond 2^53.
   */
  findForms(): void {
    const { forms, values } = this;
    forms.fill(0);
    for (let v = 0; v < values.length; v++) {
      forms[v >> 3] = forms[v >> 3]! | formOf(values[v]!, v) << ((v & 7) << 2);
    }
  }

  /** The form of one number, as it was found. */
  formAt(v: number): number {
    return this.forms[v >> 3]! >> ((v & 7) << 2) & 15;
  }

  #clear(sections: number): void {
    for (let s = 0; sections >> s !== 0; s++) {
      if ((sections >> s & 1) === 0) continue;
      const start = SECTION_START[s]!;
      this.values.fill(0, start, start + SECTIONS[s]!.fields.length);
    }
  }
}

function number(value: number): number {
  if (typeof value === "number") return value;
  throw new TypeError(`Cannot encode load snapshot: a field is ${typeof value}, not number`);
}

function mode(value: string): string {
  if (typeof value === "string") return value;
  throw new TypeError("Cannot encode load snapshot: mode is no string");
}

function momentCount(moments: readonly number[] | null): number {
  if (moments === null) return -1;
  if (Array.isArray(moments)) return moments.length;
  throw new TypeError("Cannot encode load snapshot: decodeMoments is neither an array nor null");
}
