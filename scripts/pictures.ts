// Takes the pictures of the README and docs from the real product in the demo's world: `npm run pictures`. Needs Chromium.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { readOperationsJson } from "../src/app/demo/inspector.js";
import { prepareShop } from "../src/app/demo/seed.js";
import { Stage } from "../src/app/demo/stage.js";
import { startWorld } from "../src/app/demo/world.js";
import { systemClock } from "../src/app/system.js";
import { openDb } from "../src/db/connect.js";
import { demoShop } from "../src/shop/index.js";

const OUT = path.resolve("docs/pictures");
const CHROMIUM = process.env["CHROMIUM_PATH"] ?? "/usr/bin/chromium";
/** Sharp on dense screens, and narrow enough for a page of text. */
const WINDOW = {
  viewport: { width: 1180, height: 780 },
  deviceScaleFactor: 2,
  colorScheme: "light",
} as const;
const dataDir = mkdtempSync(path.join(tmpdir(), "countersign-pictures-"));
mkdirSync(OUT, { recursive: true });

const world = await startWorld({
  dataDir,
  slackPort: 0,
  paymentsPort: 0,
  postgresPort: 0,
  productPort: 0,
  transport: "socket",
  policyFile: path.resolve("policies/default.yaml"),
  shop: demoShop({ today: systemClock.now() }),
  extraEnv: {
    PLANNER: "scripted",
    PROVIDER_TIMEOUT_MS: "2500",
    RECONCILE_BASE_MS: "500",
    RECONCILE_EVERY_MS: "500",
    RECONCILE_MAX_MS: "1000",
    QUARANTINE_AFTER_MS: "5000",
    LEASE_MS: "6000",
  },
  operations: () => readOperationsJson(db),
  keepWorkspace: false,
});
const db = openDb({ url: world.databaseUrl, applicationName: "countersign-pictures" });
const stage = new Stage({ world, db, logFile: path.join(dataDir, "product.log") });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage(WINDOW);
try {
  await prepareShop(db, world.shop);
  await stage.open();
  await stage.start();
  const thread = await stage.file(
    "U_AGENT",
    "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.",
  );
  await stage.confirmBinding(thread);
  await stage.messageWith(thread, "Approve");
  await show("U_SUP1", "/archives/C_APPR");
  await page.getByText("Approval needed").first().waitFor();
  await take("approval-card");
  await show("U_SUP1", "/?view=home");
  await page.locator("#home-body").getByText("ORD-10042").first().waitFor();
  await take("app-home");

  stage.fault({ kind: "commit_then_drop" });
  await stage.approve("U_SUP1", thread);
  await stage.runIn(thread, "resolved");
  await show("U_AGENT", "/archives/C_TICK");
  await page.locator("#messages .replies").first().click();
  const run = page.locator("#thread article").filter({ hasText: "scripted planner" });
  await run.getByText(/^Finished/u).waitFor();
  await page
    .locator("#thread")
    .getByText(/being checked/u)
    .first()
    .waitFor();
  await take("thread");

  const { control } = world.payments;
  const lost = control.arm({ kind: "commit_then_drop", onReplay: true, times: null });
  const down = control.arm({ kind: "read_down", how: "500" });
  const second = await stage.file(
    "U_AGENT2",
    "The kettle of order ORD-1001 arrived broken. Please refund the $79.00.",
  );
  await stage.confirmBinding(second);
  await stage.approve("U_SUP1", second);
  await stage.operationIn("QUARANTINED");
  await page.setViewportSize({ width: 1180, height: 1000 }); // the whole card, from its title on
  await show("U_ONC1", "/archives/C_OPS?inspector");
  await page.locator("#inspector").getByRole("tab", { name: "Books" }).click();
  await page.locator("#messages button", { hasText: "Confirm committed" }).first().waitFor();
  await page.locator('.book-row[data-verdict="open"]').first().waitFor();
  await take("quarantine");
  control.disarm(lost);
  control.disarm(down);
} finally {
  await browser.close();
  await stage.stop();
  await db.close();
  await world.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

async function show(person: string, where: string): Promise<void> {
  await page.goto(`${world.slack.url}${where}${where.includes("?") ? "&" : "?"}as=${person}`);
  await page.getByText("App connected").first().waitFor();
}

/** What is under way ends first, so that nothing moves in the picture. */
async function take(name: string): Promise<void> {
  await world.slack.control.idle();
  await page.mouse.move(0, 0);
  await page.screenshot({ path: path.join(OUT, `${name}.png`), animations: "disabled" });
}
