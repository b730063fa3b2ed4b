/** What the processes of the fault harness are told, and what they say: one JSON object a line. */

/** Where a writer publishes one rank. */
export interface OutputOrder {
  /** `"shm"` for a slot file, `"zmq"` for a collector. */
  readonly kind: "shm" | "zmq";
  /** The path or the endpoint. */
  readonly target: string;
  readonly dpSize: number;
  readonly dpRank: number;
  readonly incarnation: number;
}

/** The first argument of writer.ts and writer.py. */
export interface WriterOrder {
  readonly outputs: readonly OutputOrder[];
  /** From one round of publications to the next, in milliseconds. */
  readonly intervalMs: number;
  /** Now and then a writer publishes without a pause, for that many milliseconds. */
  readonly burstMs: number;
  /** Put on the timestamps of payloads, in milliseconds: a clock that is wrong. */
  readonly skewMs: number;
}

/** What a writer may be told later. */
export interface WriterTold {
  readonly skewMs?: number;
  /** To publish without a pause for that long. */
  readonly hotMs?: number;
}

/** What an observer may be told later. */
export interface ObserverTold {
  /** To be busy with something else for that long. */
  readonly blockMs?: number;
  /** To read without a pause for that long. */
  readonly hotMs?: number;
}

/** What a writer has done so far. */
export interface WriterReport {
  readonly kind: "writer";
  readonly publications: number;
  /** Why publishing failed, by the error's name and reason; the fault harness knows which may. */
  readonly refused: Readonly<Record<string, number>>;
}

/** One thing that an observer reads. */
export interface SourceOrder {
  /** What the engine is called in reports. */
  readonly name: string;
  /** The slot file; of a collector, the one that it keeps. */
  readonly path: string;
  /** Where to collect from; absent for a reader of the slot file only. */
  readonly endpoint?: string;
  /** How many ranks there must be; absent where restarts may change that. */
  readonly dpSize?: number;
  /** Whether its publications come over a network. */
  readonly isRemote: boolean;
}

/** The first argument of observer.ts. */
export interface ObserverOrder {
  readonly sources: readonly SourceOrder[];
  /** From one look to the next, in milliseconds. */
  readonly intervalMs: number;
}

/** Something that must never be. */
export interface Broken {
  readonly kind: "broken";
  readonly invariant: string;
  readonly detail: string;
}

/** How far an observer has come with one engine's rank: incarnation and number. */
export type Reached = readonly [incarnation: number, number: number];

/** What an observer has seen so far. */
export interface ObserverReport {
  readonly kind: "observer";
  readonly reads: number;
  readonly publications: number;
  /** Last words of dead writers that came late, over the network. */
  readonly late: number;
  /** Looks at the health of one rank, by its state. */
  readonly states: Readonly<Record<string, number>>;
  /** Updates that slow consumers got. */
  readonly updates: number;
  readonly lockMisses: number;
  readonly attaches: number;
  /** Why a path could not be read, by reason: how many looks found it so. */
  readonly faults: Readonly<Record<string, number>>;
  /** Reads that took longer than the deadline, by how much, and those that were waited for a core. */
  readonly deadline: DeadlineReport;
  /** How long new writers took to be read, from their first publication, in ms; new ones only. */
  readonly followedMs: readonly number[];
  /** By engine and rank. */
  readonly reached: Readonly<Record<string, Reached>>;
}

/** How reads kept their deadline: each is judged by the time that it really ran or waited itself. */
export interface DeadlineReport {
  readonly timed: number;
  readonly over5Ms: number;
  readonly over20Ms: number;
  readonly over100Ms: number;
  readonly longestMs: number;
  /** Reads that found a lock kept by another process, and how many of these took over 5 ms. */
  readonly missed: number;
  readonly missedOver5Ms: number;
}
