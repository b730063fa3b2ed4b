/** The table and its header as a terminal shows them, for every width and any value. */

import assert from "node:assert/strict";
import { SimulatedEngine } from "../../examples/engine.ts";
import { renderHeader } from "../../examples/terminal/header.ts";
import {
  age,
  bar,
  count,
  harmless,
  keepEnd,
  keepStart,
  percent,
  si,
  textWidth,
  wrap,
} from "../../examples/terminal/text.ts";
import { type RankRow, renderTable } from "../../examples/terminal_table.ts";
import { createLoadSnapshot, type LoadSnapshotInit } from "../../mod.ts";

const WIDTHS = [1, 8, 20, 30, 40, 60, 79, 80, 81, 100, 120, 400];

function row(dpRank: number, load: LoadSnapshotInit = {}, rest: Partial<RankRow> = {}): RankRow {
  const snapshot = createLoadSnapshot({ dpRank, maxTotalNumTokens: 1000, ...load });
  return { dpRank, state: "live", ageMs: 100, load: snapshot, ...rest };
}

/** Ranks as an engine has them after a while. */
function busyRows(dpSize: number): readonly RankRow[] {
  const silent = Array.from({ length: dpSize }, () => ({ publish: () => {} }));
  const engine = new SimulatedEngine(silent, { seed: 4, startMs: 0 });
  engine.step(60_000);
  return engine.schedulers.map((scheduler, dpRank) => ({
    dpRank,
    state: "live",
    ageMs: dpRank * 10,
    load: scheduler.measure(),
  }));
}

function lines(text: string): readonly string[] {
  assert.ok(text.endsWith("\n"));
  return text.slice(0, -1).split("\n");
}

