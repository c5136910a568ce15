/** A story as somebody sees it who has its page open: it waits for them, people act one after the other, it stays at the end. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { playStory } from "../../src/app/demo/play.js";
import { FAULT_WORDS } from "../../src/sandbox/payments/index.js";
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
      // Held by the provider from before the answer is lost: what passes stays for as long as it is looked at.
      await waitFor(() => told.some((line) => line.includes(FAULT_WORDS.commit_then_drop)), PATIENCE);
      const faults = `${url}/sandbox/payments/faults`;
      const arm = async (fault: object): Promise<void> => {
        const armed = await page.request.post(faults, { data: { times: null, ...fault } });
        expect(armed.ok(), await armed.text()).toBe(true);
      };
      await arm({ kind: "commit_then_drop", onReplay: true });
      await arm({ kind: "read_down", how: "500" });
      await thread.getByText("Sent; the outcome is not known yet and is being checked.").waitFor();
      await thread
        .getByText(/Refund on order ORD-10042 – sent, outcome not known yet, being checked/)
        .waitFor();
      await thread
        .getByText(/its outcome is not certain yet\. It is being checked with the provider/)
        .waitFor();
      expect(await thread.getByText(/^Refunded /).count()).toBe(0);
      const calmed = await page.request.delete(faults, { data: {} });
      expect(calmed.ok(), await calmed.text()).toBe(true);
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
