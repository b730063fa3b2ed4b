/** Sockets in tests: waiting for a message, paths of ipc endpoints, threads. */

import assert from "node:assert/strict";
import { cString } from "../../src/slotfile/libc.ts";
import { PollSet } from "../../src/zmq/poll_set.ts";
import { MULTIPART, NOTHING, type PullSocket } from "../../src/zmq/socket.ts";
import { openDescriptors } from "./own_resources.ts";
import { matches, raw } from "./raw_libc.ts";

/** Longer than anything takes that is going to happen at all. */
const PATIENCE_MS = 10_000;

/** What came: a message's bytes, or that it had several parts; `null` if nothing did. */
export type Received = Uint8Array<ArrayBuffer> | "multipart" | null;

/**
 * Waits for one message, and lets clients in meanwhile. It blocks: libzmq has threads of its own.
 *
 * @param patienceMs Give up after that.
 */
export function receive(pull: PullSocket, patienceMs: number = PATIENCE_MS): Received {
  const polls = new PollSet(pull.libzmq, pull.zap === null ? [pull] : [pull, pull.zap]);
  const buffer = new Uint8Array(65536);
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const size = pull.receive(buffer);
    if (size === MULTIPART) return "multipart";
    if (size !== NOTHING) return buffer.slice(0, size);
    const restMs = deadline - performance.now();
    if (restMs <= 0) return null;
    if (polls.wait(Math.ceil(restMs)) > 0) pull.zap?.answer();
  }
}

/** Text to send. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** What came, as text. */
export function textOf(received: Received): string | null {
  return received instanceof Uint8Array ? new TextDecoder().decode(received) : received;
}

/** How many threads this process has. */
export function threads(): number {
  return matches("/proc/self/task/*").length;
}

/** An endpoint of its own; whatever is at its path is gone at the end of the scope. */
export class TempIpc implements Disposable {
  readonly path: string = `/tmp/loadslots_test_${crypto.randomUUID()}.sock`;
  readonly lockPath: string = `${this.path}.lock`;
  readonly endpoint: string = `ipc://${this.path}`;

  [Symbol.dispose](): void {
    raw.unlink(cString(this.path));
    raw.unlink(cString(this.lockPath));
  }
}

/** What this process holds: open descriptors, and threads. */
export interface OwnHoldings {
  readonly descriptors: number;
  readonly threads: number;
}

/** Counts what this process holds now. */
export function holdings(): OwnHoldings {
  return { descriptors: openDescriptors(), threads: threads() };
}

/** Nothing more than before. It may be less: Deno ends threads that have had nothing to do for a while. */
export function assertNothingMore(before: OwnHoldings): void {
  const now = holdings();
  const isMore = now.descriptors > before.descriptors || now.threads > before.threads;
  assert(!isMore, `${JSON.stringify(before)} became ${JSON.stringify(now)}`);
}
