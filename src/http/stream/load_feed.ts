/** The live stream: one watch of the reader, while anybody listens, for all who do. */

import { clearImmediate, setImmediate } from "node:timers";
import { getLogger } from "npm:@logtape/logtape@2.4.2";
import type { LoadReader } from "../../load_reader.ts";
import type { GuardedReader } from "../guarded_reader.ts";
import { isoTime, type LoadJson } from "../load_json.ts";
import { eventText, RETRY_TEXT, seenSeq } from "./event_text.ts";
import { RankChanges } from "./rank_changes.ts";
import { type NewsSource, StreamClient } from "./stream_client.ts";

/** What streams may cost. */
export interface StreamLimits {
  /** Most streams at once. */
  readonly maxClients: number;
  /** How long a client may leave its news waiting, in ms. */
  readonly slowAfterMs: number;
  /** How long a stream may last, in ms. */
  readonly maxStreamMs: number;
}

/** What became of streams. All but `clients` only grow. */
export interface StreamCounts {
  /** Clients that listen now. */
  readonly clients: number;
  /** Streams that were opened. */
  readonly opened: number;
  /** Streams that were refused because there were too many. */
  readonly refused: number;
  /** Streams that were ended because their client did not read. */
  readonly dropped: number;
}

/** A stream, or why there is none. */
export type OpenedStream =
  | { readonly state: "ok"; readonly body: ReadableStream<Uint8Array<ArrayBuffer>> }
  | { readonly state: "full" }
  | { readonly state: "closed" }
  | { readonly state: "failed"; readonly reason: string };

/** Why the server ends a stream; the event `bye` tells it. */
const REASONS = {
  slow: "the client does not read: its news waited for too long",
  time: "the stream lasted for as long as the server lets one",
  closing: "the server closes",
  closed: "the reader of load was closed",
  failed: "the reader of load failed",
} as const;

/** How often states, slow clients and long streams are looked for. */
const CHECK_MS = 250;
/** The ranks' states are told at least this often, so that a silent connection is a broken one. */
const HEALTH_MS = 5000;
/** Ages in an event are at most this old. */
const FRESH_MS = 20;
/** What comes within this time is told together. */
const GATHER_MS = 2;
/** However much telling all clients costs, they are not let wait for longer. */
const LONGEST_GATHER_MS = 100;

/** Feeds all clients; see {@linkcode RankChanges} for how it knows what is new to whom. */
export class LoadFeed implements NewsSource {
  readonly #reader: LoadReader;
  readonly #guarded: GuardedReader;
  readonly #limits: StreamLimits;
  readonly #changes: RankChanges;
  /** With what settles when a client's connection is done with its stream, where that is known. */
  readonly #clients = new Map<StreamClient, Promise<unknown> | null>();
  readonly #encoder = new TextEncoder();
  // By what its readers were told before; nearly always all were told the same.
  readonly #chunks = new Map<string, Uint8Array<ArrayBuffer>>();
  #taken = 0;
  #opened = 0;
  #refused = 0;
  #dropped = 0;
  #isClosed = false;
  #watching: AbortController | null = null;
  #watchEnd: Promise<void> = Promise.resolve();
  #checkTimer: ReturnType<typeof setInterval> | undefined;
  #cancelTell: (() => void) | null = null;
  #measuring: ReturnType<typeof setImmediate> | null = null;
  #nextTellMs = 0;
  #lookedAtMs = -Infinity;
  #toldHealthAtMs = 0;

  constructor(
    reader: LoadReader,
    guarded: GuardedReader,
    json: LoadJson,
    limits: StreamLimits,
  ) {
    this.#reader = reader;
    this.#guarded = guarded;
    this.#limits = limits;
    this.#changes = new RankChanges(json);
  }

  /** What became of streams. */
  get counts(): StreamCounts {
    return {
      clients: this.#clients.size,
      opened: this.#opened,
      refused: this.#refused,
      dropped: this.#dropped,
    };
  }

