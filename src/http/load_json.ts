/** Loads as JSON text. A rank's text is made once for each snapshot, and put together ever after. */

import type { RankHealth } from "../slotfile/rank_health.ts";
import { SECTIONS } from "../snapshot/fields.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import { toDict } from "../snapshot/to_dict.ts";

/** Which sections are shown: one bit for each, in the order of the field table. */
export type Sections = number;

/** What SGLang's answer says of the engine besides its load. */
export interface EngineDescription {
  /** SGLang's version. @default {"unknown"} */
  readonly version?: string;
  /** The accelerator's name. @default {null} */
  readonly accelerator?: string | null;
  /** Accelerators behind one data-parallel rank. @default {null} */
  readonly numAccelerators?: number | null;
}

/** Makes the texts. */
export class LoadJson {
  readonly #engine: string;
  // A snapshot is the same object until its rank publishes again; its texts go when it goes.
  readonly #texts = new WeakMap<LoadSnapshot, (string | undefined)[]>();
  #lastLoads: readonly LoadSnapshot[] = [];
  #lastSections: Sections = -1;
  #lastText = "";

  constructor(engine: EngineDescription) {
    const { version = "unknown", accelerator = null, numAccelerators = null } = engine;
    this.#engine = `"version":${JSON.stringify(version)},` +
      `"accelerator":${JSON.stringify(accelerator)},` +
      `"num_accelerators":${JSON.stringify(numAccelerators)}`;
  }

  /**
   * One rank, as SGLang's `to_dict` has it. JSON has neither NaN nor infinity: they are `null`.
   */
  load(snapshot: LoadSnapshot, sections: Sections): string {
    let texts = this.#texts.get(snapshot);
    if (texts === undefined) this.#texts.set(snapshot, texts = []);
    return texts[sections] ??= JSON.stringify(toDict(snapshot, namesOf(sections)));
  }

  /** One rank with how far it can be trusted. */
  freshLoad(snapshot: LoadSnapshot, sections: Sections, health: RankHealth | undefined): string {
    return `${this.load(snapshot, sections).slice(0, -1)},${freshness(health)}}`;
  }

  /** All that SGLang's `/v1/loads` answers. */
  answer(loads: readonly LoadSnapshot[], sections: Sections): string {
    if (!this.#isLast(loads, sections)) {
      this.#lastText = loads.map((load) => this.load(load, sections)).join();
      this.#lastLoads = loads;
      this.#lastSections = sections;
    }
    return this.#envelope(this.#lastText);
  }

  /** The same, with age and state of each rank. */
  freshAnswer(
    loads: readonly LoadSnapshot[],
    sections: Sections,
    health: readonly RankHealth[],
  ): string {
    return this.#envelope(
      loads.map((load) => this.freshLoad(load, sections, health[load.dpRank])).join(),
    );
  }

  #envelope(loads: string): string {
    return `{"timestamp":"${isoTime()}",${this.#engine},"loads":[${loads}]}`;
  }

  #isLast(loads: readonly LoadSnapshot[], sections: Sections): boolean {
    const last = this.#lastLoads;
    if (sections !== this.#lastSections || loads.length !== last.length) return false;
    for (let at = 0; at < loads.length; at++) if (loads[at] !== last[at]) return false;
    return true;
  }
}

/** Age and state as members of a JSON object, without the braces. */
export function freshness(health: RankHealth | undefined): string {
  return `"age_ms":${wholeMs(health?.ageMs ?? null)},"state":"${health?.state ?? "unreported"}"`;
}

/** An age as JSON. */
export function wholeMs(ageMs: number | null): string {
  return ageMs === null ? "null" : `${Math.round(ageMs)}`;
}

/** The time now as Python's `isoformat` writes it, which SGLang answers with. */
export function isoTime(): string {
  return `${new Date().toISOString().slice(0, -1)}000+00:00`;
}

function namesOf(sections: Sections): string[] {
  const names = SECTIONS.filter((_, at) => (sections & (1 << at)) !== 0);
  return ["core", ...names.map(({ include }) => include)];
}
