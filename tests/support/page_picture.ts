// deno-lint-ignore-file no-console -- a command: its output is its purpose
/**
 * Takes the picture of the page that README.md shows, of five minutes of the simulated engine:
 *
 * ```sh
 * deno run -A tests/support/page_picture.ts examples/page.png [light|dark] [ranks] [width] [height]
 * ```
 */

import { ShmLoadSnapshotReader } from "../../mod.ts";
import { SimulatedEngine } from "../../examples/engine.ts";
import { serveLoad } from "../../src/http/mod.ts";
import { findBrowser, TestBrowser } from "./browser.ts";
import { SlotPath } from "./slot_path.ts";
import { sleep } from "./wait.ts";

const SHOWN_S = 300;
const WARM_UP_S = 120;

async function main(args: readonly string[]): Promise<void> {
  const [file, scheme = "dark", ranks = "8", width = "1440", height = "860"] = args;
  const place = findBrowser();
  if (file === undefined || place === null) throw new Error("Cannot take it: no file or browser");
  using slot = new SlotPath();
  // Until it has caught up, the engine's past is what it tells.
  using reader = new ShmLoadSnapshotReader(slot.path, { staleAfterMs: 3_600_000 });
  using engine = SimulatedEngine.publishingTo(slot.path, {
    dpSize: Number(ranks),
    startMs: Date.now() - (SHOWN_S + WARM_UP_S) * 1000,
  });
  engine.step(WARM_UP_S * 1000);
  await using server = serveLoad(reader);
  await using browser = await TestBrowser.start(place);
  const { page } = await browser.open("about:blank", {
    viewport: { width: Number(width), height: Number(height) },
    colorScheme: scheme === "light" ? "light" : "dark",
  });
  // The page's clock goes as the engine's does: a second in some milliseconds.
  await page.addInitScript(`
    const realNow = Date.now;
    globalThis.behindMs = ${SHOWN_S * 1000};
    Date.now = () => realNow() - globalThis.behindMs;
  `);
  await page.goto(server.url);
  for (let second = 0; second < SHOWN_S; second++) {
    engine.step(1000);
    await sleep(40);
    await page.evaluate("globalThis.behindMs = Math.max(0, globalThis.behindMs - 1040)");
  }
  const stop = AbortSignal.timeout(2500);
  await engine.run({ signal: stop });
  await page.screenshot({ path: file });
  console.log(`${file}: ${(await Deno.stat(file)).size} bytes`);
}

if (import.meta.main) await main(Deno.args);