function withoutColour(text: string): string {
  // deno-lint-ignore no-control-regex -- it is control characters that are taken out
  return text.replace(/\x1b\[[0-9;]*m/g, "");
}

Deno.test("a table of 80 columns shows each rank and their sum", () => {
  const rows = [
    row(0, { numRunningReqs: 7, numUsedTokens: 500, tokenUsage: 0.5, genThroughput: 1234.5 }),
    row(1, { numRunningReqs: 2, numWaitingReqs: 9, numUsedTokens: 250, tokenUsage: 0.25 }),
  ];
  assert.deepEqual(lines(renderTable(rows, { width: 80, colour: false })), [
    " rank    run   wait       tokens                usage   tok/s    hit       state",
    "    0      7      0    500/1.00k  ██████▌······   50%    1235     0%   live 0.1s",
    "    1      2      9    250/1.00k  ███▎·········   25%       0     0%   live 0.1s",
    "  all      9      9    750/2.00k  ████▉········   38%    1235             2 live",
  ]);
});

Deno.test("no line is longer than the terminal, and none is shorter than the title", () => {
  for (const dpSize of [1, 8, 512]) {
    const rows = busyRows(dpSize);
    for (const width of WIDTHS) {
      const table = lines(renderTable(rows, { width, colour: false }));
      assert.equal(table.length, dpSize + 2);
      for (const line of table) assert.equal(textWidth(line), textWidth(table[0]!));
      assert.ok(textWidth(table[0]!) <= width, `${width}: ${table[0]}`);
    }
  }
});

Deno.test("a narrower terminal drops columns, a wider one gets more and a longer bar", () => {
  const rows = busyRows(2);
  const title = (width: number): string =>
    lines(renderTable(rows, { width, colour: false }))[0]!.trim().replaceAll(/ +/g, " ");
  assert.equal(title(10), "usage");
  assert.equal(title(20), "rank usage");
  assert.equal(title(40), "rank run wait usage state");
  assert.equal(title(60), "rank run wait usage tok/s state");
  assert.equal(title(80), "rank run wait tokens usage tok/s hit state");
  assert.equal(
    title(120),
    "rank run wait tokens usage tok/s hit uncached accept lora state",
  );

  const full = [row(0, { tokenUsage: 1 })];
  const bars = [60, 80, 120, 400].map((width) =>
    renderTable(full, { width, colour: false }).split("\n")[1]!.match(/█+/)![0].length
  );
  assert.deepEqual(bars, [13, 13, 28, 40]);
});

Deno.test("values of any size keep to their columns", () => {
  const values = [
    NaN,
    Infinity,
    -Infinity,
    -1,
    -0,
    -123_456_789,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    Number.MAX_VALUE,
    Number.MIN_VALUE,
    99_999.5,
    999_999,
    0.1,
  ];
  for (const value of values) {
    const load: LoadSnapshotInit = {
      timestamp: value,
      numRunningReqs: value,
      numWaitingReqs: value,
      numWaitingUncachedTokens: value,
      numUsedTokens: value,
      maxTotalNumTokens: value,
      tokenUsage: value,
      genThroughput: value,
      cacheHitRate: value,
      speculative: { acceptLength: value },
      lora: { slotsUsed: value, slotsTotal: value },
    };
    const rows = [
      row(0, load, { ageMs: value }),
      row(65_534, load, { state: "stale", ageMs: value }),
    ];
    for (const width of WIDTHS) {
      const table = lines(renderTable(rows, { width, height: 20, colour: false }));
      for (const line of table) assert.equal(textWidth(line), textWidth(table[0]!), `${value}`);
    }
  }
});

Deno.test("one rank's nonsense does not spoil the sum", () => {
  const rows = [
    row(0, { numRunningReqs: NaN, genThroughput: Infinity }),
    row(1, {
      numRunningReqs: 3,
      genThroughput: 50,
    }),
  ];
  const total = lines(renderTable(rows, { width: 80, colour: false })).at(-1)!;
  assert.match(total, /^ {2}all {6}3 .* 50 /);
});

Deno.test("a rank that never reported does not read as idle", () => {
  const rows = [row(0, {}, { state: "unreported", ageMs: null }), row(1, {}, { load: null })];
  const [, unreported, empty] = lines(renderTable(rows, { width: 80, colour: false }));
  assert.match(unreported!, /^ +0 +- +- +- +·+ +- +- +- +no report$/);
  assert.match(empty!, /^ +1 +- +- +- +·+ +- +- +- +live 0\.1s$/);
});

Deno.test("stale and corrupt ranks show their last values, and are not part of the sum", () => {
  const rows = [
    row(0, { numRunningReqs: 5 }, { state: "stale", ageMs: 14_200 }),
    row(1, { numRunningReqs: 6 }, { state: "corrupt" }),
    row(2, { numRunningReqs: 7 }),
  ];
  const [, stale, corrupt, live, total] = lines(renderTable(rows, { width: 80, colour: false }));
  assert.match(stale!, /^ +0 +5 .* stale 14s$/);
  assert.match(corrupt!, /^ +1 +6 .* corrupt$/);
  assert.match(live!, /^ +2 +7 .* live 0\.1s$/);
  assert.match(total!, /^ +all +7 .* 1\/3 live$/);
});

Deno.test("a group without a live rank has no sum", () => {
  const rows = [row(0, { numRunningReqs: 5 }, { state: "stale", ageMs: 99_000 })];
  assert.match(
    lines(renderTable(rows, { width: 80, colour: false })).at(-1)!,
    /all +- .* 0\/1 live$/,
  );
});

Deno.test("a table without ranks has a title and a sum of none", () => {
  assert.equal(lines(renderTable([], { width: 80, colour: false })).length, 2);
});

Deno.test("a low terminal shows the busiest ranks in their order, and says what is left out", () => {
  const rows = Array.from({ length: 512 }, (_, dpRank) => row(dpRank, { numRunningReqs: dpRank }));
  const table = lines(renderTable(rows, { width: 80, height: 7, colour: false }));
  assert.equal(table.length, 7);
  assert.deepEqual(table.slice(1, 5).map((line) => line.trim().split(" ")[0]), [
    "508",
    "509",
    "510",
    "511",
  ]);
  assert.equal(table[5], "  … 508 ranks with less to do: 129k running, 0 waiting");
  assert.match(table[6]!, /^ {2}all +131k /);
});

Deno.test("ranks in trouble come before busy ones, and those that never reported last", () => {
  const rows = [
    row(0, {}, { state: "unreported", ageMs: null }),
    row(1, { numRunningReqs: 50 }),
    row(2, {}, { state: "corrupt" }),
    row(3, { numRunningReqs: 1 }),
    row(4, {}, { state: "stale" }),
  ];
  const shown = (height: number): readonly string[] =>
    lines(renderTable(rows, { width: 80, height, colour: false }))
      .map((line) => line.trim().split(" ")[0]!).filter((label) => /^\d/.test(label));
  assert.deepEqual(shown(5), ["2", "4"]);
  assert.deepEqual(shown(6), ["1", "2", "4"]);
  assert.deepEqual(shown(7), ["0", "1", "2", "3", "4"]);
});

Deno.test("a table is never higher than it may be", () => {
  const rows = busyRows(20);
  for (let height = -2; height <= 25; height++) {
    const text = renderTable(rows, { width: 80, height, colour: true });
    assert.ok(text.split("\n").length - 1 <= Math.max(0, height));
  }
});

Deno.test("colour tells usage and state, and changes nothing else", () => {
  const usage = (tokenUsage: number): string =>
    renderTable([row(0, { tokenUsage })], { width: 80, colour: true });
  assert.ok(usage(0.5).includes("\x1b[32m  50%\x1b[0m"));
  assert.ok(usage(0.7).includes("\x1b[33m  70%\x1b[0m"));
  assert.ok(usage(0.9).includes("\x1b[31m  90%\x1b[0m"));

  const rows = [
    row(0),
    row(1, {}, { state: "stale" }),
    row(2, {}, { state: "corrupt" }),
    row(3, {}, { state: "unreported", ageMs: null }),
  ];
  const coloured = renderTable(rows, { width: 80, colour: true });
  assert.ok(coloured.includes("\x1b[32mlive 0.1s\x1b[0m"));
  assert.ok(coloured.includes("\x1b[33mstale 0.1s\x1b[0m"));
  assert.ok(coloured.includes("\x1b[31mcorrupt\x1b[0m"));
  assert.equal(withoutColour(coloured), renderTable(rows, { width: 80, colour: false }));
});

Deno.test("a bar grows by eighths of a column and never leaves its width", () => {
  assert.equal(bar(0, 4), "");
  assert.equal(bar(1 / 32, 4), "▏");
  assert.equal(bar(0.5, 4), "██");
  assert.equal(bar(31 / 32, 4), "███▉");
  assert.equal(bar(1, 4), "████");
  for (const share of [2, Infinity, Number.MAX_VALUE]) assert.equal(bar(share, 4), "████");
  for (const share of [-1, -Infinity, NaN]) assert.equal(bar(share, 4), "");
});

Deno.test("numbers take few columns", () => {
  assert.deepEqual([0, 99_999, 100_000, 1_234_567, -5].map(count), [
    "0",
    "99999",
    "100k",
    "1.23M",
    "-5",
  ]);
  assert.deepEqual([0, 999, 1_000, 18_234, 262_144, 999_600, 2 ** 53, 1e30].map(si), [
    "0",
    "999",
    "1.00k",
    "18.2k",
    "262k",
    "1.00M",
    "9.01P",
    ">999E",
  ]);
  assert.deepEqual([0, 0.004, 0.995, 1.5, 99, -3, NaN].map(percent), [
    "0%",
    "0%",
    "100%",
    "150%",
    ">999%",
    "<-99%",
    "nan",
  ]);
  assert.deepEqual([0, 9_900, 9_960, 75_000, 100_000, 7.2e6, 1e9, 1e12, NaN].map(age), [
    "0.0s",
    "9.9s",
    "10s",
    "75s",
    "2m",
    "2h",
    "12d",
    "ages",
    "?",
  ]);
});

Deno.test("text is cut by the columns that it takes, not by its characters", () => {
  assert.equal(textWidth("aé\u0301日本🚀"), 8);
  assert.equal(keepEnd("/dev/shm/x.shm", 8), "…m/x.shm");
  assert.equal(keepStart("日本語", 5), "日本…");
  assert.equal(keepEnd("日本語", 4), "…語");
  assert.equal(keepStart("abc", 3), "abc");
  assert.equal(keepEnd("abc", 0), "");
  assert.deepEqual(wrap("No engine publishes", 10), ["No engine", "publishes"]);
  assert.deepEqual(wrap("a-word-without-end", 8), ["…out-end"]);
});

Deno.test("a path cannot speak to the terminal", () => {
  const view = { path: "/tmp/\x1b[2J\r\u202e\u2028x", rows: [], publicationsPerSecond: null };
  const header = renderHeader({ ...view, trouble: `No engine at ${view.path}` }, null, {
    width: 80,
    colour: false,
  });
  assert.deepEqual(lines(header), [
    "/tmp/\ufffd[2J\ufffd\ufffd\ufffdx",
    "No engine at /tmp/\ufffd[2J\ufffd\ufffd\ufffdx",
    "",
  ]);
  assert.equal(harmless("a\x00b\x7f\x9bc"), "a\ufffdb\ufffd\ufffdc");
});

Deno.test("a header tells path, ranks and rate, in lines that fit", () => {
  const view = {
    path: "/dev/shm/sglang_loads_4c00ec5647f7_b4fb99a3.shm",
    rows: busyRows(2),
    publicationsPerSecond: 61.6,
    trouble: null,
  };
  assert.deepEqual(lines(renderHeader(view, "A hint", { width: 80, colour: false })), [
    "/dev/shm/sglang_loads_4c00ec5647f7_b4fb99a3.shm  2 ranks  62 publications/s",
    "A hint",
    "",
  ]);
  for (const trouble of [null, "The engine is gone or hangs: nothing was published for 14s"]) {
    for (const width of [40, 60, 80, 120]) {
      const header = renderHeader({ ...view, trouble }, "A hint", { width, colour: false });
      for (const line of lines(header)) assert.ok(textWidth(line) <= width);
      assert.ok(header.includes("62 publications/s"));
      assert.equal(header.includes("A hint"), trouble === null);
    }
  }
});
