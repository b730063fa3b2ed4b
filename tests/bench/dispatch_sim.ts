// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * Compares ways to choose a rank, in virtual time: `deno task simulate`.
 *
 * It prints a table, and draws the main figures into tests/bench/charts/dispatch.svg. The same seeds
 * give the same figures on every machine.
 */

import { parseArgs } from "node:util";
import { POLICIES, type PolicyName } from "./dispatch/policies.ts";
import {
  BY_DELAY,
  BY_FAULT,
  BY_LOAD,
  BY_ROUTERS,
  type Case,
  DELAYS_MS,
  ROUTERS,
  runCase,
  SEEDS,
} from "./dispatch/scenarios.ts";
import { type Outcome, percentile, STALE_AFTER_MS } from "./dispatch/simulation.ts";
import { type Chart, renderCharts } from "./svg_chart.ts";

const USAGE = `Usage: deno task simulate [options]

  --case TEXT   only the cases whose name holds TEXT; no picture is drawn then
  --help        this text`;

const PICTURE = new URL("charts/dispatch.svg", import.meta.url);

const NAMES = Object.keys(POLICIES) as PolicyName[];

const DRAWN = NAMES.filter((name) => name !== "loadslots, no lengths");

type Row = Readonly<Record<PolicyName, Outcome>>;

function run(which: Case): Row {
  return Object.fromEntries(NAMES.map((name) => [name, runCase(which, POLICIES[name])])) as Row;
}

function print(which: Case, row: Row): void {
  console.log(`\n${which.name}`);
  for (const name of NAMES) {
    const outcome = row[name];
    const ms = (share: number) => percentile(outcome.queueingMs, share).toFixed(0).padStart(8);
    const cells = [
      name.padEnd(22),
      ms(0.5),
      ms(0.99),
      outcome.imbalance.toFixed(2).padStart(10),
      outcome.leastShare.toFixed(2).padStart(8),
    ];
    const dead = which.death === undefined
      ? ""
      : `${String(outcome.deadBefore).padStart(9)} ${String(outcome.deadAfter).padStart(7)} ${
        String(outcome.lost).padStart(7)
      }`;
    console.log(`  ${cells.join(" ")}${dead}`);
  }
}

function p99(row: Row, name: PolicyName): number {
  return percentile(row[name].queueingMs, 0.99);
}

function charts(byDelay: readonly Row[], byRouters: readonly Row[]): Chart[] {
  const seriesOf = (rows: readonly Row[]) =>
    DRAWN.map((name) => ({ name, values: rows.map((row) => p99(row, name)) }));
  return [
    {
      title: "One router, by how late the loads come",
      kind: "lines",
      xLabel: "publication delay, ms",
      yLabel: "queueing time, p99, ms",
      isLog: true,
      categories: DELAYS_MS.map(String),
      series: seriesOf(byDelay),
    },
    {
      title: "Several routers that do not see each other, delay 100 ms",
      kind: "bars",
      xLabel: "routers",
      yLabel: "queueing time, p99, ms",
      isLog: true,
      categories: ROUTERS.map(String),
      series: seriesOf(byRouters),
    },
  ];
}

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { case: { type: "string" }, help: { type: "boolean", default: false } },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const cases = [...BY_DELAY, ...BY_LOAD, ...BY_ROUTERS, ...BY_FAULT];
  const wanted = cases.filter(({ name }) => name.includes(values.case ?? ""));
  console.log(
    `Queueing time in ms: from a request's arrival to the begin of its prefill; ${SEEDS.length} seeds.\n` +
      "imbalance: requests on the fullest rank beside the average, over time;\n" +
      "least: what the rank that got the fewest requests got, beside an even share;\n" +
      `dead: requests sent to a dead rank in the first ${STALE_AFTER_MS} ms, and later; lost: with it.\n`,
  );
  console.log(
    `  ${"".padEnd(22)}      p50      p99  imbalance    least  dead <2s   later    lost`,
  );
  const rows = new Map<Case, Row>();
  for (const which of wanted) {
    const row = run(which);
    rows.set(which, row);
    print(which, row);
  }
  if (wanted.length < cases.length) return wanted.length > 0 ? 0 : 1;
  const alone = BY_DELAY.find(({ delayMs }) => delayMs === 100)!;
  const byRouters = [alone, ...BY_ROUTERS.slice(0, ROUTERS.length - 1)];
  const picture = renderCharts(charts(
    BY_DELAY.map((which) => rows.get(which)!),
    byRouters.map((which) => rows.get(which)!),
  ));
  await Deno.writeTextFile(PICTURE, picture);
  console.log("\nPicture: tests/bench/charts/dispatch.svg");
  return 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
