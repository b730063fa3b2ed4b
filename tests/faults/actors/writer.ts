/** A process that publishes ranks until its input ends, or a fault ends it: `WRITER_ORDER`. */

import {
  LockTimeoutError,
  ShmLoadSnapshotWriter,
  SlotFileError,
  ZmqLoadSnapshotWriter,
} from "../../../mod.ts";
import { snapshotOf } from "../publication.ts";
import { heard, say, Tally } from "./lines.ts";
import type { OutputOrder, WriterOrder, WriterReport, WriterTold } from "./orders.ts";

const REPORT_MS = 1000;
/** Every so many rounds there is a burst. */
const BURST_EVERY = 20;

const order: WriterOrder = JSON.parse(Deno.args[0] ?? "{}");
const refused = new Tally();
let publications = 0;
let skewMs = order.skewMs;

/** One rank. It is opened again and again until that works. */
class Output {
  readonly #order: OutputOrder;
  #writer: ShmLoadSnapshotWriter | ZmqLoadSnapshotWriter | null = null;
  #number = 0;
  #firstMicros = 0;

  constructor(order: OutputOrder) {
    this.#order = order;
  }

  publish(): void {
    const { dpRank, incarnation } = this.#order;
    try {
      this.#writer ??= this.#open();
      const nowMicros = Math.round((performance.timeOrigin + performance.now()) * 1000);
      const firstMicros = this.#firstMicros || nowMicros;
      const micros = nowMicros + skewMs * 1000;
      const number = this.#number + 1;
      this.#writer.write(snapshotOf({ dpRank, incarnation, number, micros, firstMicros }));
      this.#number = number;
      this.#firstMicros = firstMicros;
      publications++;
    } catch (error) {
      if (error instanceof LockTimeoutError) refused.add("lock");
      else if (error instanceof SlotFileError) refused.add(error.errno ?? error.reason);
      else throw error;
    }
  }

  close(): void {
    this.#writer?.close();
  }

  #open(): ShmLoadSnapshotWriter | ZmqLoadSnapshotWriter {
    const { kind, target, dpSize, dpRank } = this.#order;
    return kind === "shm"
      ? new ShmLoadSnapshotWriter(target, { dpSize, dpRank })
      : new ZmqLoadSnapshotWriter(target, { dpSize, dpRank });
  }
}

const outputs = order.outputs.map((output) => new Output(output));
let round = 0;

function publishAll(hotMs = 0): void {
  round++;
  const burstMs = round % BURST_EVERY === 0 ? order.burstMs : hotMs;
  const end = performance.now() + burstMs;
  do for (const output of outputs) output.publish(); while (performance.now() < end);
}

function report(): void {
  say({ kind: "writer", publications, refused: refused.counts } satisfies WriterReport);
}

publishAll();
say({ kind: "up" });
const publishing = setInterval(() => publishAll(), order.intervalMs);
const reporting = setInterval(report, REPORT_MS);
for await (const told of heard<WriterTold>()) {
  skewMs = told.skewMs ?? skewMs;
  publishAll(told.hotMs);
}
clearInterval(publishing);
clearInterval(reporting);
for (const output of outputs) output.close();
report();
