/** The whole product, watched and worked on the page: real process, real database, both sandboxes on their wires. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operationJson } from "../../src/app/commands/ops.js";
import { type Product, startProduct } from "../../src/app/demo/product.js";
import { prepareShop } from "../../src/app/demo/seed.js";
import { startWorld, type World } from "../../src/app/demo/world.js";
import { toJsonText } from "../../src/app/output.js";
import { hostEnvironment } from "../../src/config/host.js";
import { type OpenDb, openDb } from "../../src/db/connect.js";
import { listOperations } from "../../src/ledger/index.js";
import { demoShop } from "../../src/shop/index.js";
import { withDatabases } from "../e2e/support/databases.js";
import { describeInBrowser, fitsWidth, visitor } from "./support/chromium.js";

const { visit } = visitor();

/** Short enough that a lost answer is checked, and given up, while the test watches. */
const TIMING = {
  PLANNER: "scripted",
  PROVIDER_TIMEOUT_MS: "2500",
  RECONCILE_EVERY_MS: "300",
  RECONCILE_BASE_MS: "300",
  RECONCILE_MAX_MS: "1000",
  QUARANTINE_AFTER_MS: "3000",
  LEASE_MS: "6000",
};

const thread = (page: Page) => page.locator("#thread");
const composer = (page: Page) => page.locator("#channel textarea");
const form = (page: Page) => page.locator("dialog.modal");

/** Opens a form as a person does: where the machine was too slow for Slack, no form comes and they click again. */
async function openForm(page: Page, button: Locator): Promise<void> {
  const submit = form(page).locator("button[type=submit]");
  for (let clicks = 1; ; clicks += 1) {
    await button.click();
    const came = await submit.waitFor({ timeout: 15_000 }).then(
      () => true,
      () => false,
    );
    if (came) return;
    if (clicks === 5) throw new Error("five clicks opened no form");
  }
}

/** The form was taken: it is gone, or on a slow machine says that the answer comes as a message. */
const sent = (page: Page) => form(page).locator("button[type=submit]").waitFor({ state: "detached" });

