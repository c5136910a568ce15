/** A story as somebody sees it who has its page open: it waits for them, people act one after the other, it stays at the end. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { playStory } from "../../src/app/demo/play.js";
import { withDatabases } from "../e2e/support/databases.js";
import { waitFor } from "../support/wait.js";
import { describeInBrowser, visitor } from "./support/chromium.js";

const { visit } = visitor();
/** The whole product starts first, beside whatever else the machine does. */
const PATIENCE = { timeoutMs: 120_000 };

describeInBrowser("a story on the page", () => {
  const databases = withDatabases();
  const home = mkdtempSync(path.join(tmpdir(), "countersign-watched-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  it("waits for the page, shows the story to its settled end, and stays until it is stopped", {
    timeout: 400_000,
  }, async () => {
    const told: string[] = [];
    const stop = new AbortController();
    const played = playStory({
      name: "lost-response",
      watch: true,
      stopped: stop.signal,
      outDir: home,
      dataDir: path.join(home, "data"),
      databaseServerUrl: databases.serverUrl,
      databaseName: await databases.fresh(),
      tell: (line) => told.push(line),
    });
    played.catch(() => undefined);
    try {
      await waitFor(() => told.includes("It begins when the page is open."), PATIENCE);
      expect(told.some((line) => line.includes("files:"))).toBe(false);
      const url = /Watch it on (\S+)\/archives/u.exec(told.join("\n"))?.[1] ?? "";
      const page = await visit(url, { as: "U_AGENT", path: "/archives/C_TICK" });
      page.setDefaultTimeout(PATIENCE.timeoutMs);
      await page.locator("#messages .replies").click();
      const thread = page.locator("#thread");
      // Buttons and waits come and go while it plays, however slowly; what happened stays.
      await thread
        .getByText(/180\.00/)
        .first()
        .waitFor();
      await thread
        .getByText(/^Refunded .*180\.00/)
        .first()
        .waitFor();
      await waitFor(() => told.includes("The page stays until Ctrl-C."), PATIENCE);
      expect(await page.getByText("App connected").count()).toBe(1);
    } finally {
      stop.abort();
    }
    expect(await played).toEqual([]);
  });
});
