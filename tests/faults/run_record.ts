/** What a run of the fault harness has come to: counts, faults, and invariants that were broken. */

import type { Message } from "./actor.ts";
import { Tally } from "./actors/lines.ts";
import type { Broken, DeadlineReport, ObserverReport, WriterReport } from "./actors/orders.ts";
import { ResourceLog } from "./resource_log.ts";

/** An invariant that did not hold. */
export interface BrokenInvariant {
  readonly invariant: string;
  readonly detail: string;
  /** Since the start of the run. */
  readonly atSeconds: number;
}

/** Longest that is ever waited for a new writer to be read; on a busy machine one second is not. */
const FOLLOWED_LIMIT_MS = 15_000;
/** After so many the same fault is no news any more. */
const MOST_BROKEN = 200;
/** Readers that no fault stops or kills: they have to keep their deadline. */
const UNDISTURBED = ["resident", "poor"];

/** Everything that is counted. */
export class RunRecord {
  readonly broken: BrokenInvariant[] = [];
  /** Faults by kind. */
  readonly faults: Tally = new Tally();
  /** What happened that is nobody's fault. */
  readonly notes: Tally = new Tally();
  readonly leftOut: string[] = [];
  readonly resources: ResourceLog = new ResourceLog();
  /** How long each new writer took to be read, in milliseconds. */
  readonly followedMs: number[] = [];
  /** How long the writes to the file that is read took, and to the one that is not. */
  latencies: readonly Readonly<Record<string, number>>[] = [];
  readonly #startMs = performance.now();
  // The last report of each actor that runs, and what those that have ended have come to.
  readonly #observers = new Map<string, ObserverReport>();
  readonly #writers = new Map<string, WriterReport>();
  readonly #past: Tally = new Tally();
  #sglangReads = 0;
  readonly #pastByName: Record<"state" | "refused" | "fault", Tally> = {
    state: new Tally(),
    refused: new Tally(),
    fault: new Tally(),
  };

  /** Seconds since the start. */
  get seconds(): number {
    return (performance.now() - this.#startMs) / 1000;
  }

  /** Notes an invariant that did not hold. */
  breaks(invariant: string, detail: string): void {
    if (this.broken.length >= MOST_BROKEN) return this.notes.add("further broken invariants");
    this.broken.push({ invariant, detail, atSeconds: Math.round(this.seconds * 10) / 10 });
  }

  /** Notes something that happened. */
  note(what: string): void {
    this.notes.add(what);
  }

  /** Notes what this machine does not allow. */
  leaveOut(what: string): void {
    this.leftOut.push(what);
  }

  /** Takes what an actor says. */
  hear(name: string, message: Message): void {
    if (message.kind === "broken") {
      const { invariant, detail } = message as unknown as Broken;
      this.breaks(invariant, `${name}: ${detail}`);
    } else if (message.kind === "observer") {
      const report = message as unknown as ObserverReport;
      this.#observers.set(name, report);
      if (name === "resident") this.#takeFollowed(report.followedMs);
    } else if (message.kind === "writer") {
      this.#writers.set(name, message as unknown as WriterReport);
      if (name === "quiet") this.latencies = message["latencies"] as typeof this.latencies;
    } else if (message.kind === "python-reader") {
      this.#sglangReads = message["reads"] as number;
    }
  }

  /** Adds what an actor had come to when it ended to what is past. */
  leave(name: string): void {
    const observer = this.#observers.get(name);
    const writer = this.#writers.get(name);
    this.#observers.delete(name);
    this.#writers.delete(name);
    this.resources.leave(name);
    if (name === "sglang-reader") this.#past.add("sglangReads", this.#takeSglangReads());
    if (observer !== undefined) this.#add(observer, this.#past, this.#pastByName);
    if (writer !== undefined) {
      this.#past.add("published", writer.publications);
      addAll(this.#pastByName.refused, writer.refused);
    }
  }

  /** All counts so far. */
  totals() {
    const sums = new Tally();
    addAll(sums, this.#past.counts);
    const byName = { state: new Tally(), refused: new Tally(), fault: new Tally() };
    addAll(byName.state, this.#pastByName.state.counts);
    addAll(byName.refused, this.#pastByName.refused.counts);
    addAll(byName.fault, this.#pastByName.fault.counts);
    for (const report of this.#observers.values()) this.#add(report, sums, byName);
    for (const { publications, refused } of this.#writers.values()) {
      sums.add("published", publications);
      addAll(byName.refused, refused);
    }
    return {
      reads: sums.counts["reads"] ?? 0,
      readsOfSglangsReader: (sums.counts["sglangReads"] ?? 0) + this.#sglangReads,
      published: sums.counts["published"] ?? 0,
      publicationsSeen: sums.counts["seen"] ?? 0,
      updatesOfSlowConsumers: sums.counts["updates"] ?? 0,
      lockMisses: sums.counts["lockMisses"] ?? 0,
      attaches: sums.counts["attaches"] ?? 0,
      lateLastWords: sums.counts["late"] ?? 0,
      states: byName.state.counts,
      refusedWrites: byName.refused.counts,
      pathFaultsSeen: byName.fault.counts,
    };
  }

  /** How readers that nothing disturbs kept their deadline. */
  deadline(): DeadlineReport {
    const all = UNDISTURBED.flatMap((name) => this.#observers.get(name)?.deadline ?? []);
    const sum = (name: keyof DeadlineReport) => all.reduce((total, each) => total + each[name], 0);
    return {
      timed: sum("timed"),
      over5Ms: sum("over5Ms"),
      over20Ms: sum("over20Ms"),
      over100Ms: sum("over100Ms"),
      missed: sum("missed"),
      missedOver5Ms: sum("missedOver5Ms"),
      longestMs: Math.max(0, ...all.map(({ longestMs }) => longestMs)),
    };
  }

  /** Judges what only a whole run can be judged by. */
  judge(): void {
    const { timed, over20Ms, over100Ms, longestMs, missed, missedOver5Ms } = this.deadline();
    // A machine that is busy makes a few of them; a read that waits for a lock makes thousands.
    if (over20Ms > 10 + timed * 2e-4 || over100Ms > 5 + timed * 2e-5) {
      const detail = `of ${timed} reads ${over20Ms} took over 20 ms, the longest ${longestMs} ms`;
      this.breaks("deadline", detail);
    }
    if (missedOver5Ms > 10 + missed * 0.02) {
      const detail = `of ${missed} reads that found a lock kept ${missedOver5Ms} took over 5 ms`;
      this.breaks("deadline", detail);
    }
    for (const fault of this.resources.growth()) this.breaks("flat", fault);
  }

  #takeSglangReads(): number {
    const reads = this.#sglangReads;
    this.#sglangReads = 0;
    return reads;
  }

  #takeFollowed(followedMs: readonly number[]): void {
    for (const ms of followedMs) {
      this.followedMs.push(Math.round(ms * 10) / 10);
      if (ms > FOLLOWED_LIMIT_MS) this.breaks("followed", `a new writer was read after ${ms} ms`);
    }
  }

  #add(report: ObserverReport, sums: Tally, byName: { state: Tally; fault: Tally }): void {
    sums.add("reads", report.reads);
    sums.add("seen", report.publications);
    sums.add("updates", report.updates);
    sums.add("lockMisses", report.lockMisses);
    sums.add("attaches", report.attaches);
    sums.add("late", report.late);
    addAll(byName.state, report.states);
    addAll(byName.fault, report.faults);
  }
}

function addAll(tally: Tally, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) tally.add(name, count);
}
