/** What a receiver checks: that all is there, and can be true. */

import assert from "node:assert/strict";
import { checkKvMetrics, type KvMetricsFault } from "../../src/kv_metrics/check_kv_metrics.ts";
import { KV_FIELDS } from "../../src/kv_metrics/fields.ts";
import { createKvMetrics, type KvMetricsMessage } from "../../src/kv_metrics/kv_metrics.ts";

const WHOLE: KvMetricsMessage = createKvMetrics({ requestActiveSlots: 3, gpuCacheUsagePerc: 0.5 });

function faultOf(change: Partial<KvMetricsMessage>): string {
  const check = checkKvMetrics({ ...WHOLE, ...change });
  return check.state === "ok" ? "ok" : `${check.field} ${check.fault} ${check.value}`;
}

Deno.test("a message that is whole and in range is handed out as it is", () => {
  const check = checkKvMetrics(WHOLE);
  assert(check.state === "ok");
  assert.equal(check.metrics, WHOLE);
});

Deno.test("each field has to be there, and to be a number", () => {
  for (const { name, type } of KV_FIELDS) {
    assert.equal(faultOf({ [name]: null }), `${name} missing null`);
    for (const value of [NaN, Infinity, -Infinity]) {
      assert.equal(faultOf({ [name]: value }), `${name} not-finite ${value}`);
    }
    const far: KvMetricsFault = type === "int" ? "negative" : "out-of-range";
    assert.equal(faultOf({ [name]: -1 }), `${name} ${far} -1`);
  }
});

Deno.test("counts are whole", () => {
  for (const { name, type } of KV_FIELDS) {
    if (type !== "int") continue;
    assert.equal(faultOf({ [name]: 0.5 }), `${name} not-integer 0.5`);
    assert.equal(faultOf({ [name]: 2 ** 53 }), `${name} not-integer ${2 ** 53}`);
  }
});

Deno.test("shares run from 0 to 1, and may be a little off", () => {
  for (const name of ["gpuCacheUsagePerc", "gpuPrefixCacheHitRate"] as const) {
    for (const value of [0, -0, 1, 1.05, -0.05, 5e-324]) {
      assert.equal(faultOf({ [name]: value }), "ok");
    }
    for (const value of [1.051, -0.051, 50]) {
      assert.equal(faultOf({ [name]: value }), `${name} out-of-range ${value}`);
    }
  }
});

Deno.test("the rank is one of those that there are", () => {
  const check = (dataParallelRank: number, dpSize?: number) =>
    checkKvMetrics({ ...WHOLE, dataParallelRank }, dpSize === undefined ? {} : { dpSize });
  assert.equal(check(65_534).state, "ok");
  assert.equal(check(7, 8).state, "ok");
  assert.deepEqual(check(8, 8), {
    state: "faulty",
    fault: "out-of-range",
    field: "dataParallelRank",
    value: 8,
  });
  assert.equal(check(65_535).state, "faulty");
});

Deno.test("of several faults the first field's is told", () => {
  assert.equal(
    faultOf({ dataParallelRank: null, kvTotalBlocks: -2, gpuCacheUsagePerc: 7 }),
    "kvTotalBlocks negative -2",
  );
});
