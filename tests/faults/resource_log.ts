/** What long-lived processes hold, from time to time: memory, descriptors and threads stay flat. */

/** What one process holds at a moment. */
export interface Holding {
  readonly atSeconds: number;
  readonly residentMiB: number;
  readonly descriptors: number;
  readonly threads: number;
}

/** What a process held early and late in its life. */
export interface HoldingChange {
  readonly name: string;
  readonly early: Omit<Holding, "atSeconds">;
  readonly late: Omit<Holding, "atSeconds">;
}

/** V8 takes its time to know how much it needs. */
const WARM_UP = 0.25;
const LEAST_SAMPLES = 9;
/** What V8 may keep more of, or libc; a leak of one snapshot per publication would be far beyond. */
const SLACK_MIB = 32;
const SLACK_DESCRIPTORS = 2;
const SLACK_THREADS = 1;

/** Samples by process; one that ended starts anew. */
export class ResourceLog {
  readonly #samples = new Map<string, Holding[]>();

  /** Looks at processes now. */
  sample(pids: ReadonlyMap<string, number>, atSeconds: number): void {
    for (const [name, pid] of pids) {
      const holding = holdingOf(pid, atSeconds);
      if (holding === null) continue;
      const samples = this.#samples.get(name) ?? [];
      samples.push(holding);
      this.#samples.set(name, samples);
    }
  }

  /** Forgets a process that has ended. */
  leave(name: string): void {
    this.#samples.delete(name);
  }

  /** Early and late, for each process that has lived long enough. */
  changes(): HoldingChange[] {
    const changes: HoldingChange[] = [];
    for (const [name, all] of this.#samples) {
      const warm = all.slice(Math.floor(all.length * WARM_UP));
      if (warm.length < LEAST_SAMPLES) continue;
      const third = Math.floor(warm.length / 3);
      changes.push({ name, early: median(warm.slice(0, third)), late: median(warm.slice(-third)) });
    }
    return changes;
  }

  /** What has grown, in words. */
  growth(): string[] {
    return this.changes().flatMap(({ name, early, late }) => {
      const grown: string[] = [];
      const check = (what: keyof typeof early, slack: number) => {
        if (late[what] > early[what] + slack) {
          grown.push(`${name}: ${what} went from ${early[what]} to ${late[what]}`);
        }
      };
      check("residentMiB", SLACK_MIB);
      check("descriptors", SLACK_DESCRIPTORS);
      check("threads", SLACK_THREADS);
      return grown;
    });
  }
}

function holdingOf(pid: number, atSeconds: number): Holding | null {
  try {
    const status = Deno.readTextFileSync(`/proc/${pid}/status`);
    const number = (name: string) =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
    return {
      atSeconds,
      residentMiB: Math.round(number("VmRSS") / 1024),
      descriptors: [...Deno.readDirSync(`/proc/${pid}/fd`)].length,
      threads: number("Threads"),
    };
  } catch {
    // It has just ended.
    return null;
  }
}

function median(samples: readonly Holding[]): Omit<Holding, "atSeconds"> {
  const middle = (pick: (sample: Holding) => number) =>
    samples.map(pick).sort((a, b) => a - b)[samples.length >> 1]!;
  return {
    residentMiB: middle((sample) => sample.residentMiB),
    descriptors: middle((sample) => sample.descriptors),
    threads: middle((sample) => sample.threads),
  };
}