describeInBrowser("the product on the page", () => {
  const databases = withDatabases();
  let world: World;
  let product: Product;
  let db: OpenDb;
  let home: string;

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "countersign-browser-"));
    world = await startWorld({
      dataDir: home,
      slackPort: 0,
      paymentsPort: 0,
      postgresPort: 0,
      productPort: 0,
      databaseServerUrl: databases.serverUrl,
      databaseName: await databases.fresh(),
      transport: "socket",
      policyFile: resolve("policies/default.yaml"),
      shop: demoShop({ today: new Date() }),
      extraEnv: TIMING,
      keepWorkspace: false,
      operations: async () =>
        (await listOperations(db, { limit: 50 })).rows.map((row) =>
          JSON.parse(toJsonText(operationJson(row))),
        ),
    });
    db = openDb({ url: world.databaseUrl, applicationName: "browser-test", poolSize: 2 });
    await prepareShop(db, world.shop);
    product = await startProduct({
      env: { ...hostEnvironment(), ...world.env },
      port: world.productPort,
      logFile: join(home, "product.log"),
    });
  }, 180_000);

  afterAll(async () => {
    await product?.stop();
    await db?.close();
    await world?.stop();
    rmSync(home, { recursive: true, force: true });
  }, 120_000);

  /** Files a ticket, opens its thread, says whom it is about. */
  async function file(page: Page, text: string): Promise<void> {
    await composer(page).fill(text);
    await composer(page).press("Enter");
    const ticket = page.locator("#messages article", { hasText: text });
    await ticket.locator(".replies").click();
    await thread(page).getByRole("button", { name: "Confirm" }).click();
    await thread(page).getByText("Waiting for an approval").waitFor();
  }

  const approvals = (page: Page, order: string) =>
    page
      .locator("#messages article", { hasText: order })
      .filter({ has: page.getByRole("button", { name: /^Approve/ }) });

  it("takes a refund from the ticket over the countersignature to the outcome, in two windows at once", async () => {
    const ada = await visit(world.slack.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    const sam = await visit(world.slack.url, { as: "U_SUP1", path: "/archives/C_APPR" });
    await file(ada, "The kettle of order ORD-1001 arrived broken. Please refund the $79.00.");
    const card = approvals(sam, "ORD-1001");
    await card.getByText("$79.00", { exact: false }).first().waitFor();
    await card.getByRole("button", { name: /^Approve/ }).click();
    await thread(ada)
      .getByText(/^Refunded .*79\.00/)
      .first()
      .waitFor();
    // The card has the amount in a row of its own.
    await sam
      .locator("#messages article", { hasText: "$79.00" })
      .getByText(/^Refunded\. Reference/)
      .waitFor();
    expect(await sam.getByRole("button", { name: /^Approve/ }).count()).toBe(0);
    await sam.locator("#inspector-toggle").click();
    await sam.getByRole("tab", { name: "Books" }).click();
    await sam.getByText("The books agree.").waitFor();
    await sam.locator('.book-row[data-verdict="agree"]', { hasText: "ORD-1001" }).waitFor();
    expect(await world.payments.control.counts()).toMatchObject({ committed: 1, duplicates: 0 });
  });

  it("shows what waits in App Home, and refuses with a note that the filer reads", async () => {
    const ada = await visit(world.slack.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    await file(ada, "Order ORD-1002 never worked, please refund the $330.00.");
    const priya = await visit(world.slack.url, { as: "U_SUP2", path: "/?view=home" });
    const row = priya.locator("#home-body");
    await row.getByText("ORD-1002").first().waitFor();
    await openForm(priya, row.getByRole("button", { name: /^Deny/ }));
    await form(priya).locator("button[type=submit]").click();
    await form(priya).locator(".input-error").waitFor();
    await form(priya).getByLabel("Note").fill("The warranty ended in spring.");
    await form(priya).locator("button[type=submit]").click();
    await sent(priya);
    await thread(ada).getByText("The warranty ended in spring.").first().waitFor();
    expect(await world.payments.control.counts()).toMatchObject({ committed: 1 });
  });

  it("answers somebody who may not decide with a sentence that only they see", async () => {
    const ada = await visit(world.slack.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    await file(ada, "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.");
    const ben = await visit(world.slack.url, { as: "U_AGENT2", path: "/archives/C_APPR" });
    await approvals(ben, "ORD-10042")
      .getByRole("button", { name: /^Approve/ })
      .click();
    await ben.locator(".message-ephemeral", { hasText: "Only visible to you" }).waitFor();
    expect(await approvals(ben, "ORD-10042").count()).toBe(1);
  });

  it("leads a refund whose outcome nobody can know to a person, who resolves it with reason and evidence", async () => {
    const { control } = world.payments;
    const lost = control.arm({ kind: "commit_then_drop", onReplay: true, times: null });
    const down = control.arm({ kind: "read_down", how: "500" });
    const phone = await visit(world.slack.url, {
      as: "U_SUP1",
      path: "/archives/C_APPR",
      viewport: { width: 390, height: 800 },
      hasTouch: true,
      isMobile: true,
    });
    await approvals(phone, "ORD-10042")
      .getByRole("button", { name: /^Approve/ })
      .tap();
    expect(await fitsWidth(phone)).toBe(true);
    const noor = await visit(world.slack.url, { as: "U_ONC1", path: "/archives/C_OPS" });
    await noor.locator("#messages button", { hasText: "Confirm committed" }).waitFor();
    control.disarm(down);
    control.disarm(lost);
    const [operation] = (await listOperations(db, { status: "QUARANTINED", limit: 1 })).rows;
    await composer(noor).fill(`/ops show ${operation?.id ?? "none"}`);
    await composer(noor).press("Enter");
    await noor.locator(".message-ephemeral", { hasText: "ORD-10042" }).waitFor();
    await openForm(noor, noor.locator("#messages button", { hasText: "Confirm committed" }).first());
    await form(noor).locator("button[type=submit]").click();
    await form(noor).locator(".input-error").first().waitFor();
    await form(noor).getByLabel("Reason").fill("The provider's dashboard shows the refund.");
    await form(noor).getByLabel("Evidence").fill("Dashboard, refund list of the payment");
    await form(noor).locator("button[type=submit]").click();
    await sent(noor);
    await phone
      .locator("#messages article", { hasText: "£180.00" })
      .getByText(/^Refunded[.,]/)
      .waitFor();
    expect(await control.effects({ operationId: operation?.id ?? "" })).toHaveLength(1);
  });

  it("takes a screenshot without a word for a question, and another's message for a ticket of both", async () => {
    const ada = await visit(world.slack.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    const image = { name: "broken-kettle.png", mimeType: "image/png", buffer: Buffer.alloc(2048) };
    await ada.locator("#channel input[type=file]").setInputFiles([image]);
    await composer(ada).press("Enter");
    const ticket = ada.locator("#messages article", { hasText: "broken-kettle.png" });
    await ticket.locator(".replies").click();
    await thread(ada)
      .getByText(/I see broken-kettle\.png, but no text/u)
      .waitFor();
    const words = "Mrs Adeyemi writes: order ORD-1002 never worked";
    await world.slack.control.post({ as: "U_AGENT2", channel: "C_GENERAL", text: words });
    await ada.locator('[data-entry="C_GENERAL"]').click();
    await ada.locator("#messages article", { hasText: words }).focus();
    await ada.keyboard.press("m");
    await ada.getByRole("menuitem", { name: "Resolve with Countersign" }).click();
    await ada.locator(".message-ephemeral", { hasText: "Filed." }).waitFor();
    await ada.locator('[data-entry="C_TICK"]').click();
    const filed = ada.locator("#messages article", { hasText: words });
    await filed.getByText("@Ada Filer").waitFor();
    expect(await filed.getByText("@Ben Okafor").count()).toBe(1);
  });

  it("takes a ticket of hostile text for what it is: text", async () => {
    const text =
      '<img src=x onerror="window.hit=1"> *ORD-9999* <!channel> <javascript:window.hit=1|x> &lt;b&gt;';
    const ada = await visit(world.slack.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    await composer(ada).fill(text);
    await composer(ada).press("Enter");
    const ticket = ada.locator("#messages article").last();
    await ticket.getByText("window.hit", { exact: false }).first().waitFor();
    await ticket.locator(".replies").click();
    await thread(ada).locator("article").nth(1).waitFor();
    expect(await ada.locator(":is(#messages, #thread) :is(img, script)").count()).toBe(0);
    expect(await ada.evaluate("window.hit")).toBeUndefined();
  });
});
