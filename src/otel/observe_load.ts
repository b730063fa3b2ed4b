/** Loads and their health as observable gauges of OpenTelemetry. */

import { getLogger } from "npm:@logtape/logtape@2.4.2";
import {
  type Attributes,
  type BatchObservableResult,
  metrics,
  type ObservableGauge,
} from "npm:@opentelemetry/api@1.10.0";
import type { LoadReader } from "../load_reader.ts";
import { NUMBER_FIELDS } from "../snapshot/number_fields.ts";

/** Options of {@linkcode observeLoad}. */
export interface ObserveLoadOptions {
  /** What every sample carries besides its rank, such as which engine it is. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
}

/** Gauges that observe a reader until they are told to stop. */
export interface LoadObservation extends Disposable {
  /** Stops observing; the reader stays open. Twice is fine. */
  stop(): void;
}

/** What a collection looks at. */
interface LoadView {
  readonly health: ReturnType<LoadReader["health"]>;
  readonly loads: ReturnType<LoadReader["readAll"]>;
}

/** The rank, as SGLang's own metrics name it. */
const RANK = "dp_rank";

const STATES = ["unreported", "live", "stale", "corrupt"] as const;

/** Units of the table, as UCUM writes them; what is counted stands in braces. */
const UCUM: Readonly<Record<string, string>> = {
  "": "1",
  "GB": "GBy",
  "GB/s": "GBy/s",
  "tokens/s": "{token}/s",
  "requests": "{request}",
  "tokens": "{token}",
  "adapters": "{adapter}",
};

/**
 * Registers gauges that read a reader's load each time that the exporter collects.
 *
 * Every number of a snapshot is a gauge `sglang.<wire name>`, of a section `sglang.<section>.<wire
 * name>`, one sample for each rank that has told it (`dp_rank`). A rank that never reported has
 * none: it is not idle. `loadslots.rank.state` is 1 for the state that a rank is in and 0 for the
 * others, `loadslots.rank.age` its age in seconds. A reader that was closed yields nothing.
 *
 * Reading costs no system call while nothing changes, so a collection is cheap however often it
 * comes.
 *
 * @param reader Where load is read; it stays the caller's.
 * @param options What samples carry.
 * @returns The observation, to stop it.
 *
 * @example
 * ```ts
 * import { ShmLoadSnapshotReader, shmPathFor } from "./mod.ts";
 * import { observeLoad } from "./src/otel/mod.ts";
 *
 * using reader = new ShmLoadSnapshotReader(shmPathFor("my-engine"));
 * const observed = observeLoad(reader);
 * observed.stop();
 * ```
 */
export function observeLoad(reader: LoadReader, options: ObserveLoadOptions = {}): LoadObservation {
  const meter = metrics.getMeter("loadslots");
  const loads = NUMBER_FIELDS.map(({ metric, section, spec }) =>
    meter.createObservableGauge(`sglang.${section === null ? metric : dotted(metric)}`, {
      description: spec.help,
      unit: UCUM[spec.unit] ?? spec.unit,
    })
  );
  const state = meter.createObservableGauge("loadslots.rank.state", {
    description: "1 for the state that the rank is in, 0 for the others",
    unit: "1",
  });
  const age = meter.createObservableGauge("loadslots.rank.age", {
    description: "Age of the rank's last good snapshot",
    unit: "s",
  });
  const all: ObservableGauge[] = [...loads, state, age];
  const observe = (result: BatchObservableResult): void => {
    const { health, loads: newest } = lookAt(reader);
    const attributesOf = (dpRank: number): Attributes => ({
      ...options.attributes,
      [RANK]: dpRank,
    });
    for (const { dpRank, state: current, ageMs } of health) {
      const attributes = attributesOf(dpRank);
      for (const one of STATES) {
        result.observe(state, one === current ? 1 : 0, { ...attributes, state: one });
      }
      if (ageMs !== null) result.observe(age, ageMs / 1000, attributes);
    }
    for (const load of newest) {
      if (health[load.dpRank]?.state === "unreported") continue;
      const attributes = attributesOf(load.dpRank);
      NUMBER_FIELDS.forEach(({ valueIn }, at) => {
        const value = valueIn(load);
        if (value !== null) result.observe(loads[at]!, value, attributes);
      });
    }
  };
  meter.addBatchObservableCallback(observe, all);
  const stop = () => meter.removeBatchObservableCallback(observe, all);
  return { stop, [Symbol.dispose]: stop };
}

/** A reader that is closed, or fails, has nothing to tell, and an exporter nobody to throw at. */
function lookAt(reader: LoadReader): LoadView {
  try {
    return { health: reader.health(), loads: reader.readAll() };
  } catch (error) {
    getLogger(["loadslots", "otel"]).debug("Cannot observe load: {error}", { error });
    return { health: [], loads: [] };
  }
}

/** `spec_accept_rate` as `spec.accept_rate`: the section is a namespace. */
function dotted(metric: string): string {
  return metric.replace("_", ".");
}
