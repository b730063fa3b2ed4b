/** How the page looks and is used: keys, themes, phones, many ranks, and a stream that breaks. */

/// <reference lib="dom" />

import assert from "node:assert/strict";
import { browserTests, type TestPage } from "../support/browser.ts";
import { PageServer, type ScriptedLoad } from "../support/page_server.ts";
import { colourScale } from "../../src/http/page/client/colour_scale.js";

const test = browserTests();

const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };

/** Loads of live ranks; usage is that of the rank's number in per cent, moved on by a shift. */
function loads(count: number, shift = 0): ScriptedLoad[] {
  return Array.from({ length: count }, (_, rank) => {
    const usage = (rank * 7 + shift) % 101 / 100;
    return {
      dp_rank: rank,
      state: "live",
      age_ms: 10,
      num_running_reqs: rank % 60,
      num_waiting_reqs: rank % 5,
      num_used_tokens: Math.round(usage * 100_000),
      max_total_num_tokens: 100_000,
      token_usage: usage,
      gen_throughput: 100 + rank,
    };
  });
}

/** Has a server tell of live ranks. */
function tellAll(server: PageServer, count: number): void {
  server.tellHealth(loads(count).map(({ dp_rank, state, age_ms }) => ({ dp_rank, state, age_ms })));
  server.tell(loads(count));
}

/** The ground of the first rank's tile, beside its words. */
async function firstTile(page: TestPage): Promise<string> {
  return await page.page.$eval("#heat-canvas", (element) => {
    const context = (element as HTMLCanvasElement).getContext("2d");
    const { data } = context?.getImageData(9, 42, 1, 1) ?? { data: [] };
    return "#" + [...data].slice(0, 3).map((part) => part.toString(16).padStart(2, "0")).join("");
  });
}

test("keys move the choice, and a screen reader is told of it", async (browser) => {
  await using server = new PageServer();
  tellAll(server, 8);
  const page = await browser.open(server.url);
  await page.shows("#total-live", "8");
  const label = () => page.page.getAttribute("#heat-option", "aria-label");

  // From the top of the page: skip link, theme, heat map.
  for (let i = 0; i < 3; i++) await page.page.keyboard.press("Tab");
  assert.equal(await page.page.evaluate(() => document.activeElement?.id), "heat");
  const outline = await page.page.$eval("#heat", (heat) => getComputedStyle(heat).outlineStyle);
  assert.equal(outline, "solid");
  assert.equal(await page.page.getAttribute("#heat", "aria-activedescendant"), null);

  const columns = 4;
  for (
    const [key, rank] of [
      ["ArrowRight", 0],
      ["ArrowRight", 1],
      ["ArrowDown", 1 + columns],
      ["ArrowLeft", columns],
      ["End", 7],
      ["ArrowUp", 7 - columns],
      ["Home", 0],
    ] as const
  ) {
    await page.page.keyboard.press(key);
    await page.shows("#chosen-title", `Rank ${rank}`);
    assert.match(await label() ?? "", new RegExp(`^Rank ${rank}, live, usage ${rank * 7} %, `));
    assert.equal(await page.page.getAttribute("#heat-option", "aria-posinset"), `${rank + 1}`);
  }
  assert.equal(await page.page.getAttribute("#heat", "aria-activedescendant"), "heat-option");
  await page.page.keyboard.press("Escape");
  await page.shows("#chosen-title", "The group, over time");
  assert.equal(await page.page.isHidden("#chosen-values"), true);

  // A click does the same, and a second one takes it back.
  const box = await page.page.locator("#heat-canvas").boundingBox();
  assert.ok(box !== null);
  const click = () => page.page.mouse.click(box.x + box.width * 0.9, box.y + box.height * 0.2);
  await click();
  await page.shows("#chosen-title", "Rank 3");
  await click();
  await page.shows("#chosen-title", "The group, over time");
  page.assertQuiet();
});

