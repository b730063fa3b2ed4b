// deno-lint-ignore-file no-console -- the reason for tests that are left out is printed
/** A real browser: Debian's Chromium, and pages of it that tell all that went wrong in them. */

/// <reference lib="dom" />

import assert from "node:assert/strict";
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "npm:playwright-core@1.65.1";
import { HANG_MS } from "./wait.ts";

/** Where Debian's package puts it, and others may. */
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Registers one test; it gets a browser of its own, which ends with the test. */
export type BrowserTest = (name: string, run: (browser: TestBrowser) => Promise<void>) => void;

/**
 * Looks for the browser, once in each test file.
 *
 * Without it, each test is left out with a printed reason; where the environment says `CI=true` that
 * is an error instead.
 *
 * @returns What to register tests with, in the place of `Deno.test`.
 */
export function browserTests(): BrowserTest {
  const place = findBrowser();
  if (place === null && Deno.env.get("CI") === "true") {
    throw new Error(`Cannot find a browser: none of ${PLACES.join(", ")} is there`);
  }
  return (name, run) => {
    if (place === null) console.error(`left out: "${name}": no Chromium (apt: chromium)`);
    Deno.test({
      name,
      ignore: place === null,
      fn: async () => {
        await using browser = await TestBrowser.start(place ?? "");
        await run(browser);
      },
    });
  };
}

/** Finds the browser's program; `null` where there is none. */
export function findBrowser(): string | null {
  return PLACES.find(isFile) ?? null;
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** A browser process. */
export class TestBrowser implements AsyncDisposable {
  readonly #browser: Browser;

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** Starts the program at a path. */
  static async start(executablePath: string): Promise<TestBrowser> {
    const args = [
      "--disable-dev-shm-usage",
      // Debian's sandbox does not run as root, which CI is.
      "--no-sandbox",
      // It asks no one for anything of its own accord.
      "--disable-background-networking",
      "--disable-component-update",
    ];
    return new TestBrowser(await chromium.launch({ executablePath, args, timeout: 60_000 }));
  }

  /** Opens a page in a fresh profile. */
  async open(url: string, options: BrowserContextOptions = {}): Promise<TestPage> {
    const context = await this.#browser.newContext({
      viewport: { width: 1280, height: 800 },
      ...options,
    });
    const page = new TestPage(await context.newPage());
    await page.page.goto(url);
    return page;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}

/** A page, and what it said and asked for. */
export class TestPage {
  readonly page: Page;
  /** All that is in the console, and all errors that nothing caught. */
  readonly console: string[] = [];
  /** All addresses that were asked for. */
  readonly requests: string[] = [];

  constructor(page: Page) {
    this.page = page;
    page.setDefaultTimeout(HANG_MS);
    page.on("console", (message) => this.console.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => this.console.push(`uncaught: ${error.message}`));
    page.on("request", (request) => this.requests.push(request.url()));
  }

  /** Asserts that nothing is in the console, and that only one host was asked. */
  assertQuiet(): void {
    assert.deepEqual(this.console, []);
    const { host } = new URL(this.page.url());
    assert.ok(this.requests.length > 0);
    assert.deepEqual(this.requests.filter((url) => new URL(url).host !== host), []);
  }

  /** The text of an element, without blanks around it. */
  async text(selector: string): Promise<string> {
    return (await this.page.textContent(selector) ?? "").trim();
  }

  /** Waits until an element's text is as it should be. */
  async shows(selector: string, expected: string | RegExp): Promise<void> {
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      const text = await this.text(selector);
      if (typeof expected === "string" ? text === expected : expected.test(text)) return;
      if (performance.now() > deadline) throw new Error(`${selector}: ${text}, not ${expected}`);
      await this.page.waitForTimeout(20);
    }
  }

  /** The values of the chosen rank, by name. */
  async chosenValues(): Promise<Record<string, string>> {
    return await this.page.$$eval("#chosen-values > div", (groups) =>
      Object.fromEntries(
        groups.map((group) => [
          group.querySelector("dt")?.textContent ?? "",
          group.querySelector("dd")?.textContent ?? "",
        ]),
      ));
  }

  /** How much wider than the screen the page is, in pixels. */
  async overflow(): Promise<number> {
    return await this.page.evaluate(() =>
      document.documentElement.scrollWidth - globalThis.innerWidth
    );
  }
}
