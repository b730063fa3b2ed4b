/** The page in a real browser, over the real server: what a person sees is what the slot file says. */

/// <reference lib="dom" />

import assert from "node:assert/strict";
import {
  createLoadSnapshot,
  type LoadSnapshot,
  ShmLoadSnapshotReader,
  ShmLoadSnapshotWriter,
} from "../../mod.ts";
import { serveLoad } from "../../src/http/mod.ts";
import { SimulatedEngine } from "../../examples/engine.ts";
import { browserTests, type TestPage } from "../support/browser.ts";
import { SlotPath } from "../support/slot_path.ts";

const test = browserTests();

/** A snapshot of a rank whose every value is its own. */
function loadOf(dpRank: number, round: number): LoadSnapshot {
  const numUsedTokens = 12_345 * (dpRank + 1) + round;
  return createLoadSnapshot({
    timestamp: Date.now() / 1000,
    dpRank,
    numRunningReqs: 3 + dpRank + round,
    numWaitingReqs: 5 * dpRank,
    numWaitingUncachedTokens: 70 * dpRank,
    numUsedTokens,
    numTotalTokens: numUsedTokens + 17 * dpRank,
    maxTotalNumTokens: 131_072,
    maxRunningRequests: 48,
    tokenUsage: Math.round(numUsedTokens / 131_072 * 1e4) / 1e4,
    genThroughput: 1000.25 + dpRank,
    cacheHitRate: 0.125,
  });
}

const exact = (value: number) => Math.round(value).toLocaleString("en");

/** What the panel has to say of a snapshot, by the snapshot's own values. */
function panelOf(load: LoadSnapshot): Record<string, string> {
  return {
    "Running": exact(load.numRunningReqs),
    "Waiting": exact(load.numWaitingReqs),
    "Usage": `${(load.tokenUsage * 100).toFixed(1)} %`,
    "Tokens in use": exact(load.numUsedTokens),
    "Used and pending": exact(load.numTotalTokens),
    "Uncached waiting": exact(load.numWaitingUncachedTokens),
    "Token capacity": exact(load.maxTotalNumTokens),
    "Tokens/s": exact(load.genThroughput),
    "Cache hits": `${(load.cacheHitRate * 100).toFixed(1)} %`,
    "Most running": exact(load.maxRunningRequests),
  };
}

test("the numbers of every rank and of the group are the slot file's, and follow it", async (browser) => {
  using slot = new SlotPath();
  using writers = new DisposableStack();
  const ranks = [0, 1, 2, 3];
  const all = ranks.map((dpRank) =>
    writers.use(new ShmLoadSnapshotWriter(slot.path, { dpSize: 4, dpRank }))
  );
  using reader = new ShmLoadSnapshotReader(slot.path, { staleAfterMs: 600_000 });
  all.forEach((writer, rank) => writer.write(loadOf(rank, 0)));
  await using server = serveLoad(reader);
  const page = await browser.open(server.url);

  for (const round of [0, 1]) {
    if (round > 0) all.forEach((writer, rank) => writer.write(loadOf(rank, round)));
    const loads = ranks.map((rank) => loadOf(rank, round));
    const sum = (name: "numRunningReqs" | "numWaitingReqs") =>
      loads.reduce((total, load) => total + load[name], 0);
    await page.shows("#total-running", String(sum("numRunningReqs")));
    await page.shows("#total-waiting", String(sum("numWaitingReqs")));
    await page.shows("#total-live", "4");
    // 12,345 x (1 + 2 + 3 + 4) of 4 x 131,072.
    await page.shows("#total-usage", "24");
    await page.shows("#total-used", "123k");
    await page.shows("#total-max", "524k");
    await page.shows("#total-throughput", "4,007");

    await page.page.focus("#heat");
    await page.page.keyboard.press("Home");
    for (const load of loads) {
      await page.shows("#chosen-title", `Rank ${load.dpRank}`);
      assert.deepEqual(await page.chosenValues(), panelOf(load));
      await page.page.keyboard.press("ArrowRight");
    }
  }

  await page.page.click("#table summary");
  await page.shows("#table-body tr:last-child th", "3");
  const row = await page.page.$$eval(
    "#table-body tr:last-child > *",
    (cells) => cells.slice(0, 8).map((cell) => cell.textContent),
  );
  assert.deepEqual(row, ["3", "7", "15", "49,381", "131,072", "38", "1,003", "live"]);
  page.assertQuiet();
});