test("all states are told apart by more than colour, and a live tile has its usage's colour", async (browser) => {
  await using server = new PageServer();
  const states = ["live", "stale", "corrupt", "unreported"] as const;
  const ranks = states.map((state, dp_rank) => ({
    dp_rank,
    state,
    age_ms: state === "unreported" ? null : 4000,
  }));
  server.tellHealth(ranks);
  server.tell(ranks.slice(0, 3).map((rank) => ({ ...rank, token_usage: 0.5, num_used_tokens: 1 })));
  const page = await browser.open(server.url, { colorScheme: "light" });
  await page.shows("#total-note", "1 stale, 1 corrupt, 1 never reported");
  await page.page.focus("#heat");
  const words = [];
  for (let rank = 0; rank < 4; rank++) {
    await page.page.keyboard.press(rank === 0 ? "Home" : "ArrowRight");
    await page.shows("#chosen-title", `Rank ${rank}`);
    words.push((await page.text("#chosen-state")).replace(/\d+ s/, "N s"));
  }
  assert.deepEqual(words, [
    "live, N s ago",
    "stale, N s ago",
    "corrupt, last good load N s ago",
    "never reported",
  ]);
  const legend = await page.page.$$eval(
    "#legend li[data-state]",
    (items) => items.map((item) => (item.textContent ?? "").trim()),
  );
  assert.deepEqual(legend, ["1 live", "1 stale", "1 corrupt", "1 never reported"]);
  assert.equal(await firstTile(page), colourScale("light")[50]?.fill);
  page.assertQuiet();
});

test("light and dark follow the system, until the button says otherwise; a reload keeps that", async (browser) => {
  await using server = new PageServer();
  tellAll(server, 4);
  const paper = (page: TestPage) =>
    page.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await browser.open(server.url, { colorScheme: "light" });
  const dark = await browser.open(server.url, { colorScheme: "dark" });
  await light.shows("#total-live", "4");
  await dark.shows("#total-live", "4");
  const [bright, night] = [await paper(light), await paper(dark)];
  assert.notEqual(bright, night);
  assert.equal(await firstTile(light), colourScale("light")[0]?.fill);
  assert.equal(await firstTile(dark), colourScale("dark")[0]?.fill);

  await light.page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await paper(light), night);
  await dark.page.click("#theme");
  assert.equal(await paper(dark), bright);
  await dark.page.reload();
  await dark.shows("#total-live", "4");
  assert.equal(await paper(dark), bright);
  assert.equal(await dark.page.getAttribute("#theme", "aria-label"), "Theme: Light");
  light.assertQuiet();
  dark.assertQuiet();
});

for (const count of [1, 8, 512]) {
  test(`a phone shows ${count} ranks without scrolling sideways`, async (browser) => {
    await using server = new PageServer();
    tellAll(server, count);
    const page = await browser.open(server.url, PHONE);
    await page.shows("#total-live", `${count}`);
    assert.ok(await page.overflow() <= 0);
    await page.page.tap("#heat-canvas", { position: { x: 12, y: 12 } });
    await page.shows("#chosen-title", "Rank 0");
    assert.ok(await page.overflow() <= 0);
    await page.page.click("#table summary");
    await page.shows("#table-body tr:last-child th", `${count - 1}`);
    assert.ok(await page.overflow() <= 0);
    // A finger needs room.
    const small = await page.page.$$eval(
      "button:not([hidden]), summary, .spans span",
      (elements) =>
        elements.map((element) => element.getBoundingClientRect()).filter(({ width, height }) =>
          width > 0 && height < 28
        ).length,
    );
    assert.equal(small, 0);
    page.assertQuiet();
  });
}

