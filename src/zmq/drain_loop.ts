/**
 * The collector's loop: receives snapshots, checks every byte of them, keeps the newest of each
 * rank, and publishes them in batches. It owns its thread and is the only part that ever waits.
 */

import { LockTimeoutError, SlotFileError, SnapshotDecodeError } from "../errors.ts";
import { CoarseClock } from "../slotfile/coarse_clock.ts";
import type { GroupWriter, PendingPayload } from "../slotfile/group_writer.ts";
import type { Libc } from "../slotfile/libc.ts";
import { sizeT } from "../slotfile/size_t.ts";
import { addressOf, payloadAddressOf } from "../slotfile/address.ts";
import { SnapshotChecker } from "../snapshot/checker.ts";
import { createImage, type Image, PAYLOAD_AT } from "../snapshot/image.ts";
import type { ControlBlock } from "./control_block.ts";
import { MULTIPART, NOTHING } from "./socket.ts";

/** Where messages come from. */
export interface MessageSource {
  /** Blocks until a message is there, somebody wakes the thread, or the time is over. */
  wait(timeoutMs: number): void;
  /**
   * Takes a message, if there is one.
   *
   * @param buffer Gets as many of its bytes as it holds.
   * @returns The message's size, which may be more; NOTHING or MULTIPART.
   */
  receive(buffer: Uint8Array<ArrayBuffer>): number;
  /** How many connections were refused so far. */
  readonly refusedPeers: number;
}

/** The loop says that it lives this often, in milliseconds. */
export const HEARTBEAT_MS = 500;

// A lock that another process keeps is tried again this often.
const RETRY_MS = 2;
// So many messages are taken before what is new is published, and for so long: a flood delays
// nobody for long, also one of garbage, which costs ten times as much as snapshots.
const BATCH = 512;
const BATCH_MS = 1;
// The clock is looked at after so many.
const LOOK = 16;
// For `poll`: so long nothing must arrive, and so long to wait for that at most.
const SETTLE_MS = 2;
const SETTLE_LIMIT_MS = 50;

/** One rank's newest snapshot, from its arrival until it is published. */
class Newest implements PendingPayload {
  readonly dpRank: number;
  image: Image = createImage(1024);
  byteLength = 0;
  arrivedAtMs = 0;
  isPending = false;

  constructor(dpRank: number) {
    this.dpRank = dpRank;
  }

  get at(): bigint {
    return addressOf(this.image);
  }

  reserve(byteLength: number): void {
    if (this.image.bytes.length < byteLength) this.image = createImage(byteLength * 2);
  }
}

/** Drains one source into one slot file. */
export class DrainLoop {
  readonly #source: MessageSource;
  readonly #writer: GroupWriter;
  readonly #control: ControlBlock;
  readonly #libc: Libc;
  readonly #clock: CoarseClock;
  readonly #newest: readonly Newest[];
  readonly #pending: Newest[] = [];
  readonly #incoming: Image;
  readonly #incomingAt: bigint;
  readonly #buffer: Uint8Array<ArrayBuffer>;
  readonly #checker: SnapshotChecker = new SnapshotChecker();
  #nowMs = 0;

  constructor(
    libc: Libc,
    source: MessageSource,
    writer: GroupWriter,
    control: ControlBlock,
    dpSize: number,
  ) {
    this.#libc = libc;
    this.#source = source;
    this.#writer = writer;
    this.#control = control;
    this.#clock = new CoarseClock(libc);
    this.#newest = Array.from({ length: dpSize }, (_, dpRank) => new Newest(dpRank));
    this.#incoming = createImage(PAYLOAD_AT + writer.capacity);
    this.#incomingAt = payloadAddressOf(this.#incoming);
    this.#buffer = this.#incoming.bytes.subarray(PAYLOAD_AT, PAYLOAD_AT + writer.capacity);
  }

  /** Runs until the control block says stop; then publishes what has arrived, and returns. */
  run(): void {
    while (!this.#control.isStopping) {
      this.#control.beat();
      this.#control.set("refusedPeers", this.#source.refusedPeers);
      this.#source.wait(this.#patienceMs());
      this.#turn();
      this.#answerPoll();
    }
    this.#turn();
  }

  #patienceMs(): number {
    // This poll came while the one before it was answered, and its wake-up was taken then.
    if (this.#control.pollAsked !== this.#control.pollDone) return 0;
    return this.#pending.length > 0 ? RETRY_MS : HEARTBEAT_MS;
  }

  /** Takes a batch and publishes it; returns how many messages there were. */
  #turn(): number {
    this.#nowMs = this.#clock.nowMs();
    const end = performance.now() + BATCH_MS;
    let taken = 0;
    while (taken < BATCH && this.#take()) {
      if (++taken % LOOK === 0 && performance.now() > end) break;
    }
    if (this.#pending.length > 0) this.#publish();
    return taken;
  }

  #take(): boolean {
    const size = this.#source.receive(this.#buffer);
    if (size === NOTHING) return false;
    this.#control.count("received");
    if (size === MULTIPART) this.#control.count("refusedMultipart");
    else if (size === 0 || size > this.#buffer.length) this.#control.count("refusedSize");
    else this.#check(size);
    return true;
  }

  #check(length: number): void {
    let dpRank: number;
    try {
      dpRank = this.#checker.check(this.#incoming, PAYLOAD_AT + length);
    } catch (error) {
      if (!(error instanceof SnapshotDecodeError)) throw error;
      return this.#control.count("refusedSchema");
    }
    const newest = dpRank >= 0 ? this.#newest[dpRank] : undefined;
    if (newest === undefined) return this.#control.count("refusedRank");
    this.#keep(newest, length);
  }

  #keep(newest: Newest, length: number): void {
    newest.reserve(length);
    this.#libc.memcpy(newest.at, this.#incomingAt, sizeT(length));
    newest.byteLength = length;
    newest.arrivedAtMs = this.#nowMs;
    if (newest.isPending) return this.#control.count("superseded");
    newest.isPending = true;
    this.#pending.push(newest);
  }

  #publish(): void {
    try {
      if (!this.#writer.publish(this.#pending)) return this.#control.count("lockMisses");
    } catch (error) {
      // The file may be whole again at the next try; until then draining goes on.
      if (!(error instanceof SlotFileError || error instanceof LockTimeoutError)) throw error;
      return this.#control.count("fileFaults");
    }
    // Before the arrivals: who knows of one has to know which file it stands in.
    this.#control.set("restores", this.#writer.restores);
    for (const newest of this.#pending) {
      newest.isPending = false;
      this.#control.arrive(newest.dpRank, newest.arrivedAtMs);
    }
    this.#control.count("published", this.#pending.length);
    this.#control.count("batches");
    this.#pending.length = 0;
    this.#control.ring();
  }

  /** Answers `poll` once nothing has arrived for a moment, and all that had is published. */
  #answerPoll(): void {
    const ticket = this.#control.pollAsked;
    if (ticket === this.#control.pollDone) return;
    const deadlineMs = this.#clock.nowMs() + SETTLE_LIMIT_MS;
    do {
      this.#source.wait(SETTLE_MS);
    } while (this.#turn() > 0 && this.#nowMs < deadlineMs && !this.#control.isStopping);
    if (this.#pending.length === 0) this.#control.donePoll(ticket);
  }
}
