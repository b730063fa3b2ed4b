/** How the page writes numbers, shares and ages. */

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.11.0";
import {
  age,
  ago,
  compact,
  countOf,
  exact,
  percent,
  UNKNOWN,
} from "../../src/http/page/client/format.js";

Deno.test("what is not known is a dash, never a zero", () => {
  for (const write of [exact, compact, percent, age]) {
    assert.equal(write(null), UNKNOWN);
    assert.equal(write(NaN), UNKNOWN);
    assert.equal(write(Infinity), UNKNOWN);
    assert.notEqual(write(0), UNKNOWN);
  }
});

Deno.test("whole numbers have their thousands apart, and none of their digits is lost", () => {
  assert.equal(exact(0), "0");
  assert.equal(exact(999), "999");
  assert.equal(exact(1000), "1,000");
  assert.equal(exact(1234567), "1,234,567");
  fc.assert(fc.property(fc.maxSafeInteger(), (value) => {
    assert.equal(Number(exact(value).replaceAll(",", "")), value);
  }));
});

Deno.test("large numbers keep three digits, at a unit's border too", () => {
  const texts = new Map([
    [9999, "9,999"],
    [9999.6, "10.0k"],
    [42_400, "42.4k"],
    [165_432, "165k"],
    [999_499, "999k"],
    [999_500, "1.00M"],
    [2_097_152, "2.10M"],
    [99_960_000, "100M"],
    [1.5e9, "1.50G"],
    [7e12, "7.00T"],
  ]);
  for (const [value, text] of texts) assert.equal(compact(value), text);
});

Deno.test("a short number is right to half a per cent", () => {
  fc.assert(fc.property(fc.double({ min: 1e4, max: 9e14, noNaN: true }), (value) => {
    const text = compact(value);
    const unit = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 }[text.at(-1) ?? ""] ?? 1;
    assert.ok(Math.abs(parseFloat(text) * unit - value) <= 0.00501 * value, text);
  }));
});

Deno.test("a share is full or empty only when it is", () => {
  const texts = new Map([[0, "0"], [0.0001, "1"], [0.633, "63"], [0.9999, "99"], [1, "100"]]);
  for (const [share, text] of texts) assert.equal(percent(share), text);
  // What prefill engines say.
  assert.equal(percent(-1), "0");
});

Deno.test("ages are in whole units of the largest that fits", () => {
  const texts = new Map([
    [0, "now"],
    [999, "now"],
    [1000, "1 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [3_600_000, "1 h"],
    [86_400_000, "1 d"],
  ]);
  for (const [ms, text] of texts) assert.equal(age(ms), text);
  assert.equal(ago(null), "never");
  assert.equal(ago(10), "just now");
  assert.equal(ago(5000), "5 s ago");
});

Deno.test("a count has its noun in the right number", () => {
  assert.equal(countOf(1, "rank"), "1 rank");
  assert.equal(countOf(1024, "rank"), "1,024 ranks");
});
