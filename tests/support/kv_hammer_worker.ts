/** A worker that puts messages into shared memory as fast as it can, for tests of who reads them. */

import { parentPort, workerData } from "node:worker_threads";
import { RECORD_LENGTH } from "../../src/kv_metrics/message_record.ts";
import { MessageRing } from "../../src/kv_metrics/message_ring.ts";
import { RankTable } from "../../src/kv_metrics/rank_table.ts";

/** What it is given. */
export interface HammerData {
  readonly into: "ring" | "table";
  readonly buffer: SharedArrayBuffer;
  /** Of the ring. */
  readonly size: number;
  readonly messages: number;
}

const { into, buffer, size, messages }: HammerData = workerData;
const record = new Float64Array(RECORD_LENGTH);
let overtaken = 0;
if (into === "ring") {
  const ring = new MessageRing(size, buffer, 0);
  for (let n = 1; n <= messages; n++) overtaken += ring.put(record.fill(n));
} else {
  const table = new RankTable(2, buffer, 0);
  for (let n = 1; n <= messages; n++) table.put(n % 2, record.fill(n));
}
parentPort!.postMessage(overtaken);
