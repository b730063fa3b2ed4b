/** `GET /metrics`: loads, and how far they can be trusted, as gauges of prom-client. */

import client from "npm:prom-client@15.1.3";
import type { RankHealth, RankState } from "../slotfile/rank_health.ts";
import type { FieldSpec } from "../snapshot/fields.ts";
import type { LoadSnapshot } from "../snapshot/load_snapshot.ts";
import type { GuardedReader } from "./guarded_reader.ts";
import { NUMBER_FIELDS } from "../snapshot/number_fields.ts";
import type { StreamCounts } from "./stream/load_feed.ts";

const STATES: readonly RankState[] = ["unreported", "live", "stale", "corrupt"];
const RANK = ["dp_rank"];

/**
 * The gauges of one handler, in a registry of their own.
 *
 * Loads have the names of `/v1/loads?format=prometheus`. A rank that never reported has none: it is
 * not idle. What it last said stays when it turns stale, beside its state and age.
 */
export class LoadMetrics {
  readonly #reader: GuardedReader;
  readonly #counts: () => StreamCounts;
  readonly #registry = new client.Registry();
  readonly #loads: readonly client.Gauge[];
  readonly #up = this.#gauge("loadslots_up", "Whether load can be read, 0 or 1");
  readonly #dpSize = this.#gauge("loadslots_dp_size", "Data-parallel ranks of the group");
  readonly #state = this.#gauge(
    "loadslots_rank_state",
    "1 for the state that the rank is in, 0 for the others",
    [...RANK, "state"],
  );
  readonly #age = this.#gauge(
    "loadslots_rank_age_seconds",
    "Age of the rank's last good snapshot, in seconds",
    RANK,
  );
  readonly #clients = this.#gauge("loadslots_stream_clients", "Clients of the live stream");
  readonly #opened = this.#counter("loadslots_streams_opened_total", "Streams that were opened");
  readonly #refused = this.#counter(
    "loadslots_streams_refused_total",
    "Streams that were refused because there were too many",
  );
  readonly #dropped = this.#counter(
    "loadslots_streams_dropped_total",
    "Streams that were ended because their client did not read",
  );

  constructor(reader: GuardedReader, counts: () => StreamCounts) {
    this.#reader = reader;
    this.#counts = counts;
    this.#loads = NUMBER_FIELDS.map(({ metric, spec }) =>
      this.#gauge(`sglang_${metric}`, helpOf(spec), RANK)
    );
  }

  /** All metrics as text, as of now. */
  async text(): Promise<string> {
    // Everything is set and read in one go, so that two scrapes at once do not mix.
    this.#registry.resetMetrics();
    const loads = this.#reader.loads(null);
    const health = this.#reader.health();
    const isUp = loads.state === "ok" && health.state === "ok";
    this.#up.set(isUp ? 1 : 0);
    if (isUp) {
      if (this.#reader.dpSize !== null) this.#dpSize.set(this.#reader.dpSize);
      for (const rank of health.value) this.#showHealth(rank);
      for (const load of loads.value) {
        if (health.value[load.dpRank]?.state !== "unreported") this.#showLoad(load);
      }
    }
    const counts = this.#counts();
    this.#clients.set(counts.clients);
    this.#opened.inc(counts.opened);
    this.#refused.inc(counts.refused);
    this.#dropped.inc(counts.dropped);
    return await this.#registry.metrics();
  }

  #showLoad(load: LoadSnapshot): void {
    const labels = { dp_rank: load.dpRank };
    NUMBER_FIELDS.forEach(({ valueIn }, at) => {
      const value = valueIn(load);
      if (value !== null) this.#loads[at]!.set(labels, value);
    });
  }

  #showHealth({ dpRank, state, ageMs }: RankHealth): void {
    for (const one of STATES) {
      this.#state.set({ dp_rank: dpRank, state: one }, one === state ? 1 : 0);
    }
    if (ageMs !== null) this.#age.set({ dp_rank: dpRank }, ageMs / 1000);
  }

  #gauge(name: string, help: string, labelNames: string[] = []): client.Gauge {
    return new client.Gauge({ name, help, labelNames, registers: [this.#registry] });
  }

  #counter(name: string, help: string): client.Counter {
    return new client.Counter({ name, help, registers: [this.#registry] });
  }
}

function helpOf({ help, unit }: FieldSpec): string {
  return unit === "" ? help : `${help}, in ${unit}`;
}
