/** The report of a run: a table for people, the same as JSON for programs. */

import type { HoldingChange } from "./resource_log.ts";
import type { BrokenInvariant, RunRecord } from "./run_record.ts";
import type { DeadlineReport } from "./actors/orders.ts";

/** Times in milliseconds. */
export interface Times {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** How many took longer than a second. */
  readonly overOneSecond: number;
}

/** What a run came to. */
export interface SoakReport {
  readonly seed: number;
  readonly minutes: number;
  readonly leftOut: readonly string[];
  readonly faults: Readonly<Record<string, number>>;
  readonly totals: ReturnType<RunRecord["totals"]>;
  readonly followedMs: Times;
  readonly deadline: DeadlineReport;
  /** SGLang's `write`, in microseconds: of a file with readers, and of one without, in turn. */
  readonly writeUs: readonly {
    readonly p50: number;
    readonly p99: number;
    readonly p999: number;
  }[];
  readonly resources: readonly HoldingChange[];
  readonly notes: Readonly<Record<string, number>>;
  readonly broken: readonly BrokenInvariant[];
}

/** Sums up times. */
export function timesOf(values: readonly number[]): Times {
  const ordered = values.toSorted((a, b) => a - b);
  const at = (share: number) =>
    ordered[Math.min(ordered.length - 1, Math.floor(ordered.length * share))];
  return {
    count: ordered.length,
    p50: at(0.5) ?? 0,
    p99: at(0.99) ?? 0,
    max: ordered.at(-1) ?? 0,
    overOneSecond: ordered.filter((ms) => ms > 1000).length,
  };
}

/** A share of what was counted by powers of 2 ** (1 / 8) nanoseconds, in microseconds. */
function shareOf(counts: Readonly<Record<string, number>>, share: number): number {
  const buckets = Object.entries(counts).map(([power, count]) => [Number(power), count] as const)
    .sort(([a], [b]) => a - b);
  let rest = buckets.reduce((sum, [, count]) => sum + count, 0) * share;
  for (const [power, count] of buckets) {
    rest -= count;
    if (rest <= 0) return Math.round(2 ** ((power + 1) / 8) / 100) / 10;
  }
  return 0;
}

/** Makes the report. */
export function reportOf(record: RunRecord, seed: number, minutes: number): SoakReport {
  return {
    seed,
    minutes,
    leftOut: record.leftOut,
    faults: sorted(record.faults.counts),
    totals: record.totals(),
    followedMs: timesOf(record.followedMs),
    deadline: record.deadline(),
    writeUs: record.latencies.map((counts) => ({
      p50: shareOf(counts, 0.5),
      p99: shareOf(counts, 0.99),
      p999: shareOf(counts, 0.999),
    })),
    resources: record.resources.changes(),
    notes: record.notes.counts,
    broken: record.broken,
  };
}

function sorted(counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).sort(([, a], [, b]) => b - a));
}

/** The table. */
export function tableOf(report: SoakReport): string {
  const lines: string[] = [];
  const row = (name: string, value: unknown) => lines.push(`  ${name.padEnd(34)} ${value}`);
  const counts = (all: Readonly<Record<string, number>>) =>
    Object.entries(all).map(([name, count]) => `${name} ${count}`).join(", ") || "none";
  const { totals, followedMs, deadline, writeUs } = report;
  lines.push(`Soak of ${report.minutes.toFixed(1)} minutes, --seed ${report.seed}`);
  row("reads", `${totals.reads}, and ${totals.readsOfSglangsReader} of SGLang's reader`);
  row("publications", `${totals.published} written, ${totals.publicationsSeen} seen by readers`);
  row("updates of slow consumers", totals.updatesOfSlowConsumers);
  row("files attached", totals.attaches);
  row("ranks found in a state", counts(totals.states));
  row("paths that could not be read", counts(totals.pathFaultsSeen));
  row("writes refused", counts(totals.refusedWrites));
  row("late last words of dead writers", totals.lateLastWords);
  row(
    "new writers followed",
    `${followedMs.count}, p50 ${followedMs.p50} ms, p99 ${followedMs.p99} ms, max ${followedMs.max} ms`,
  );
  row("of these after more than 1 s", followedMs.overOneSecond);
  row(
    "reads over 5, 20, 100 ms",
    `${deadline.over5Ms}, ${deadline.over20Ms}, ${deadline.over100Ms} of ${deadline.timed}; longest ${
      deadline.longestMs.toFixed(1)
    } ms`,
  );
  row("reads that found a lock kept", `${deadline.missed}, over 5 ms ${deadline.missedOver5Ms}`);
  writeUs.forEach(({ p50, p99, p999 }, index) => {
    const name = `SGLang's write, ${index === 0 ? "with" : "without"} readers`;
    row(name, `p50 ${p50}, p99 ${p99}, p99.9 ${p999} us`);
  });
  for (const { name, early, late } of report.resources) {
    const change = (what: keyof typeof early) => `${early[what]} -> ${late[what]}`;
    row(
      `${name}: MiB, descriptors, threads`,
      `${change("residentMiB")}, ${change("descriptors")}, ${change("threads")}`,
    );
  }
  lines.push("Faults");
  for (const [kind, count] of Object.entries(report.faults)) row(kind, count);
  for (const left of report.leftOut) lines.push(`Left out: ${left}`);
  for (const [note, count] of Object.entries(report.notes)) row(note, count);
  lines.push(`Invariants broken: ${report.broken.length}`);
  for (const { invariant, detail, atSeconds } of report.broken) {
    lines.push(`  ${invariant} after ${atSeconds} s: ${detail}`);
  }
  return lines.join("\n");
}
