/** The record itself: made, computed from a load, and counted in pages. */

import assert from "node:assert/strict";
import { KV_FIELDS } from "../../src/kv_metrics/fields.ts";
import {
  createKvMetrics,
  kvMetricsFrom,
  type KvMetricsInit,
  totalPages,
  usedPages,
} from "../../src/kv_metrics/kv_metrics.ts";
import { createLoadSnapshot } from "../../src/snapshot/load_snapshot.ts";

Deno.test("the record has the fields of the table, in its order", () => {
  assert.deepEqual(Object.keys(createKvMetrics()), KV_FIELDS.map(({ name }) => name));
  assert.deepEqual(
    Object.keys(kvMetricsFrom(createLoadSnapshot())),
    KV_FIELDS.map(({ name }) => name),
  );
});

Deno.test("what is left out is 0, and what does not belong is left out", () => {
  const init = { dataParallelRank: 2, gpuCacheUsagePerc: 0.5, further: 1 } as KvMetricsInit;
  assert.deepEqual(createKvMetrics(init), {
    requestActiveSlots: 0,
    requestTotalSlots: 0,
    kvActiveBlocks: 0,
    kvTotalBlocks: 0,
    numRequestsWaiting: 0,
    gpuCacheUsagePerc: 0.5,
    gpuPrefixCacheHitRate: 0,
    dataParallelRank: 2,
  });
});

const LOAD = createLoadSnapshot({
  dpRank: 3,
  numRunningReqs: 7,
  numWaitingReqs: 12,
  numUsedTokens: 2500,
  maxTotalNumTokens: 10_007,
  maxRunningRequests: 64,
  tokenUsage: 0.2499,
  cacheHitRate: 0.75,
});

Deno.test("a load gives the metrics that the scheduler sends for it", () => {
  assert.deepEqual(kvMetricsFrom(LOAD), {
    requestActiveSlots: 7,
    requestTotalSlots: 64,
    // int(0.2499 * 10007)
    kvActiveBlocks: 2500,
    kvTotalBlocks: 10_007,
    numRequestsWaiting: 12,
    gpuCacheUsagePerc: 0.2499,
    gpuPrefixCacheHitRate: 0.75,
    dataParallelRank: 3,
  });
});

Deno.test("the caller's limit of running requests goes before the load's", () => {
  assert.equal(kvMetricsFrom(LOAD, { maxRunningRequests: 128 }).requestTotalSlots, 128);
  assert.equal(kvMetricsFrom(LOAD, { maxRunningRequests: 0 }).requestTotalSlots, 0);
});

Deno.test("where the load has its queues, only the waiting queue counts", () => {
  const load = { ...LOAD, queues: createLoadSnapshot({ queues: { waiting: 4 } }).queues };
  assert.equal(kvMetricsFrom(load).numRequestsWaiting, 4);
});

Deno.test("used tokens are cut, not rounded, and never a negative zero", () => {
  const used = (tokenUsage: number, maxTotalNumTokens: number) =>
    kvMetricsFrom(createLoadSnapshot({ tokenUsage, maxTotalNumTokens })).kvActiveBlocks;
  assert.equal(used(0.9999, 9999), 9998);
  assert.equal(used(1, 9999), 9999);
  assert(Object.is(used(-0.00001, 9999), 0));
  assert.equal(used(-0.001, 9999), -9);
});

Deno.test("a usage that is no number gives no metrics", () => {
  for (const tokenUsage of [NaN, Infinity, -Infinity]) {
    assert.throws(() => kvMetricsFrom(createLoadSnapshot({ tokenUsage })), {
      name: "RangeError",
      message: `Cannot compute kvActiveBlocks: tokenUsage is ${tokenUsage}`,
    });
  }
});

Deno.test("pages are counted up, of used tokens and of all", () => {
  const pages = (kvActiveBlocks: number, kvTotalBlocks: number, pageSize: number) => {
    const metrics = createKvMetrics({ kvActiveBlocks, kvTotalBlocks });
    return [usedPages(metrics, pageSize), totalPages(metrics, pageSize)];
  };
  assert.deepEqual(pages(0, 8192, 64), [0, 128]);
  assert.deepEqual(pages(1, 8193, 64), [1, 129]);
  assert.deepEqual(pages(64, 64, 64), [1, 1]);
  assert.deepEqual(pages(513, 8192, 1), [513, 8192]);
});

Deno.test("no token of a huge pool is lost to rounding", () => {
  const metrics = createKvMetrics({ kvActiveBlocks: 2 ** 53 - 1 });
  assert.equal(usedPages(metrics, 2), 2 ** 52);
  assert.equal(usedPages(createKvMetrics({ kvActiveBlocks: 3 * 2 ** 51 + 1 }), 3), 2 ** 51 + 1);
});

Deno.test("a page size is a positive integer", () => {
  for (const pageSize of [0, -1, 1.5, NaN, Infinity]) {
    assert.throws(() => usedPages(createKvMetrics(), pageSize), RangeError);
    assert.throws(() => totalPages(createKvMetrics(), pageSize), RangeError);
  }
});