  /**
   * Opens a stream.
   *
   * @param lastEventId What the client saw last, if it comes back.
   * @param delivered Settles when the connection is done with the stream. A client that does not
   *   read keeps its place until then, whatever it was told.
   */
  open(lastEventId: string | null, delivered: Promise<unknown> | null): OpenedStream {
    if (this.#isClosed) return { state: "closed" };
    if (this.#taken >= this.#limits.maxClients) {
      this.#refused++;
      return { state: "full" };
    }
    if (this.#watching === null) {
      const started = this.#start();
      if (started !== null) return { state: "failed", reason: started };
    }
    this.#opened++;
    const { epoch, seq } = this.#changes;
    const client = new StreamClient(this, seenSeq(lastEventId, epoch, seq));
    this.#clients.set(client, delivered);
    this.#taken++;
    return { state: "ok", body: client.body };
  }

  newsFor(client: StreamClient): Uint8Array<ArrayBuffer> | null {
    const changes = this.#changes;
    const isNews = client.seen < changes.seq || client.healthSeen < changes.healthSeq;
    if (!isNews && client.isGreeted) return null;
    this.#look(FRESH_MS);
    const { seq, healthSeq } = changes;
    const key = `${client.isGreeted} ${client.seen}-${seq} ${client.healthSeen}-${healthSeq}`;
    let chunk = this.#chunks.get(key);
    if (chunk === undefined) this.#chunks.set(key, chunk = this.#encode(client));
    client.seen = seq;
    client.healthSeen = healthSeq;
    client.isGreeted = true;
    return chunk;
  }

  leave(client: StreamClient): void {
    const delivered = this.#clients.get(client);
    if (!this.#clients.delete(client)) return;
    const giveBack = () => {
      this.#taken--;
    };
    if (delivered) delivered.then(giveBack, giveBack);
    else giveBack();
    if (this.#clients.size === 0) this.#stop();
  }

  /** Ends all streams, and resolves when the reader is not watched any more. Twice is fine. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endAll("closing");
    await this.#watchEnd;
  }

  /** Starts to watch. @returns Why that cannot be, or `null`. */
  #start(): string | null {
    const loads = this.#guarded.loads(null);
    if (loads.state === "failed") return loads.reason;
    for (const load of loads.value) this.#changes.put(load);
    this.#toldHealthAtMs = performance.now();
    this.#look(0);
    this.#watching = new AbortController();
    this.#watchEnd = this.#watch(this.#watching.signal);
    this.#checkTimer = setInterval(() => this.#check(), CHECK_MS);
    return null;
  }

  #stop(): void {
    this.#watching?.abort();
    this.#watching = null;
    clearInterval(this.#checkTimer);
    this.#cancelTell?.();
    if (this.#measuring !== null) clearImmediate(this.#measuring);
    this.#cancelTell = null;
    this.#measuring = null;
    this.#chunks.clear();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    let reason: keyof typeof REASONS = "closed";
    // The client that this is started for is entered first, and is told when it fails at once.
    await null;
    try {
      for await (const { dpRank, snapshot } of this.#reader.watch({ signal })) {
        if (this.#changes.put(snapshot, dpRank)) this.#tellSoon();
      }
    } catch (error) {
      reason = "failed";
      getLogger(["loadslots", "http"]).warn("Cannot watch load: {error}", { error });
    }
    if (!signal.aborted) this.#endAll(reason);
  }

  /** Brings the ranks' states up to date, unless that was done a moment ago. */
  #look(freshMs: number): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs <= freshMs) return;
    this.#lookedAtMs = nowMs;
    this.#chunks.clear();
    const health = this.#guarded.health();
    if (health.state === "failed") return; // the watch ends, and says so
    if (this.#changes.putHealth(health.value, this.#guarded.dpSize)) this.#tellSoon();
  }

  #check(): void {
    const nowMs = performance.now();
    this.#look(0);
    if (nowMs - this.#toldHealthAtMs >= HEALTH_MS) {
      this.#toldHealthAtMs = nowMs;
      this.#changes.repeatHealth();
      this.#tellSoon();
    }
    for (const client of [...this.#clients.keys()]) {
      if (client.behindMs(nowMs) > this.#limits.slowAfterMs) {
        this.#dropped++;
        this.#end(client, "slow");
      } else if (nowMs - client.openedAtMs > this.#limits.maxStreamMs) this.#end(client, "time");
    }
  }

  #tellSoon(): void {
    if (this.#watching === null || this.#cancelTell !== null) return;
    const waitMs = this.#nextTellMs - performance.now();
    if (waitMs > 0) {
      const timer = setTimeout(() => this.#tell(), waitMs);
      this.#cancelTell = () => clearTimeout(timer);
    } else {
      // After what else was found in the same moment, and without the millisecond of a timer.
      const immediate = setImmediate(() => this.#tell());
      this.#cancelTell = () => clearImmediate(immediate);
    }
  }

  /** Tells all clients, and waits for as long as that takes before it does so again. */
  #tell(): void {
    this.#cancelTell = null;
    const beganMs = performance.now();
    this.#look(0);
    for (const client of this.#clients.keys()) client.offer(beganMs);
    this.#nextTellMs = beganMs + GATHER_MS;
    // What was given out is written by then.
    this.#measuring ??= setImmediate(() => {
      this.#measuring = null;
      const nowMs = performance.now();
      const costMs = nowMs - beganMs;
      this.#nextTellMs = nowMs + Math.min(LONGEST_GATHER_MS, Math.max(GATHER_MS, costMs));
    });
  }

  #encode(client: StreamClient): Uint8Array<ArrayBuffer> {
    const changes = this.#changes;
    let text = client.isGreeted ? "" : RETRY_TEXT;
    const isAll = client.seen < 0 && !client.isGreeted;
    if (isAll || client.seen < changes.seq) text += changes.loadsEvent(client.seen);
    if (client.healthSeen < changes.healthSeq) text += changes.healthEvent();
    return this.#encoder.encode(text);
  }

  #endAll(reason: keyof typeof REASONS): void {
    for (const client of [...this.#clients.keys()]) this.#end(client, reason);
  }

  #end(client: StreamClient, code: keyof typeof REASONS): void {
    const data = JSON.stringify({ timestamp: isoTime(), code, reason: REASONS[code] });
    client.end(this.#encoder.encode(eventText("bye", data)));
    this.leave(client);
  }
}