test("an engine that stops turns stale in sight, and one that never reported is no zero", async (browser) => {
  using slot = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(slot.path, { dpSize: 2, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(slot.path, { staleAfterMs: 1500 });
  await using server = serveLoad(reader);
  const beat = setInterval(() => writer.write(loadOf(0, 0)), 200);
  let page: TestPage;
  let live: Uint8Array;
  try {
    page = await browser.open(server.url);
    await page.shows("#total-live", "1");
    await page.page.focus("#heat");
    await page.page.keyboard.press("Home");
    await page.shows("#chosen-state", /^live, /);
    live = await page.page.locator("#heat-canvas").screenshot();
  } finally {
    clearInterval(beat);
  }

  // Now it is silent.
  await page.shows("#chosen-state", /^stale, \d+ s ago$/);
  await page.shows("#total-live", "0");
  await page.shows("#total-note", "1 stale, 1 never reported");
  // What it told last stays to be seen.
  assert.equal((await page.chosenValues())["Running"], "3");
  const stale = await page.page.locator("#heat-canvas").screenshot();
  assert.notDeepEqual(stale, live);
  const ageOf = async () => Number(/(\d+) s ago/.exec(await page.text("#chosen-state"))?.[1]);
  const before = await ageOf();
  await page.page.waitForTimeout(2200);
  assert.ok(await ageOf() >= before + 2, "its age goes on");
  await page.shows("#announcer", /Rank 0 stale/);

  await page.page.keyboard.press("ArrowRight");
  await page.shows("#chosen-state", "never reported");
  assert.deepEqual(new Set(Object.values(await page.chosenValues())), new Set(["–"]));

  writer.write(loadOf(0, 1));
  await page.shows("#total-running", "4");
  page.assertQuiet();
});

test("an embedded engine is shown as it runs, and when it is gone that is told", async (browser) => {
  using slot = new SlotPath();
  using reader = new ShmLoadSnapshotReader(slot.path, { staleAfterMs: 1500 });
  await using server = serveLoad(reader);
  const page = await browser.open(server.url);
  await page.shows("#notice-title", "No engine there");
  assert.equal(await page.page.isHidden("#content"), true);

  {
    using engine = SimulatedEngine.publishingTo(slot.path, { dpSize: 3 });
    const stop = new AbortController();
    const running = engine.run({ signal: stop.signal });
    try {
      await page.shows("#total-ranks", "/3");
      await page.shows("#total-live", "3");
      await page.shows("#total-running", /^[1-9]/);
      const before = await page.text("#total-throughput");
      await page.shows("#total-throughput", new RegExp(`^(?!${before}$)`));
    } finally {
      stop.abort();
      await running;
    }
  }
  await page.shows("#total-live", "0");
  page.assertQuiet();
});

test("below a base path the page finds all that it needs", async (browser) => {
  using slot = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(slot.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(slot.path, { staleAfterMs: 600_000 });
  await using server = serveLoad(reader, { basePath: "/engines/one" });
  writer.write(loadOf(0, 0));
  const page = await browser.open(server.url);
  await page.shows("#total-running", "3");
  page.assertQuiet();
});

test("all that is transferred is far under 150 KB, for the files go compressed", async (browser) => {
  using slot = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(slot.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(slot.path, { staleAfterMs: 600_000 });
  await using server = serveLoad(reader);
  writer.write(loadOf(0, 0));
  const page = await browser.open("about:blank");
  let bytes = 0;
  const session = await page.page.context().newCDPSession(page.page);
  await session.send("Network.enable");
  session.on("Network.loadingFinished", ({ encodedDataLength }) => bytes += encodedDataLength);
  await page.page.goto(server.url);
  await page.shows("#total-running", "3");
  assert.ok(bytes > 20_000 && bytes < 100_000, `${bytes}`);
});

test("with a token: asked for, kept out of the address, and in memory only", async (browser) => {
  using slot = new SlotPath();
  using writer = new ShmLoadSnapshotWriter(slot.path, { dpSize: 1, dpRank: 0 });
  using reader = new ShmLoadSnapshotReader(slot.path, { staleAfterMs: 600_000 });
  await using server = serveLoad(reader, { token: "open+sesame" });
  writer.write(loadOf(0, 0));

  const page = await browser.open(`${server.url}#token=open%2Bsesame`);
  await page.shows("#total-running", "3");
  assert.equal(page.page.url(), server.url);
  assert.deepEqual(await page.page.evaluate(() => [localStorage.length, document.cookie]), [0, ""]);
  page.assertQuiet();

  // The reload has lost it, so it is asked for; the browser's own word on the 401 is expected.
  await page.page.reload();
  await page.shows("#notice-title", "A token is needed");
  await page.page.fill("#token", "wrong");
  await page.page.keyboard.press("Enter");
  await page.page.waitForResponse((response) => response.status() === 401);
  await page.page.fill("#token", "open+sesame");
  await page.page.click("#token-form button");
  await page.shows("#total-running", "3");
  await page.shows("#connection-text", "Live");
  assert.equal(await page.page.isHidden("#notice"), true);
  assert.equal(page.console.every((line) => line.includes("401")), true, page.console.join("\n"));
});
