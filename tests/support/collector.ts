/** A collector in a test: with a slot file of its own, and peers that may send anything. */

import { encodeLoadSnapshot } from "../../src/snapshot/codec.ts";
import { createLoadSnapshot, type LoadSnapshot } from "../../src/snapshot/load_snapshot.ts";
import { PUSH, type RawSocket, ZmqContext } from "../../src/zmq/context.ts";
import { cText } from "../../src/zmq/libzmq.ts";
import {
  ZmqShmLoadSnapshotReader,
  type ZmqShmLoadSnapshotReaderOptions,
} from "../../src/zmq/reader.ts";
import { openDescriptors } from "./own_resources.ts";
import { SlotPath } from "./slot_path.ts";
import { until } from "./wait.ts";
import { threads } from "./zmq.ts";

/** A port that the system chooses, on this machine only. */
export const LOOPBACK = "tcp://127.0.0.1:*";

const SNDMORE = 2;

/** What a test's collector can be told; the rest are the reader's own options. */
export interface CollectorOptions extends Partial<ZmqShmLoadSnapshotReaderOptions> {
  readonly endpoint?: string;
  /** A slot file that is there already; the test removes it. */
  readonly path?: string;
}

/** An open reader of two ranks, unless it is told otherwise. */
export class Collector implements AsyncDisposable {
  readonly reader: ZmqShmLoadSnapshotReader;
  /** Its slot file, which goes with it; `null` if the test brought one. */
  readonly #file: SlotPath | null;

  private constructor(reader: ZmqShmLoadSnapshotReader, file: SlotPath | null) {
    this.reader = reader;
    this.#file = file;
  }

  static async open(options: CollectorOptions = {}): Promise<Collector> {
    const { endpoint = LOOPBACK, path, ...rest } = options;
    const file = path === undefined ? new SlotPath() : null;
    try {
      const shmPath = path ?? file!.path;
      const reader = await ZmqShmLoadSnapshotReader.open(endpoint, shmPath, { dpSize: 2, ...rest });
      return new Collector(reader, file);
    } catch (error) {
      file?.[Symbol.dispose]();
      throw error;
    }
  }

  /** The slot file that the collector made. */
  get file(): SlotPath {
    return this.#file!;
  }

  /** What a rank's newest snapshot says, or `null`. */
  numberOf(dpRank: number): number | null {
    return this.reader.read(dpRank)?.numRunningReqs ?? null;
  }

  /** Waits until a rank's newest snapshot says a number. */
  async shows(dpRank: number, number: number): Promise<void> {
    await until(`rank ${dpRank} says ${number}`, () => this.numberOf(dpRank) === number);
  }

  /** Waits until a count has come to a number. */
  async counts(name: Count, number: number): Promise<void> {
    await until(`${name} is ${number}`, () => this.reader.stats()[name] >= number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.reader.close();
    } finally {
      this.#file?.[Symbol.dispose]();
    }
  }
}

/** A count of the worker's. */
export type Count = Exclude<keyof ReturnType<ZmqShmLoadSnapshotReader["stats"]>, "slotFile">;

/** A snapshot of now; the number tells it from others. */
export function loadOf(dpRank: number, number: number): LoadSnapshot {
  return createLoadSnapshot({ dpRank, timestamp: Date.now() / 1000, numRunningReqs: number });
}

/** The same as a message. */
export function payloadOf(dpRank: number, number: number): Uint8Array<ArrayBuffer> {
  return encodeLoadSnapshot(loadOf(dpRank, number)).slice();
}

/** A PUSH socket that sends messages of several parts, as none of ours does. */
export class PartsSocket implements Disposable {
  readonly #context: ZmqContext = new ZmqContext();
  readonly #socket: RawSocket;

  constructor(endpoint: string) {
    const { libzmq } = this.#context;
    this.#socket = this.#context.open(PUSH, endpoint);
    libzmq.zmq_connect(this.#socket.handle, cText(endpoint));
  }

  /** Sends parts as one message. */
  send(...parts: readonly Uint8Array<ArrayBuffer>[]): void {
    parts.forEach((part, index) => {
      const flags = index < parts.length - 1 ? SNDMORE : 0;
      const { libzmq } = this.#context;
      libzmq.zmq_send(this.#socket.handle, part, BigInt(part.length), flags);
    });
  }

  [Symbol.dispose](): void {
    this.#context.close();
  }
}

/** What this process holds at a moment. */
export interface Holdings {
  readonly descriptors: number;
  readonly threads: number;
}

/** Opens and closes a collector, so that what Deno keeps for later ones is there; then counts. */
export async function holdings(): Promise<Holdings> {
  {
    await using _collector = await Collector.open();
  }
  // A thread ends a moment after its worker is gone. What is there after that belongs to Deno.
  let last: Holdings | null = null;
  let same = 0;
  await until("the number of threads holds still", () => {
    const now = { descriptors: openDescriptors(), threads: threads() };
    same = now.threads === last?.threads && now.descriptors === last.descriptors ? same + 1 : 0;
    last = now;
    return same >= 20;
  });
  return last!;
}

/** Waits until this process holds no more than it did. */
export async function returnTo(before: Holdings): Promise<void> {
  const now = () => ({ descriptors: openDescriptors(), threads: threads() });
  try {
    await until(
      "all was let go",
      () => now().descriptors <= before.descriptors && now().threads <= before.threads,
    );
  } catch (error) {
    throw new Error(`Before: ${JSON.stringify(before)}, now: ${JSON.stringify(now())}`, {
      cause: error,
    });
  }
}
