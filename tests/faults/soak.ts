// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * Breaks everything on purpose for a while, and tells what came of it: `deno task soak --minutes N`.
 *
 * `--seed N` repeats the faults of a run, `--only TEXT` leaves out those that are called otherwise,
 * `--json FILE` writes the report. `--kills` kills 1000 writers and 200 collectors instead, or as many
 * as `--writers N` and `--collectors N` say.
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ensurePeers } from "../peers/setup.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { sleep } from "../support/wait.ts";
import { INSIDE, isolate } from "./isolation.ts";
import { killTableOf, runKills } from "./kills.ts";
import { reportOf, type SoakReport, tableOf } from "./report.ts";
import { runFaults } from "./run_faults.ts";
import { RunRecord } from "./run_record.ts";
import { Stage } from "./stage.ts";

const SAMPLE_MS = 3000;
const PROGRESS_MS = 30_000;

/** Where Debian keeps the library that gives one process a clock of its own. */
const CLOCKS = ["x86_64", "aarch64"].map((arch) =>
  `/usr/lib/${arch}-linux-gnu/faketime/libfaketimeMT.so.1`
);

interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly json: string | null;
  readonly only: string;
  /** How many are to be killed instead of a soak, or `null`. */
  readonly kills: { readonly writers: number; readonly collectors: number } | null;
}

function optionsOf(args: readonly string[]): SoakOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "2" },
      seed: { type: "string" },
      json: { type: "string" },
      only: { type: "string", default: "" },
      kills: { type: "boolean", default: false },
      writers: { type: "string", default: "1000" },
      collectors: { type: "string", default: "200" },
    },
  });
  const minutes = Number(values.minutes);
  const seed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
  if (!(minutes > 0)) throw new RangeError(`Cannot soak for ${values.minutes} minutes`);
  if (!Number.isInteger(seed)) throw new RangeError(`Cannot use seed ${values.seed}: no integer`);
  const kills = { writers: Number(values.writers), collectors: Number(values.collectors) };
  return {
    minutes,
    seed,
    json: values.json ?? null,
    only: values.only,
    kills: values.kills ? kills : null,
  };
}

/** Runs a soak within namespaces of its own, where there are any. */
async function outside(args: readonly string[], seed: number): Promise<boolean> {
  using folder = new TempFolder();
  const { command, whyNot } = await isolate(folder.path);
  const self = [Deno.execPath(), "run", "-A", fileURLToPath(import.meta.url)];
  const [program = "", ...rest] = [...command, ...self, ...args, `--seed=${seed}`];
  const child = new Deno.Command(program, {
    args: rest,
    env: { [INSIDE]: whyNot === null ? folder.path : `left out: ${whyNot}` },
    stdin: "null",
  }).spawn();
  return (await child.status).success;
}

/** The soak itself. */
async function inside({ minutes, seed, json, only }: SoakOptions, where: string): Promise<boolean> {
  const record = new RunRecord();
  const isIsolated = !where.startsWith("left out");
  if (!isIsolated) record.leaveOut(`a small file system and a network: ${where}`);
  const peers = await ensurePeers();
  if (peers.state === "missing") record.leaveOut(`SGLang's processes: ${peers.reason}`);
  const clockLibrary = CLOCKS.find((path) => exists(path)) ?? null;
  console.log(`Soak of ${minutes} minutes, --seed ${seed}`);
  using folder = new TempFolder();
  let isOver = false;
  const stop = () => {
    console.log("Stopped by a signal");
    isOver = true;
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, stop);
  {
    await using stage = await Stage.open({
      peers: peers.state === "ready" ? peers : null,
      record,
      folder: folder.path,
      smallFolder: isIsolated ? where : null,
      clockLibrary,
      hasOwnNetwork: isIsolated,
    });
    const end = performance.now() + minutes * 60_000;
    const faults = runFaults(stage, { seed, only }, () => isOver);
    let nextProgressMs = performance.now() + PROGRESS_MS;
    while (!isOver) {
      await sleep(Math.min(SAMPLE_MS, Math.max(0, end - performance.now())));
      record.resources.sample(stage.pids(), record.seconds);
      isOver ||= performance.now() >= end;
      if (performance.now() < nextProgressMs) continue;
      nextProgressMs += PROGRESS_MS;
      console.log(progressOf(record));
    }
    await faults;
    await sleep(SAMPLE_MS / 2);
  }
  if (folder.names().length > 0) record.breaks("left behind", folder.names().join(", "));
  record.judge();
  const report: SoakReport = reportOf(record, seed, record.seconds / 60);
  console.log(tableOf(report));
  writeJson(json, report);
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.removeSignalListener(signal, stop);
  return report.broken.length === 0;
}

/** Kills, and nothing else. */
async function kill(options: SoakOptions, counts: { writers: number; collectors: number }) {
  const peers = await ensurePeers();
  if (peers.state === "missing") console.log(`Left out: SGLang's processes: ${peers.reason}`);
  const report = await runKills({
    seed: options.seed,
    ...counts,
    peers: peers.state === "ready" ? peers : null,
    log: console.log,
  });
  console.log(killTableOf(report));
  writeJson(options.json, report);
  return report.broken.length === 0;
}

function writeJson(path: string | null, report: object): void {
  if (path !== null) Deno.writeTextFileSync(path, `${JSON.stringify(report, null, 2)}\n`);
}

function progressOf(record: RunRecord): string {
  const { reads, published } = record.totals();
  const faults = Object.values(record.faults.counts).reduce((sum, count) => sum + count, 0);
  const broken = record.broken.length;
  return `${record.seconds.toFixed(0)} s: ${reads} reads, ${published} publications, ` +
    `${faults} faults, ${broken} invariants broken${
      broken > 0 ? `: ${record.broken.at(-1)!.detail}` : ""
    }`;
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

if (import.meta.main) {
  const options = optionsOf(Deno.args);
  const where = Deno.env.get(INSIDE);
  const run = options.kills !== null
    ? kill(options, options.kills)
    : where === undefined
    ? outside(Deno.args, options.seed)
    : inside(options, where);
  if (!await run) Deno.exit(1);
}
