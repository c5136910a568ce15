/** A real Chromium for a test file, and pages that fail the test when anything on them goes wrong. */
import { existsSync, readFileSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

/** Where Debian's and the usual other packages put it; CHROMIUM_PATH names another place. */
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** A headless run that stays off the network, also as root in a container. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

function chromiumPath(): string | undefined {
  const named = process.env["CHROMIUM_PATH"];
  return [...(named === undefined ? [] : [named]), ...PLACES].find((place) => existsSync(place));
}

const MISSING =
  "Browser tests are left out: there is no Chromium here. Install it (Debian: apt-get install chromium) or name it in CHROMIUM_PATH.";

/** A suite in the browser; without one a skipped test that says so. */
export function describeInBrowser(name: string, suite: () => void): void {
  if (chromiumPath() !== undefined) {
    describe(name, suite);
    return;
  }
  process.stderr.write(`${MISSING}\n`);
  describe(name, () => {
    it.skip(MISSING, () => undefined);
  });
}

export interface Visit extends BrowserContextOptions {
  /** Person who looks. */
  as: string;
  /** `/archives/C_TICK`, or `/` with a query. */
  path?: string;
}

export interface Visitor {
  /** Opens the page of a sandbox as a person, in a window of its own. */
  visit(baseUrl: string, visit: Visit): Promise<Page>;
}

/** One browser for the file; windows are closed after each test, and none of them may have had an error of script or policy. */
export function visitor(): Visitor {
  let browser: Browser | undefined;
  const wrong: string[] = [];
  beforeAll(async () => {
    const executablePath = chromiumPath();
    if (executablePath !== undefined) browser = await chromium.launch({ executablePath, args: ARGS });
  });
  afterEach(async () => {
    for (const context of browser?.contexts() ?? []) await context.close();
    expect(wrong.splice(0)).toEqual([]);
  });
  afterAll(() => browser?.close());
  return {
    async visit(baseUrl, { as, path = "/", ...options }) {
      if (browser === undefined) throw new Error(MISSING);
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      const page = await context.newPage();
      page.setDefaultTimeout(30_000);
      page.on("pageerror", (error) => wrong.push(String(error)));
      page.on("dialog", (dialog) => wrong.push(`a dialog of the browser: ${dialog.message()}`));
      page.on("console", (message) => {
        // Refused calls are part of the tests and Chromium logs them; everything else is a fault of the page.
        const isAnswer = message.text().startsWith("Failed to load resource");
        if (message.type() === "error" && !isAnswer) wrong.push(message.text());
      });
      await page.goto(`${baseUrl}${path}${path.includes("?") ? "&" : "?"}as=${as}`);
      await page.locator("body[data-ready]").waitFor({ state: "attached" });
      return page;
    },
  };
}

const AUDIT = readFileSync(new URL("./audit.page.js", import.meta.url), "utf8");

/** What somebody who cannot see the page well would stumble over, as it stands now; one sentence each. */
export async function stumbles(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(AUDIT);
}

/** Nothing sticks out to the side. */
export async function fitsWidth(page: Page): Promise<boolean> {
  return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth");
}
