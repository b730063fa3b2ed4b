// deno-lint-ignore-file no-console -- what was left out, and what came of it, is printed
/**
 * The soak, for as long as a test run can take: 2 minutes, or as many as LOADSLOTS_SOAK_MINUTES says.
 * And a part of the kills.
 */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { TempFolder } from "../support/temp_folder.ts";
import type { KillReport } from "./kills.ts";
import type { SoakReport } from "./report.ts";

const SOAK = fileURLToPath(new URL("./soak.ts", import.meta.url));
const MINUTES = Number(Deno.env.get("LOADSLOTS_SOAK_MINUTES") ?? 2);
const WRITERS = 100;
const COLLECTORS = 10;

/** Runs `deno task soak`, prints what it says, and gives its report. */
async function soak<Report>(...args: readonly string[]): Promise<Report> {
  using folder = new TempFolder();
  const json = `${folder.path}/report.json`;
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", SOAK, ...args, `--json=${json}`],
    env: { NO_COLOR: "1" },
    stdin: "null",
  });
  const { code, stdout, stderr } = await command.output();
  const said = new TextDecoder().decode(stdout);
  console.log(said);
  assert.equal(code, 0, `${said}\n${new TextDecoder().decode(stderr)}`);
  return JSON.parse(Deno.readTextFileSync(json)) as Report;
}

Deno.test(`${MINUTES} minutes of faults of every kind break no invariant`, async () => {
  const report = await soak<SoakReport>(`--minutes=${MINUTES}`);
  assert.deepEqual(report.broken, []);
  const { reads, published, publicationsSeen, updatesOfSlowConsumers } = report.totals;
  for (const count of [reads, published, publicationsSeen, updatesOfSlowConsumers]) {
    assert(count > MINUTES * 1000, `only ${count}`);
  }
  assert(Object.keys(report.faults).length >= Math.min(12, MINUTES * 10));
  assert(report.followedMs.count > 0);
});

Deno.test(`${WRITERS} killed writers and ${COLLECTORS} killed collectors cost readers nothing`, async () => {
  const { writers, collectors, broken } = await soak<KillReport>(
    ...["--kills", `--writers=${WRITERS}`, `--collectors=${COLLECTORS}`],
  );
  assert.deepEqual(broken, []);
  assert.deepEqual([writers.kills, collectors.kills], [WRITERS, COLLECTORS]);
  // The first writer of each rank is followed too; the first collector is nobody's successor.
  assert.equal(writers.followedMs.count, WRITERS);
  assert.equal(collectors.followedMs.count, COLLECTORS - 1);
});
