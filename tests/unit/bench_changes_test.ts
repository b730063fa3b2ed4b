/** Comparing two runs of the benchmarks: what counts as slower, and what is only noise. */

import assert from "node:assert/strict";
import { type Change, compareRuns } from "../bench/changes.ts";
import { renderComparison } from "../bench/changes_text.ts";
import { runFromJson, type SavedRun } from "../bench/run_file.ts";

type Samples = Readonly<Record<string, readonly (number | null)[]>>;

const MACHINE = {
  loadslots: "1.0.0",
  commit: "abc",
  processor: "made up",
  cores: 4,
  deno: "2.9.6",
};

/** A run as `--json` writes it. */
function run(
  cases: Readonly<Record<string, { readonly series: Samples; readonly ratios?: Samples }>>,
  machine: Readonly<Record<string, unknown>> = MACHINE,
  quick = false,
): SavedRun {
  const results = Object.entries(cases).map(([name, { series, ratios = {} }]) => (
    { section: "Some", name, unit: "ns", series, ratios, targets: [] }
  ));
  return runFromJson(JSON.stringify({ machine, quick, results }), "a run");
}

/** Nine samples around a middle, with quartiles `spread` away from it. */
function around(middle: number, spread: number): number[] {
  return [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2].map((n) => middle * (1 + n * spread));
}

function only(before: SavedRun, after: SavedRun): Change {
  const { changes } = compareRuns(before, after);
  assert.equal(changes.length, 1);
  return changes[0]!;
}

Deno.test("a change beyond the spread of both runs is told, in both directions", () => {
  const slow = run({ read: { series: { ours: around(130, 0.02) } } });
  const fast = run({ read: { series: { ours: around(100, 0.02) } } });
  const slower = only(fast, slow);
  assert.equal(slower.verdict, "slower");
  assert(Math.abs(slower.factor - 1.3) < 1e-9 && slower.low > 1 && slower.high > slower.factor);
  const faster = only(slow, fast);
  assert.equal(faster.verdict, "faster");
  assert(Math.abs(faster.factor * slower.factor - 1) < 1e-9);
});

Deno.test("the same change within the spread of either run is noise", () => {
  const calm = run({ read: { series: { ours: around(100, 0.02) } } });
  const restless = run({ read: { series: { ours: around(130, 0.2) } } });
  assert.equal(only(calm, restless).verdict, "same");
  assert.equal(only(restless, calm).verdict, "same");
});

Deno.test("a change of a few percent is not told, however small the spread", () => {
  const before = run({ read: { series: { ours: around(100, 1e-6) } } });
  assert.equal(
    only(before, run({ read: { series: { ours: around(104, 1e-6) } } })).verdict,
    "same",
  );
  assert.equal(
    only(before, run({ read: { series: { ours: around(106, 1e-6) } } })).verdict,
    "slower",
  );
});

Deno.test("a machine that is slower as a whole changes nothing where a case has a reference", () => {
  const series = (times: number) => ({
    ours: around(100 * times, 0.02),
    reference: around(500 * times, 0.02),
  });
  const ratios = { "times as fast": around(5, 0.02), "of the limit": around(2, 0.02) };
  const change = only(
    run({ read: { series: series(1), ratios } }),
    run({ read: { series: series(4), ratios } }),
  );
  assert.equal(change.by, "times as fast");
  assert.equal(change.verdict, "same");
});

Deno.test("fewer times as fast as the reference is slower", () => {
  const series = { ours: around(100, 0.02), reference: around(500, 0.02) };
  const at = (times: number) =>
    run({ read: { series, ratios: { "times as fast": around(times, 0.02) } } });
  const change = only(at(5), at(4));
  assert.equal(change.verdict, "slower");
  assert(Math.abs(change.factor - 1.25) < 1e-9);
});

Deno.test("what SGLang's readers do to the engine is no change of ours", () => {
  const series = { "readers of ours": around(100, 0.02) };
  const at = (theirs: number) =>
    run({
      write: {
        series,
        ratios: { "SGLang's to spin": around(theirs, 0.02), "ours to spin": around(1, 0.02) },
      },
    });
  const change = only(at(1000), at(3000));
  assert.equal(change.by, "ours to spin");
  assert.equal(change.verdict, "same");
});

Deno.test("one odd round does not hide a change", () => {
  const odd = [...around(130, 0.02).slice(0, 8), 9_000];
  const change = only(
    run({ read: { series: { ours: around(100, 0.02) } } }),
    run({ read: { series: { ours: odd } } }),
  );
  assert.equal(change.verdict, "slower");
});

Deno.test("a case with too few samples, or none that are numbers, is unclear", () => {
  const before = run({ idle: { series: { ours: [100] } }, gone: { series: { ours: [1, 2, 3] } } });
  const after = run({
    idle: { series: { ours: [300] } },
    gone: { series: { ours: [null, null, null] } },
  });
  assert.deepEqual(compareRuns(before, after).changes.map(({ verdict }) => verdict), [
    "unclear",
    "unclear",
  ]);
});

Deno.test("cases of only one run are named and not compared", () => {
  const series = { ours: around(100, 0.02) };
  const found = compareRuns(run({ old: { series } }), run({ new: { series } }));
  assert.deepEqual([found.changes, found.onlyBefore, found.onlyAfter], [[], ["old"], ["new"]]);
});

Deno.test("the text tells changes, and that machine, versions or pace were not the same", () => {
  const series = (middle: number) => ({ ours: around(middle, 0.02) });
  const before = run({ read: { series: series(100) }, write: { series: series(100) } });
  const after = run(
    { read: { series: series(150) }, write: { series: series(50) } },
    { ...MACHINE, loadslots: "1.1.0", processor: "another", loadBefore: 7 },
    true,
  );
  const text = renderComparison(compareRuns(before, after));
  for (
    const part of [
      "loadslots 1.0.0, commit abc before; loadslots 1.1.0, commit abc now",
      "NOT THE SAME",
      "processor: made up before, another now",
      "quick now",
      "load 0.0 before, 7.0 now",
      "1 slower, 1 faster, 0 within the noise",
    ]
  ) assert(text.includes(part), `${part} is not in:\n${text}`);
  assert.match(text, /Slower:[^]*read +1\.50x[^]*Faster:[^]*write +0\.50x/);
  assert(!renderComparison(compareRuns(before, before)).includes("NOT THE SAME"));
});

Deno.test("what is no run is refused by name", () => {
  for (
    const json of ["", "[]", "{}", '{"machine":{},"results":[{"name":"read"}]}']
  ) {
    assert.throws(
      () => runFromJson(json, "old.json"),
      /^TypeError: Cannot read the run old\.json: /,
    );
  }
  const wrong = { section: "s", name: "read", unit: "ns", series: { ours: ["1"] }, ratios: {} };
  assert.throws(
    () => runFromJson(JSON.stringify({ machine: {}, results: [wrong] }), "old.json"),
    /read has no samples/,
  );
});