test("512 ranks that all change many times a second leave the page its frames", async (browser) => {
  await using server = new PageServer();
  tellAll(server, 512);
  const page = await browser.open(server.url);
  await page.shows("#total-live", "512");
  let shift = 0;
  const timer = setInterval(() => server.tell(loads(512, ++shift)), 50);
  try {
    const before = await page.page.locator("#heat-canvas").screenshot();
    const counts = await page.page.evaluate(async () => {
      let frames = 0;
      let changes = 0;
      const figure = document.querySelector("#total-usage");
      const observer = new MutationObserver(() => changes++);
      if (figure !== null) observer.observe(figure, { childList: true, characterData: true });
      const end = performance.now() + 3000;
      while (performance.now() < end) {
        await new Promise(requestAnimationFrame);
        frames++;
      }
      observer.disconnect();
      return { frames, changes };
    });
    // 60 a second on a machine with nothing else to do; frozen, it would be none.
    assert.ok(counts.frames >= 15, JSON.stringify(counts));
    assert.notDeepEqual(await page.page.locator("#heat-canvas").screenshot(), before);
    // Its keys are still answered.
    await page.page.focus("#heat");
    await page.page.keyboard.press("End");
    await page.shows("#chosen-title", "Rank 511");
  } finally {
    clearInterval(timer);
  }
  page.assertQuiet();
});

test("a stream that breaks is told, turns all stale, and goes on after the last event", async (browser) => {
  await using server = new PageServer();
  tellAll(server, 4);
  const page = await browser.open(server.url);
  await page.shows("#connection-text", "Live");
  server.tell(loads(4, 3));
  await page.shows("#total-usage", "14");

  server.drop("the server closes");
  const lastEventId = server.lastEventId;
  await page.shows("#connection-text", /^Connection lost, retrying/);
  await page.shows("#total-note", "4 stale");
  await page.shows("#connection-text", /last heard \d+ s ago$/);
  await page.shows("#announcer", /Connection lost/);
  // Its last numbers stay to be seen, paler.
  assert.equal(await page.text("#total-usage"), "14");
  assert.ok(
    await page.page.$eval("#content", (content) => getComputedStyle(content).opacity) < "1",
  );

  server.accept();
  await page.shows("#connection-text", "Live");
  await page.shows("#total-live", "4");
  const streams = server.requests.filter(({ path }) => path === "/v1/loads/stream");
  assert.equal(streams[0]?.lastEventId, null);
  assert.equal(streams.at(-1)?.lastEventId, lastEventId);
  // The browser's own word on each 503.
  assert.ok(page.console.every((line) => line.includes("503")), page.console.join("\n"));
});

test("a server that refuses from the start is told in the middle of the page", async (browser) => {
  await using server = new PageServer();
  server.drop();
  const page = await browser.open(server.url);
  await page.shows("#notice-title", "No connection");
  await page.shows("#notice-text", "Retrying: the server answers 503.");
  tellAll(server, 2);
  server.accept();
  await page.shows("#total-live", "2");
  assert.equal(await page.page.isHidden("#notice"), true);
});

test("without motion where that is wished, and nonsense in the stream does no harm", async (browser) => {
  await using server = new PageServer();
  tellAll(server, 2);
  const page = await browser.open(server.url, { reducedMotion: "reduce" });
  await page.shows("#total-live", "2");
  const moving = await page.page.$$eval(
    "*",
    (elements) =>
      elements.filter((element) => getComputedStyle(element).transitionDuration !== "0s").length,
  );
  assert.equal(moving, 0);
  server.write(
    "event: loads\ndata: {not json\n\nevent: health\ndata: 7\n\nevent: other\ndata: x\n\n",
  );
  server.write('event: loads\ndata: {"loads":[null,{"dp_rank":-1},{"dp_rank":"x"}]}\n\n');
  server.write(
    'event: loads\ndata: {"loads":[{"dp_rank":1,"num_running_reqs":"<b>","token_usage":null}]}\n\n',
  );
  await page.page.focus("#heat");
  await page.page.keyboard.press("End");
  await page.shows("#chosen-title", "Rank 1");
  const values = await page.chosenValues();
  assert.deepEqual([values["Running"], values["Usage"]], ["–", "–"]);
  page.assertQuiet();
});
