/** A scheduler of KvMetrics that goes for as long as a test has time, and comes back. */

import assert from "node:assert/strict";
import { KvMetricsEmitter } from "../../src/kv_metrics/emitter.ts";
import { KV_METRICS_MODULES } from "../../src/kv_metrics/pickle_writer.ts";
import { metricsOf, TestReceiver } from "../support/kv_receiver.ts";
import { KvSocketPeer } from "./kv_socket_peer.ts";

const CLASS = { module: KV_METRICS_MODULES[3], form: "struct" } as const;

/** Rank 0 is ours; rank 1 is Python's where there is one. Both are heard once, then gone. */
export class GoneScheduler implements AsyncDisposable {
  readonly #opened: TestReceiver;
  readonly #python: KvSocketPeer | null;

  private constructor(opened: TestReceiver, python: KvSocketPeer | null) {
    this.#opened = opened;
    this.#python = python;
  }

  /** @param hasPython Whether there is a Python peer to start. */
  static async start(hasPython: boolean): Promise<GoneScheduler> {
    const opened = await TestReceiver.open();
    const gone = new GoneScheduler(opened, hasPython ? await KvSocketPeer.start() : null);
    await gone.#report(1);
    await gone.#python?.close(opened.endpoint);
    return gone;
  }

  /** What it was like meanwhile, then both report again: the values stayed, and are live at once. */
  async comesBack(): Promise<void> {
    const { receiver } = this.#opened;
    for (const { dpRank, state, ageMs } of this.#ranks()) {
      assert.equal(state, "stale");
      assert(ageMs! > 10_000, `rank ${dpRank} is ${ageMs} ms old`);
      assert.equal(this.#opened.numberOf(dpRank), 1);
    }
    await this.#report(2);
    assert(this.#ranks().every(({ state }) => state === "live"));
    assert.deepEqual(this.#opened.refused(), {});
    assert.equal(receiver.stats().accepted, 2 * this.#ranks().length);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#python?.[Symbol.asyncDispose]();
    await this.#opened[Symbol.asyncDispose]();
  }

  #ranks() {
    return this.#opened.receiver.health().slice(0, this.#python === null ? 1 : 2);
  }

  async #report(number: number): Promise<void> {
    {
      using emitter = new KvMetricsEmitter(this.#opened.endpoint, { encoding: "msgpack" });
      emitter.emit(metricsOf(0, number));
      await this.#opened.shows(0, number);
    }
    if (this.#python === null) return;
    await this.#python.send(this.#opened.endpoint, CLASS, 5, [metricsOf(1, number)]);
    await this.#opened.shows(1, number);
  }
}
