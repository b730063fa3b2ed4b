/** A simulated engine that tells what SGLang's schedulers tell a Dynamo worker, as often as they do. */

import { type KvMetricsEmitter, kvMetricsFrom, type LoadSnapshot } from "../../mod.ts";
import { SimulatedEngine, type SnapshotPublisher } from "../engine.ts";

/** A scheduler emits after each prefill, and once in so many decode steps. */
const DECODE_STEPS = 40;

/** The engine has some past when it is first heard; the more ranks, the less. */
const WARM_UP_RANK_MS = 400_000;

/** One rank's load, on its way to an emitter. */
class MetricsPublisher implements SnapshotPublisher {
  readonly #emitter: KvMetricsEmitter;
  /** Nobody is told what happened before the engine was there. */
  isMuted = true;
  #steps = 0;

  constructor(emitter: KvMetricsEmitter) {
    this.#emitter = emitter;
  }

  publish(make: () => LoadSnapshot, { force = false }: { readonly force?: boolean } = {}): void {
    this.#steps++;
    if (this.isMuted || (!force && this.#steps < DECODE_STEPS)) return;
    const load = make();
    // An idle scheduler says nothing.
    if (load.numRunningReqs + load.numWaitingReqs === 0) return;
    this.#steps = 0;
    this.#emitter.emit(kvMetricsFrom(load));
  }
}

/**
 * Makes an engine whose ranks emit.
 *
 * @param emitter Where they emit; it stays its owner's.
 * @param ranks How many ranks.
 */
export function emittingEngine(emitter: KvMetricsEmitter, ranks: number): SimulatedEngine {
  const warmUpMs = Math.min(100_000, WARM_UP_RANK_MS / ranks);
  const publishers = Array.from({ length: ranks }, () => new MetricsPublisher(emitter));
  const engine = new SimulatedEngine(publishers, { startMs: Date.now() - warmUpMs });
  engine.step(warmUpMs);
  for (const publisher of publishers) publisher.isMuted = false;
  return engine;
}
